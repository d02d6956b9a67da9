//! Linux-only functions: an `Unsupported` error on other systems.

use crate::sys::cmsg::TxTimestamp;
use crate::sys::types::{Nanos, ZerocopyCompletion};
#[cfg(unix)]
use crate::sys::unix as os;
#[cfg(windows)]
use crate::sys::windows as os;
use socket2::Socket;
use stacklab_model::{Family, Offloads};
use std::ffi::c_int;
use std::io;
use std::net::Ipv6Addr;
use std::time::Duration;

/// Whether one call can send or receive several messages.
pub(crate) const BATCHED_CALLS: bool = false;

/// Without batched calls, nothing follows a partly sent message.
pub(crate) fn skips_bytes() -> bool {
    false
}
/// Flags of a send whose message must not share a packet with the next one: no such flag here.
pub(crate) const SEND_EOR: c_int = os::SEND_PLAIN;
/// Flags of a send that is followed at once by another one: no such flag here.
pub(crate) const SEND_MORE: c_int = os::SEND_PLAIN;
/// Flag of a zero-copy send: no such flag here, and [`enable_zerocopy`] returns an error.
pub(crate) const SEND_ZEROCOPY: c_int = 0;

pub(super) fn unsupported<T>(what: &str) -> io::Result<T> {
    let text = format!("stacklab's agent for {} has no {what}", std::env::consts::OS);
    Err(io::Error::new(io::ErrorKind::Unsupported, text))
}

/// How long a thread waited for a processor: not counted.
pub(crate) struct RunDelay;

impl RunDelay {
    /// Of the calling thread.
    pub(crate) fn of_this_thread() -> Self {
        RunDelay
    }

    /// Nothing.
    pub(crate) fn read(&self) -> Option<Nanos> {
        None
    }
}

/// Whether a connection has never had any data acknowledged: not known.
pub(crate) fn is_unacknowledged(_socket: &Socket) -> bool {
    false
}

/// Turns receive timestamps on.
pub(crate) fn enable_rx_timestamps(_socket: &Socket) -> io::Result<()> {
    unsupported("kernel receive timestamps")
}

/// Has receives tell the TTL, or hop limit, of each datagram.
pub(crate) fn enable_rx_ttl(_socket: &Socket, _family: Family) -> io::Result<()> {
    unsupported("the TTL of datagrams")
}

/// Receives from a stream with a receive timestamp.
pub(crate) fn receive_with_timestamp(
    _socket: &Socket,
    _room: &mut [u8],
    _wait: bool,
) -> io::Result<(usize, Option<Nanos>)> {
    unsupported("kernel receive timestamps")
}

/// Turns GSO on.
pub(crate) fn enable_gso(_socket: &Socket, _bytes: usize) -> io::Result<()> {
    unsupported("GSO")
}

/// Turns GRO on.
pub(crate) fn enable_gro(_socket: &Socket) -> io::Result<()> {
    unsupported("GRO")
}

/// Turns zero-copy sends on.
pub(crate) fn enable_zerocopy(_socket: &Socket) -> io::Result<()> {
    unsupported("zerocopy sends")
}

/// Reads a zero-copy completion.
pub(crate) fn zerocopy_completion(_socket: &Socket) -> io::Result<Option<ZerocopyCompletion>> {
    unsupported("zerocopy sends")
}

/// Waits for the error queue.
pub(crate) fn wait_error_queue(_socket: &Socket, _limit: Duration) -> io::Result<()> {
    unsupported("error queue")
}

/// Bytes that have arrived behind a lost segment: not counted here.
pub(crate) fn out_of_order_bytes(_socket: &Socket) -> u64 {
    0
}

/// Packets that the kernel dropped at this socket because its buffer was full.
pub(crate) fn socket_drops(_socket: &Socket) -> io::Result<u64> {
    unsupported("socket drop counter")
}

/// Offloads of an interface: unknown.
pub(crate) fn offloads(_socket: &Socket, _interface: &str) -> Offloads {
    Offloads::default()
}

/// Sent bytes that have not left this host: unknown.
pub(crate) fn unsent_bytes(_socket: &Socket) -> io::Result<Option<u32>> {
    Ok(None)
}

/// Memory of TCP and UDP sockets: unknown.
pub(crate) fn socket_memory_bytes() -> Option<u64> {
    None
}

/// Paces a TCP socket in the kernel.
pub(crate) fn set_pacing_rate(_socket: &Socket, _bytes_per_second: u64, _waiting: usize) -> io::Result<()> {
    unsupported("pacing by the kernel")
}

/// The kernel pacing rate of a socket: none.
pub(crate) fn pacing_rate(_socket: &Socket) -> Option<u64> {
    None
}

/// SO_BUSY_POLL, microseconds.
pub(crate) fn busy_poll_us(_socket: &Socket) -> io::Result<u32> {
    unsupported("busy polling")
}

/// Sets SO_BUSY_POLL.
pub(crate) fn set_busy_poll_us(_socket: &Socket, _microseconds: u32) -> io::Result<()> {
    unsupported("busy polling")
}

/// Leases a flow label for packets to a destination.
pub(crate) fn lease_flow_label(_socket: &Socket, _destination: Ipv6Addr, _label: u32) -> io::Result<()> {
    unsupported("per-connection flow labels")
}

/// Makes a listening TCP socket reflect the flow label of incoming connections.
pub(crate) fn reflect_flow_label(_socket: &Socket) -> io::Result<()> {
    unsupported("per-connection flow labels")
}

/// Turns automatic flow labels off.
pub(crate) fn no_flow_label(_socket: &Socket) -> io::Result<()> {
    unsupported("per-connection flow labels")
}

/// The flow label of an IPv6 socket's packets: the kernel chooses.
pub(crate) fn flow_label(_socket: &Socket) -> Option<u32> {
    None
}

/// Turns transmit timestamps on.
pub(crate) fn enable_tx_timestamps(_socket: &Socket) -> io::Result<()> {
    unsupported("transmit timestamps")
}

/// Reads a transmit timestamp.
pub(crate) fn read_tx_timestamp(_socket: &Socket, _limit: Duration) -> io::Result<(u32, TxTimestamp)> {
    unsupported("transmit timestamps")
}

/// Whether an interface has hardware timestamps.
pub(crate) fn has_hardware_timestamps(_socket: &Socket, _interface: &str) -> io::Result<bool> {
    unsupported("hardware timestamps")
}
