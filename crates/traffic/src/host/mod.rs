//! Facts, counters and capabilities of a host.

pub(crate) mod cpu;
pub mod facts;
#[cfg(target_os = "linux")]
pub mod ping;
pub(crate) mod socket_memory;
pub mod zone;

use crate::sys;
use socket2::{Socket, TcpKeepalive};
use stacklab_model::Counters;
use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Nanoseconds since the Unix epoch; 0 before it.
pub fn now_unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}

/// Counters of this host (on Linux of its network namespace) and of an interface, as far as the host has them.
pub(crate) fn counters(interface: &str) -> Counters {
    Counters(sys::counters(interface))
}

/// The increase of each counter since an earlier reading, with the drops of the trial's own sockets.
pub(crate) fn counters_since(before: &Counters, interface: &str, sockets: &[&Socket]) -> Counters {
    let moved = sys::counters(interface).into_iter().filter_map(|(name, after)| {
        let by = after.checked_sub(before.get(&name)).filter(|by| *by > 0)?;
        Some((name, by))
    });
    let mut counters = Counters(moved.collect());
    if let drops @ 1.. = sockets.iter().filter_map(|socket| sys::socket_drops(socket).ok()).sum() {
        counters.0.insert("socket.drops".to_owned(), drops);
    }
    counters
}

/// Enables TCP keepalive, so that the kernel closes a connection whose peer is gone.
pub fn notice_a_dead_peer(socket: &Socket) -> io::Result<()> {
    let keepalive =
        TcpKeepalive::new().with_time(Duration::from_secs(15)).with_interval(Duration::from_secs(5));
    // Where packets are lost, what is lost is soon sent again, and not after a time that doubles.
    #[cfg(target_os = "linux")]
    let _ = socket.set_tcp_thin_linear_timeouts(true);
    // Some systems choose the number of retries themselves.
    let thrice = keepalive.clone().with_retries(3);
    socket.set_tcp_keepalive(&thrice).or_else(|_| socket.set_tcp_keepalive(&keepalive))
}

/// Has both ends of a control connection send small segments: its messages then also arrive where large packets are
/// lost on the way and nobody says so. Before it is connected, or listens.
pub fn limit_segments(socket: &Socket) {
    // With headers the least MTU of IPv6, 1280 bytes. Where a system refuses, one end is enough.
    let _ = sys::set(socket, sys::SocketOption::Mss(1220));
}
