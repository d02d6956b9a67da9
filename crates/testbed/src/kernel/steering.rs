//! Receive packet steering (RPS) into routers: whoever sends a packet puts it into the backlog of another processor,
//! which takes it into the router in a softirq.
//!
//! The backlog of a processor holds `net.core.netdev_max_backlog` packets, usually 1000, of all interfaces together.
//! What it has no room for is dropped, which `tx_dropped` of the sending end of a veth pair counts.

use crate::kernel::cpus::Rps;
use crate::kernel::namespace::mount_own_sysfs;
use crate::{Attempt, Fault};
use std::fs;

/// The column of `/proc/net/softnet_stat` with the interrupts by which other processors said that packets are in the
/// backlog (`received_rps`).
const INTERRUPTS_COLUMN: usize = 9;

/// Steers what arrives at these interfaces to these processors. The interfaces are in the calling thread's namespace;
/// that thread gets a private mount namespace, and should end soon.
pub(crate) fn steer_packets(interfaces: &[&str], processors: &[usize]) -> Result<(), Fault> {
    mount_own_sysfs()?;
    for interface in interfaces {
        Rps::open(interface, processors)?
            .switch(true)
            .attempt(format!("steer packets of {interface} (router_queue \"rps\")"))?;
    }
    Ok(())
}

/// Interrupts because of packets that another processor has put into a backlog, since the machine was started: one for
/// each packet, or for several.
pub(crate) fn count_interrupts() -> Result<u64, Fault> {
    let path = "/proc/net/softnet_stat";
    let text = fs::read_to_string(path).attempt(format!("read {path}"))?;
    parse_interrupts(&text).ok_or("it has no count of steering").attempt(format!("read {path}"))
}

/// A line for each processor, of hexadecimal numbers.
fn parse_interrupts(text: &str) -> Option<u64> {
    let mut interrupts = 0_u64;
    for line in text.lines() {
        let number = line.split_whitespace().nth(INTERRUPTS_COLUMN)?;
        interrupts = interrupts.saturating_add(u64::from_str_radix(number, 16).ok()?);
    }
    Some(interrupts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(interrupts: &str) -> String {
        format!("0001 0000 0000 0000 0000 0000 0000 0000 0000 {interrupts} 0000 0000 0000\n")
    }

    #[test]
    fn interrupts_of_all_processors_are_added() {
        assert_eq!(parse_interrupts(&(line("000000ff") + &line("00000001"))), Some(256));
        assert_eq!(parse_interrupts("0001 0000\n"), None);
        assert_eq!(parse_interrupts(&line("x")), None);
        assert!(count_interrupts().is_ok());
    }
}
