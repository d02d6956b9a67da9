//! What only Linux does, refused with the reason: abilities and trials that ask for it say so.

use super::{Left, Nanos, ZerocopyDone};
use socket2::Socket;
use stacklab_model::Offloads;
use std::ffi::c_int;
use std::io;
use std::net::Ipv6Addr;
use std::time::Duration;

/// Whether one call can send or receive several messages.
pub const SEVERAL_A_CALL: bool = false;
/// Flags of a send whose message must not share a packet with the next one: there is none that sees to it.
pub const SEND_WHOLE: c_int = super::SEND_PLAIN;
/// Flags of a send that another one follows at once: there is none.
pub const SEND_MORE: c_int = super::SEND_PLAIN;
/// Flag of a send from the program's memory: there is none, and [`allow_zerocopy`] refuses.
pub const SEND_ZEROCOPY: c_int = 0;

pub(super) fn lacks<T>(what: &str) -> io::Result<T> {
    let text = format!("stacklab's agent for {} has no {what}", std::env::consts::OS);
    Err(io::Error::new(io::ErrorKind::Unsupported, text))
}

/// Has the kernel say when each packet arrived.
pub fn stamp_arrivals(_socket: &Socket) -> io::Result<()> {
    lacks("arrival times of the kernel")
}

/// Receives of a stream and says when it arrived.
pub fn receive_stamped(
    _socket: &Socket,
    _room: &mut [u8],
    _wait: bool,
) -> io::Result<(usize, Option<Nanos>)> {
    lacks("arrival times of the kernel")
}

/// Has one send leave as several datagrams.
pub fn segment_sends(_socket: &Socket, _bytes: usize) -> io::Result<()> {
    lacks("sends that are cut below IP")
}

/// Has datagrams that the kernel joined arrive as one.
pub fn join_receives(_socket: &Socket) -> io::Result<()> {
    lacks("receives that are joined below IP")
}

/// Has sends leave from the program's memory.
pub fn allow_zerocopy(_socket: &Socket) -> io::Result<()> {
    lacks("sends from the program's memory")
}

/// What the kernel is done with.
pub fn zerocopy_done(_socket: &Socket) -> io::Result<Option<ZerocopyDone>> {
    lacks("sends from the program's memory")
}

/// Waits until the kernel has something to say of earlier sends.
pub fn await_error_queue(_socket: &Socket, _limit: Duration) -> io::Result<()> {
    lacks("error queue")
}

/// Packets that the kernel dropped at this socket for want of room.
pub fn socket_drops(_socket: &Socket) -> io::Result<u64> {
    lacks("count of what a socket dropped")
}

/// Offloads of an interface: not known.
pub fn offloads(_socket: &Socket, _interface: &str) -> Offloads {
    Offloads::default()
}

/// Bytes that this socket has sent and that have not left this host: not known.
pub fn unsent_bytes(_socket: &Socket) -> io::Result<Option<u32>> {
    Ok(None)
}

/// What TCP's and UDP's sockets hold together: not known.
pub fn socket_memory_bytes() -> Option<u64> {
    None
}

/// Has the kernel space what a TCP socket sends.
pub fn pace(_socket: &Socket, _bytes_per_second: u64, _waiting: usize) -> io::Result<()> {
    lacks("pacing by the kernel")
}

/// The bytes a second to which the kernel spaces what a socket sends: it does not.
pub fn pacing_rate(_socket: &Socket) -> Option<u64> {
    None
}

/// Microseconds that a receive polls the device.
pub fn busy_poll_us(_socket: &Socket) -> io::Result<u32> {
    lacks("busy polling")
}

/// Sets them.
pub fn set_busy_poll_us(_socket: &Socket, _microseconds: u32) -> io::Result<()> {
    lacks("busy polling")
}

/// Leases a flow label for packets to a destination.
pub fn lease_flow_label(_socket: &Socket, _destination: Ipv6Addr, _label: u32) -> io::Result<()> {
    lacks("flow label of a connection's own")
}

/// Has the connections of a listening TCP socket answer with the flow label of whoever connects.
pub fn reflect_flow_label(_socket: &Socket) -> io::Result<()> {
    lacks("flow label of a connection's own")
}

/// Has packets leave without a flow label of the kernel's choice.
pub fn no_flow_label(_socket: &Socket) -> io::Result<()> {
    lacks("flow label of a connection's own")
}

/// The flow label of an IPv6 socket's packets: the kernel chooses.
pub fn flow_label(_socket: &Socket) -> Option<u32> {
    None
}

/// Lets a socket's datagrams be given a time to leave at.
pub fn allow_send_times(_socket: &Socket) -> io::Result<()> {
    lacks("sends at a time")
}

/// Has the kernel say when it handed each packet to the interface.
pub fn stamp_sends(_socket: &Socket) -> io::Result<()> {
    lacks("times of sends")
}

/// When a packet was handed to the interface.
pub fn send_stamp(_socket: &Socket, _limit: Duration) -> io::Result<(u32, Left)> {
    lacks("times of sends")
}

/// Whether an interface stamps packets itself.
pub fn stamps_in_hardware(_socket: &Socket, _interface: &str) -> io::Result<bool> {
    lacks("times of the interface's own")
}
