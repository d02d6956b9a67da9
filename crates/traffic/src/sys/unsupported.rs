//! What only Linux has (`linux` describes it): other systems do without, or return an `Unsupported` error.

use crate::sys::types::{Nanos, TxTimestamp, ZerocopyCompletion};
#[cfg(unix)]
use crate::sys::unix as os;
#[cfg(windows)]
use crate::sys::windows as os;
use socket2::{Domain, Protocol, Socket};
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
    pub(crate) fn of_this_thread() -> Self {
        RunDelay
    }

    pub(crate) fn read(&self) -> Option<Nanos> {
        None
    }
}

pub(crate) fn is_unacknowledged(_socket: &Socket) -> bool {
    false
}

pub(crate) fn enable_rx_timestamps(_socket: &Socket) -> io::Result<()> {
    unsupported("kernel receive timestamps")
}

pub(crate) fn enable_rx_ttl(_socket: &Socket, _family: Family) -> io::Result<()> {
    unsupported("the TTL of datagrams")
}

pub(crate) fn receive_with_timestamp(
    _socket: &Socket,
    _room: &mut [u8],
    _wait: bool,
) -> io::Result<(usize, Option<Nanos>)> {
    unsupported("kernel receive timestamps")
}

pub(crate) fn enable_gso(_socket: &Socket, _bytes: usize) -> io::Result<()> {
    unsupported("GSO")
}

pub(crate) fn enable_gro(_socket: &Socket) -> io::Result<()> {
    unsupported("GRO")
}

pub(crate) fn enable_zerocopy(_socket: &Socket) -> io::Result<()> {
    unsupported("zerocopy sends")
}

pub(crate) fn zerocopy_completion(_socket: &Socket) -> io::Result<Option<ZerocopyCompletion>> {
    unsupported("zerocopy sends")
}

pub(crate) fn wait_error_queue(_socket: &Socket, _limit: Duration) -> io::Result<()> {
    unsupported("error queue")
}

pub(crate) fn out_of_order_bytes(_socket: &Socket) -> u64 {
    0
}

pub(crate) fn socket_drops(_socket: &Socket) -> io::Result<u64> {
    unsupported("socket drop counter")
}

pub(crate) fn offloads(_socket: &Socket, _interface: &str) -> Offloads {
    Offloads::default()
}

pub(crate) fn unsent_bytes(_socket: &Socket) -> io::Result<Option<u32>> {
    Ok(None)
}

pub(crate) fn socket_memory_bytes() -> Option<u64> {
    None
}

pub(crate) fn set_pacing_rate(_socket: &Socket, _bytes_per_second: u64, _waiting: usize) -> io::Result<()> {
    unsupported("pacing by the kernel")
}

pub(crate) fn pacing_rate(_socket: &Socket) -> Option<u64> {
    None
}

pub(crate) fn busy_poll_us(_socket: &Socket) -> io::Result<u32> {
    unsupported("busy polling")
}

pub(crate) fn set_busy_poll_us(_socket: &Socket, _microseconds: u32) -> io::Result<()> {
    unsupported("busy polling")
}

pub(crate) fn lease_flow_label(_socket: &Socket, _destination: Ipv6Addr, _label: u32) -> io::Result<()> {
    unsupported("per-connection flow labels")
}

pub(crate) fn reflect_flow_label(_socket: &Socket) -> io::Result<()> {
    unsupported("per-connection flow labels")
}

pub(crate) fn no_flow_label(_socket: &Socket) -> io::Result<()> {
    unsupported("per-connection flow labels")
}

pub(crate) fn flow_label(_socket: &Socket) -> Option<u32> {
    None
}

pub(crate) fn enable_tx_timestamps(_socket: &Socket) -> io::Result<()> {
    unsupported("transmit timestamps")
}

pub(crate) fn read_tx_timestamp(_socket: &Socket, _limit: Duration) -> io::Result<(u32, TxTimestamp)> {
    unsupported("transmit timestamps")
}

pub(crate) fn has_hardware_timestamps(_socket: &Socket, _interface: &str) -> io::Result<bool> {
    unsupported("hardware timestamps")
}

pub(crate) fn set_receive_buffer(socket: &Socket, bytes: usize) -> io::Result<usize> {
    socket.set_recv_buffer_size(bytes)?;
    socket.recv_buffer_size()
}

pub(crate) fn set_send_buffer(socket: &Socket, bytes: usize) -> io::Result<()> {
    socket.set_send_buffer_size(bytes)
}

pub(crate) fn kind(socket: &Socket) -> io::Result<(Domain, Option<Protocol>)> {
    Ok((Domain::from(c_int::from(socket.local_addr()?.family())), socket.protocol()?))
}
