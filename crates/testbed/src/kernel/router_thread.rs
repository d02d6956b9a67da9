//! A router whose ingress has a kernel thread (threaded NAPI).
//!
//! A veth pair usually delivers a packet in the thread that sent it, so the sender's thread also runs both routers, and
//! no router ever drops a packet: what a path carries is then the sender's speed. With GRO on, the receiving end of a
//! veth has a ring of 256 packets instead, and with `threaded` set a kernel thread takes them from there. The ring
//! drops what it has no room for, which `tx_dropped` of the sending end counts.

use crate::kernel::cpus;
use crate::kernel::namespace::mount_own_sysfs;
use crate::kernel::sys::{features, switch_on};
use crate::{Attempt, Fault};
use std::collections::BTreeSet;
use std::fs;

/// The feature that gives a veth its ring.
const RING: &str = "rx-gro";

/// A kernel thread that takes packets into a router.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RouterThread {
    pid: u32,
}

/// What a thread has had of the processors since it exists, nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadTimes {
    /// Time on a processor.
    pub ran_ns: u64,
    /// Time in which it could have run, and another thread did.
    pub waited_ns: u64,
}

impl RouterThread {
    /// The times so far; `None` where the kernel does not count them.
    pub fn times(self) -> Option<ThreadTimes> {
        parse_times(&fs::read_to_string(format!("/proc/{}/schedstat", self.pid)).ok()?)
    }
}

/// Time on a processor, time in its queue, and how often it ran.
fn parse_times(schedstat: &str) -> Option<ThreadTimes> {
    let mut numbers = schedstat.split_whitespace().map(|number| number.parse().ok());
    Some(ThreadTimes { ran_ns: numbers.next()??, waited_ns: numbers.next()?? })
}

/// Gives each of these interfaces, which must be up, such a thread. The interfaces are in the calling thread's
/// namespace; that thread gets a private mount namespace, and should end soon. Returns the threads that this process
/// can see: without root in the machine's first PID namespace, none.
pub(crate) fn start_threads(interfaces: &[&str], processors: &[usize]) -> Result<Vec<RouterThread>, Fault> {
    mount_own_sysfs()?;
    let before = list_threads(interfaces);
    for interface in interfaces {
        switch_ring_on(interface)?;
        let path = format!("/sys/class/net/{interface}/threaded");
        fs::write(&path, "1").attempt(format!("write to {path} (threaded NAPI needs Linux 5.12)"))?;
        let is_on = fs::read_to_string(&path).attempt(format!("read {path}"))?;
        if is_on.trim() != "1" {
            return Err("the kernel keeps it off").attempt(format!("give {interface} a kernel thread"));
        }
    }
    let own: Vec<RouterThread> = list_threads(interfaces).difference(&before).copied().collect();
    for thread in own.iter().filter(|_| !processors.is_empty()) {
        // Without root the scheduler chooses.
        let _ = cpus::move_to(thread.pid, processors);
    }
    Ok(own)
}

fn switch_ring_on(interface: &str) -> Result<(), Fault> {
    let step = format!("switch on {RING} of {interface}");
    let names = features(interface).attempt(&step)?;
    let Some(place) = names.iter().position(|(name, _)| name == RING) else {
        return Err("the kernel does not know it").attempt(&step);
    };
    switch_on(interface, &[place], names.len()).attempt(&step)?;
    if features(interface).attempt(&step)?[place].1 {
        return Ok(());
    }
    Err("the kernel keeps it off").attempt(&step)
}

/// The kernel threads of interfaces with these names, in all namespaces.
fn list_threads(interfaces: &[&str]) -> BTreeSet<RouterThread> {
    let mut threads = BTreeSet::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        if interfaces.iter().any(|interface| is_of(&name, interface)) {
            threads.insert(RouterThread { pid });
        }
    }
    threads
}

/// Whether a thread has the name of an interface's: `napi/link-8193`, of which the kernel keeps 15 characters.
fn is_of(name: &str, interface: &str) -> bool {
    name.strip_prefix("napi/")
        .and_then(|rest| rest.strip_prefix(interface))
        .is_some_and(|rest| rest.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_run_and_wait_times() {
        let times = parse_times("298800000 1200000 57\n").unwrap();
        assert_eq!(times, ThreadTimes { ran_ns: 298_800_000, waited_ns: 1_200_000 });
        assert_eq!(parse_times("1"), None);
        assert_eq!(parse_times("a b c"), None);
    }

    #[test]
    fn knows_the_threads_of_an_interface() {
        assert!(is_of("napi/sl0-8193\n", "sl0"));
        assert!(!is_of("napi/sl01-8193\n", "sl0"));
        assert!(!is_of("sl0-8193\n", "sl0"));
    }
}
