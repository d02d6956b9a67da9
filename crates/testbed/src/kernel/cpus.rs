//! The processors of each host: two hosts on one machine must not share processors. Receive packet steering (RPS):
//! receive work on the receiving host's own processors.
//!
//! A veth pair delivers a packet on the processor that sent it. By default, the sender's processor therefore also
//! does the receiver's IP and transport work and limits both hosts. Two separate machines do not behave like this.
//! With RPS, each packet interrupts the receiver's processor instead. In a virtual machine this takes longer than the
//! work itself. Use RPS to fill a link, not to measure round-trip times.

use crate::{Attempt, Fault};
use nix::errno::Errno;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;

/// The processors that this process may use.
pub fn allowed() -> Vec<usize> {
    of(0)
}

/// The processors that a process may use; 0 is this one.
pub(crate) fn of(process: u32) -> Vec<usize> {
    // A process ID fits: Linux allows at most 2^22.
    let allowed = sched_getaffinity(Pid::from_raw(process as i32)).unwrap_or_default();
    (0..CpuSet::count()).filter(|cpu| allowed.is_set(*cpu).unwrap_or(false)).collect()
}

/// Moves every thread of a process to some processors. Threads that are started later inherit this.
pub(crate) fn move_to(process: u32, processors: &[usize]) -> Result<(), Fault> {
    move_threads(process, processors).attempt(format!("move process {process} to CPU {}", print(processors)))
}

fn move_threads(process: u32, processors: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    processors.iter().try_for_each(|cpu| set.set(*cpu))?;
    // Run twice: a thread that was not moved yet may start another one in the meantime.
    for _ in 0..2 {
        for thread in fs::read_dir(format!("/proc/{process}/task"))? {
            let number = thread?.file_name().to_string_lossy().parse().map_err(io::Error::other)?;
            match sched_setaffinity(Pid::from_raw(number), &set) {
                // The thread has ended in the meantime.
                Err(Errno::ESRCH) => {}
                result => result?,
            }
        }
    }
    Ok(())
}

/// Restricts the calling thread to some processors. Empty: does not restrict it.
pub(crate) fn stay_on(processors: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    processors.iter().try_for_each(|cpu| set.set(*cpu))?;
    if processors.is_empty() { Ok(()) } else { Ok(sched_setaffinity(Pid::from_raw(0), &set)?) }
}

/// The machine's processors, divided between the sender and the receiver: each gets half of the physical cores that
/// this process may use. `None` on a single core. Without this division, the scheduler places both hosts sometimes on
/// one core and sometimes on two, and results alternate between two values.
pub(crate) fn halves() -> Option<[Vec<usize>; 2]> {
    split(allowed().into_iter().map(|cpu| (cpu, core(cpu))).collect())
}

/// One processor of the given ones, or, if none are given, of those that this process may use. It is for processes
/// that run in turns: on several processors, each turn would wake another processor.
pub fn one(processors: &[usize]) -> Vec<usize> {
    processors.last().copied().or_else(|| allowed().last().copied()).into_iter().collect()
}

/// The physical core of a processor. A processor without topology data counts as a separate core.
fn core(cpu: usize) -> (i64, i64) {
    let package = read_topology(cpu, "physical_package_id").unwrap_or(0);
    let core = read_topology(cpu, "core_id").unwrap_or(cpu as i64);
    (package, core)
}

fn read_topology(cpu: usize, file: &str) -> Option<i64> {
    let text = fs::read_to_string(format!("/sys/devices/system/cpu/cpu{cpu}/topology/{file}")).ok()?;
    text.trim().parse().ok()
}

/// Divides processors into two halves. All threads of a core are in the same half, unless there is only one core.
fn split(mut processors: Vec<(usize, (i64, i64))>) -> Option<[Vec<usize>; 2]> {
    processors.sort_by_key(|(cpu, core)| (*core, *cpu));
    let cores: Vec<_> = processors.chunk_by(|a, b| a.1 == b.1).collect();
    match cores.as_slice() {
        [] => None,
        [threads] if threads.len() < 2 => None,
        [threads] => {
            let (first, second) = threads.split_at(threads.len() / 2);
            Some([list_numbers(first), list_numbers(second)])
        }
        cores => {
            let (first, second) = cores.split_at(cores.len() / 2);
            Some([list_numbers(&first.concat()), list_numbers(&second.concat())])
        }
    }
}

fn list_numbers(processors: &[(usize, (i64, i64))]) -> Vec<usize> {
    processors.iter().map(|(cpu, _)| *cpu).collect()
}

/// Formats processors as a list: `0-3,8`.
pub(crate) fn print(processors: &[usize]) -> String {
    let mut sorted = processors.to_vec();
    sorted.sort_unstable();
    let ranges = sorted.chunk_by(|a, b| a + 1 == *b).map(|range| match range {
        [one] => one.to_string(),
        range => format!("{}-{}", range[0], range[range.len() - 1]),
    });
    ranges.collect::<Vec<_>>().join(",")
}

/// The RPS setting of an interface. It stays usable after the thread that opened it has changed namespaces.
#[derive(Debug)]
pub(crate) struct Rps {
    file: File,
    own: String,
}

impl Rps {
    /// Opens the RPS setting of an interface in the calling thread's namespace, whose /sys the thread sees.
    /// The kernel requires CAP_NET_ADMIN in the initial user namespace.
    pub(crate) fn open(interface: &str, processors: &[usize]) -> Result<Self, Fault> {
        let path = format!("/sys/class/net/{interface}/queues/rx-0/rps_cpus");
        let file = File::options().write(true).open(&path).attempt(format!("open {path}"))?;
        let rps = Rps { file, own: mask(processors) };
        // A successful open does not show whether writing is allowed.
        rps.switch(true).and_then(|()| rps.switch(false)).attempt(format!("write to {path}"))?;
        Ok(rps)
    }

    /// Moves the receive work to this end's processors (on), or leaves it on the sending processor (off).
    pub(crate) fn switch(&self, on: bool) -> io::Result<()> {
        self.file.write_all_at(if on { self.own.as_bytes() } else { b"0" }, 0)
    }
}

/// A set of processors in the format of sysfs: hexadecimal 32-bit words, highest first.
fn mask(processors: &[usize]) -> String {
    let count = processors.iter().max().map_or(1, |most| most / 32 + 1);
    let mut words = vec![0_u32; count];
    for cpu in processors {
        words[cpu / 32] |= 1 << (cpu % 32);
    }
    let texts: Vec<String> = words.iter().rev().map(|word| format!("{word:08x}")).collect();
    texts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_one_core_stay_together() {
        // Four cores with two threads each, in Linux's numbering: 0-3, and their siblings 4-7.
        let processors = (0..8).map(|cpu| (cpu, (0, cpu as i64 % 4))).collect();
        assert_eq!(split(processors), Some([vec![0, 4, 1, 5], vec![2, 6, 3, 7]]));
    }

    #[test]
    fn one_core_is_split_by_threads_and_one_processor_not() {
        assert_eq!(split(vec![(0, (0, 0)), (1, (0, 0))]), Some([vec![0], vec![1]]));
        assert_eq!(split(vec![(0, (0, 0)), (1, (0, 1))]), Some([vec![0], vec![1]]));
        assert_eq!(split(vec![(3, (0, 0))]), None);
        assert_eq!(split(vec![]), None);
    }

    #[test]
    fn processors_print_as_ranges() {
        assert_eq!(print(&[0, 4, 1, 5]), "0-1,4-5");
        assert_eq!(print(&[2]), "2");
    }

    #[test]
    fn processors_become_a_mask() {
        assert_eq!(mask(&[0]), "00000001");
        assert_eq!(mask(&[1, 3, 33]), "00000002,0000000a");
    }
}
