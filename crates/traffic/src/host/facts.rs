//! Properties and capabilities of this host; each capability is tested.

use crate::host::noise;
use crate::sys;
use socket2::{Domain, Socket, Type};
use stacklab_model::{Family, HostFacts, Transport};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::time::Duration;

/// Collects the facts, without the noise floor. Never fails: what cannot be read is empty, absent or zero.
pub fn collect() -> HostFacts {
    HostFacts {
        agent_version: env!("CARGO_PKG_VERSION").to_owned(),
        cores: sys::processors_online(),
        abilities: abilities(),
        ..sys::host()
    }
}

/// Tests each capability on loopback, in both families where the family matters.
fn abilities() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut note = |name: String, result: io::Result<()>| {
        found.insert(name, result.map_or_else(|error| error.to_string(), |()| "yes".to_owned()));
    };
    for family in Family::ALL.iter().copied() {
        note(format!("tcp_segment_framing_{family}"), segment_framing(family));
    }
    note("socket_drop_count".to_owned(), socket_drop_count());
    note("kernel_pacing".to_owned(), kernel_pacing());
    note("transmit_stamps".to_owned(), transmit_stamps());
    note("hardware_stamps".to_owned(), hardware_stamps());
    found
}

/// Two sockets of this host; the second waits for a second at most.
fn connected(transport: Transport, family: Family) -> io::Result<[Socket; 2]> {
    let ends = noise::loopback(transport, family)?;
    ends[1].set_read_timeout(Some(Duration::from_secs(1)))?;
    Ok(ends)
}

/// Whether messages sent with MSG_EOR leave in separate segments and TCP_INFO counts these segments.
fn segment_framing(family: Family) -> io::Result<()> {
    const MESSAGES: u64 = 5;
    let [sender, receiver] = connected(Transport::Tcp, family)?;
    for _ in 0..MESSAGES {
        sender.send_with_flags(&[1; 64], sys::SEND_EOR)?;
    }
    let mut all = [0; 64 * MESSAGES as usize];
    (&receiver).read_exact(&mut all)?;
    match sys::tcp_info(&sender)?.data_segs_out {
        Some(MESSAGES) => Ok(()),
        Some(segments) => Err(io::Error::other(format!("{MESSAGES} messages left in {segments} segments"))),
        None => Err(io::Error::other("TCP_INFO counts no segments")),
    }
}

fn socket_drop_count() -> io::Result<()> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
    sys::socket_drops(&socket).map(drop)
}

fn kernel_pacing() -> io::Result<()> {
    const MESSAGES: usize = 40;
    const BYTES: usize = 1000;
    // Forty messages in twenty milliseconds; the first ten of a connection are not paced.
    const RATE: u64 = 2_000_000;
    let [sender, receiver] = connected(Transport::Tcp, Family::Ipv4)?;
    sys::set_pacing_rate(&sender, RATE, 2 * BYTES)?;
    let start = sys::now_ns();
    for _ in 0..MESSAGES {
        sender.send_with_flags(&[1; BYTES], sys::SEND_EOR)?;
    }
    (&receiver).read_exact(&mut [0; BYTES * MESSAGES])?;
    let (took, least) = (sys::now_ns() - start, (MESSAGES / 2 * BYTES) as u64 * 1_000_000_000 / RATE);
    if took >= least {
        return Ok(());
    }
    let (took, least) = (took / 1000, least / 1000);
    Err(io::Error::other(format!("paced sends took {took} us, expected at least {least} us")))
}

fn transmit_stamps() -> io::Result<()> {
    let [sender, receiver] = connected(Transport::Udp, Family::Ipv4)?;
    sys::enable_tx_timestamps(&sender)?;
    let before = sys::now_ns() as i64 + sys::realtime_offset().offset_ns;
    sender.send(&[1; 64])?;
    (&receiver).read_exact(&mut [0; 64])?;
    let (_, left) = sys::read_tx_timestamp(&sender, Duration::from_millis(100))?;
    let sys::TxTimestamp::Software(stamp) = left else { return Ok(()) };
    let late = stamp as i64 - before;
    if (-1_000_000..1_000_000_000).contains(&late) {
        Ok(())
    } else {
        Err(io::Error::other(format!("the stamp is {late} ns after the send")))
    }
}

fn hardware_stamps() -> io::Result<()> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
    let names = sys::interfaces()?;
    if names.iter().any(|name| sys::has_hardware_timestamps(&socket, name).unwrap_or(false)) {
        return Ok(());
    }
    Err(io::Error::other(format!("no interface does ({})", names.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_ability_is_found_or_has_a_reason() {
        let all = abilities();
        for name in ["tcp_segment_framing_ipv6", "kernel_pacing", "transmit_stamps"] {
            assert_eq!(all[name], "yes", "{name}");
        }
        assert!(!all["hardware_stamps"].is_empty());
        // No loopback interface is hardware.
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
        assert!(!sys::has_hardware_timestamps(&socket, "lo").unwrap_or(false));
    }
}
