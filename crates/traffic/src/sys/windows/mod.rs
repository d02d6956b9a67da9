//! Windows, by Winsock.
//!
//! A trial's sockets are non-blocking ([`set_timeouts`]): Winsock has no per-call flag, `accept` has no timeout, and
//! a socket is in an undefined state after a receive timeout. A blocking call therefore tries first, then polls, and
//! tries again.

mod clock;
mod counters;
mod cpu;
mod host;
mod interfaces;
mod tcp;

pub(crate) use clock::{now_ns, precise_timers, realtime_offset, sleep, tick_ns};
pub(crate) use counters::counters;
pub(crate) use cpu::{
    CpuReader, allowed_processors, own_cpu_ns, peak_rss_kib, pin_thread, processors_online, thread_cpu_ns,
    thread_cpu_parts,
};
pub(crate) use host::host;
pub(crate) use interfaces::{interface_indices, interface_mtu, interface_of, interfaces};
pub(crate) use tcp::{mss, tcp_info};

use crate::sys::types::{Interest, Nanos, RECEIVE_TICK, SEND_TICK};
use socket2::{SockAddr, Socket, Type};
use stacklab_model::Family;
use std::ffi::c_int;
use std::io::{self, Read};
use std::mem::size_of;
use std::net::SocketAddr;
use std::os::windows::io::{AsRawSocket, FromRawSocket, RawSocket};
use std::time::{Duration, Instant};
use windows_sys::Win32::Networking::WinSock;

pub(crate) const LEAST_SLEEP_NS: Nanos = 1_000_000;
/// Flag of a non-blocking send. Winsock has no such flag: this value is never passed to Winsock.
pub(crate) const DONTWAIT: c_int = 1 << 30;
pub(crate) const SEND_PLAIN: c_int = 0;

fn raw(socket: &Socket) -> WinSock::SOCKET {
    socket.as_raw_socket() as WinSock::SOCKET
}

pub(crate) fn set_timeouts(socket: &Socket) -> io::Result<()> {
    socket.set_nonblocking(true)
}

/// Repeats a call each time the socket is ready, until it is done; `WouldBlock` after the timeout.
fn waiting<T>(
    socket: &Socket,
    what: Interest,
    limit: Duration,
    mut attempt: impl FnMut() -> io::Result<T>,
) -> io::Result<T> {
    let mut deadline = None;
    loop {
        match attempt() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let deadline = *deadline.get_or_insert_with(|| Instant::now() + limit);
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(error);
                }
                // At least a millisecond, the resolution of poll.
                poll_sockets(&mut [PollEntry::new(socket, what)], left.max(Duration::from_millis(1)))?;
            }
            done => return done,
        }
    }
}

pub(crate) fn send(socket: &Socket, message: &[u8], flags: c_int) -> io::Result<usize> {
    waiting(socket, Interest::Writable, SEND_TICK, || {
        map_reset(socket, socket.send_with_flags(message, flags))
    })
}

pub(crate) fn send_now(socket: &Socket, message: &[u8], flags: c_int) -> io::Result<Option<usize>> {
    match map_reset(socket, socket.send_with_flags(message, flags)) {
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
            Ok(None)
        }
        sent => sent.map(Some),
    }
}

pub(crate) fn receive(socket: &Socket, room: &mut [u8]) -> io::Result<usize> {
    waiting(socket, Interest::Readable, RECEIVE_TICK, || receive_now(socket, room))
}

pub(crate) fn receive_now(mut socket: &Socket, room: &mut [u8]) -> io::Result<usize> {
    match socket.read(room) {
        Err(error) if error.raw_os_error() == Some(WinSock::WSAEMSGSIZE) => Ok(room.len()),
        received => map_reset(socket, received),
    }
}

/// Maps WSAECONNRESET of a datagram socket (ICMP port unreachable for an earlier datagram) to "refused", as on other
/// systems.
fn map_reset<T>(socket: &Socket, said: io::Result<T>) -> io::Result<T> {
    said.map_err(|error| match error.raw_os_error() {
        Some(WinSock::WSAECONNRESET) if socket.r#type().ok() == Some(Type::DGRAM) => {
            io::Error::new(io::ErrorKind::ConnectionRefused, error)
        }
        _ => error,
    })
}

/// Accepts a connection, with its peer's address; `WouldBlock` after [`RECEIVE_TICK`]. If the opener has already
/// closed it, the address may be missing, or the result may be
/// [`ConnectionAborted`](io::ErrorKind::ConnectionAborted).
pub(crate) fn accept(socket: &Socket) -> io::Result<(Socket, Option<SocketAddr>)> {
    let connection = waiting(socket, Interest::Readable, RECEIVE_TICK, || {
        // Does not request the peer's address here: Wine drops the connection if the address is gone.
        // SAFETY: the socket is open for as long as it is borrowed, and Winsock is given nothing to write to.
        let accepted = unsafe { WinSock::accept(raw(socket), std::ptr::null_mut(), std::ptr::null_mut()) };
        if accepted == WinSock::INVALID_SOCKET {
            let error = io::Error::last_os_error();
            return Err(match error.raw_os_error() {
                Some(WinSock::WSAECONNRESET) => io::Error::new(io::ErrorKind::ConnectionAborted, error),
                _ => error,
            });
        }
        // SAFETY: Winsock has just created it, and nothing else owns it.
        Ok(unsafe { Socket::from_raw_socket(accepted as RawSocket) })
    })?;
    connection.set_no_inherit(true)?;
    let peer = connection.peer_addr().ok().and_then(|address| address.as_socket());
    Ok((connection, peer))
}

pub(crate) fn peek_sender(socket: &Socket) -> io::Result<SockAddr> {
    waiting(socket, Interest::Readable, RECEIVE_TICK, || socket.peek_sender())
}

/// Limits the memory of this process: Windows does so by jobs, which the listening agent does not make.
pub(crate) fn bound_memory(_bytes: u64) -> io::Result<()> {
    Ok(())
}

/// Whether a congestion control is there: Windows lets none be chosen, and says so itself.
pub(crate) fn has_congestion_control(_name: &str) -> bool {
    true
}

pub(crate) fn is_out_of_buffers(error: &io::Error) -> bool {
    error.raw_os_error() == Some(WinSock::WSAENOBUFS)
}

#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct PollEntry(WinSock::WSAPOLLFD);

impl PollEntry {
    pub(crate) fn new(socket: &Socket, what: Interest) -> Self {
        let events = match what {
            Interest::Readable => WinSock::POLLRDNORM,
            Interest::Writable => WinSock::POLLWRNORM,
        };
        PollEntry(WinSock::WSAPOLLFD { fd: raw(socket), events, revents: 0 })
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.0.revents != 0
    }

    pub(crate) fn is_of(&self, socket: &Socket) -> bool {
        self.0.fd == raw(socket)
    }
}

pub(crate) fn poll_sockets(entries: &mut [PollEntry], limit: Duration) -> io::Result<()> {
    let milliseconds = limit.as_millis().min(i32::MAX as u128) as i32;
    // SAFETY: `PollEntry` holds nothing but a `WSAPOLLFD`, so that the slice is one of as many of these, which Winsock
    // reads and writes within the call.
    let found = unsafe { WinSock::WSAPoll(entries.as_mut_ptr().cast(), entries.len() as u32, milliseconds) };
    if found < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// No effect: on Windows only memory limits the number of sockets.
pub(crate) fn raise_file_limit(_sockets: u64) -> io::Result<()> {
    Ok(())
}

/// Reads an integer socket option.
fn option(socket: &Socket, level: c_int, name: c_int) -> io::Result<u32> {
    let (mut value, mut length) = (0_u32, size_of::<u32>() as i32);
    // SAFETY: the socket is open for as long as it is borrowed, and Winsock writes at most `length` bytes to `value`,
    // which is that large.
    let result =
        unsafe { WinSock::getsockopt(raw(socket), level, name, (&raw mut value).cast(), &raw mut length) };
    if result == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
}

pub(crate) fn path_mtu(socket: &Socket, family: Family) -> io::Result<u32> {
    match family {
        Family::Ipv4 => option(socket, WinSock::IPPROTO_IP, WinSock::IP_MTU),
        Family::Ipv6 => option(socket, WinSock::IPPROTO_IPV6, WinSock::IPV6_MTU),
    }
}

/// The traffic class. Unknown: Windows may accept a value and send another.
pub(crate) fn traffic_class(_socket: &Socket, _family: Family) -> io::Result<u32> {
    Err(no_traffic_class())
}

/// Sets the traffic class: returns an error, since Windows accepts the option and ignores it.
pub(crate) fn set_traffic_class(_socket: &Socket, _family: Family, _byte: u8) -> io::Result<()> {
    Err(no_traffic_class())
}

fn no_traffic_class() -> io::Error {
    let text = "Windows ignores this socket option: set a policy (New-NetQosPolicy)";
    io::Error::new(io::ErrorKind::Unsupported, text)
}

/// Limits the maximum segment size of a future connection: not supported on Windows.
pub(crate) fn set_mss(_socket: &Socket, _bytes: u32) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "Windows sets it by the interface's MTU"))
}

/// TCP congestion control: not readable on Windows.
pub(crate) fn congestion_control(_socket: &Socket) -> Option<String> {
    None
}

/// Sets TCP congestion control: Windows supports this only for the whole host.
pub(crate) fn set_congestion_control(_socket: &Socket, _name: &str) -> io::Result<()> {
    let text = "Windows sets it for all connections (Set-NetTCPSetting -CongestionProvider)";
    Err(io::Error::new(io::ErrorKind::Unsupported, text))
}
