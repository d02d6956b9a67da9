//! Options of control connections over TCP.

use socket2::{Socket, TcpKeepalive};
use std::io;
use std::time::Duration;

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
    #[cfg(unix)]
    let _ = socket.set_tcp_mss(1220);
    #[cfg(not(unix))]
    let _ = socket;
}
