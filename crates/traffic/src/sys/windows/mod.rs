//! Windows, by Winsock.
//!
//! A trial's sockets are non-blocking ([`set_timeouts`]): Winsock has no per-call flag, `accept` has no timeout, and
//! a socket is in an undefined state after a receive timeout. A blocking call therefore tries first, then polls, and
//! tries again.

mod host;
mod interfaces;
mod unsupported;

pub(crate) use host::*;
pub(crate) use interfaces::{counters, interface_indices, interface_mtu, interface_of};
pub(crate) use unsupported::*;

use crate::sys::{Interest, Nanos, RECEIVE_TICK, SEND_TICK};
use socket2::{SockAddr, Socket, Type};
use stacklab_model::{Family, SocketOptions, TcpInfo};
use std::ffi::c_int;
use std::io::{self, Read};
use std::mem::size_of;
use std::net::SocketAddr;
use std::os::windows::io::{AsRawSocket, FromRawSocket, RawSocket};
use std::time::{Duration, Instant};
use windows_sys::Win32::Networking::WinSock;

pub(crate) const MIN_SLEEP_NS: Nanos = 1_000_000;
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

/// Reads an integer socket option.
fn option(socket: &Socket, level: c_int, name: c_int) -> io::Result<u32> {
    let mut value = 0_u32;
    let mut length = size_of::<u32>() as i32;
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

/// SIO_TCP_INFO, since Windows 10 version 1703: what means the same as on Linux. Windows counts bytes, not segments.
pub(crate) fn tcp_info(socket: &Socket) -> io::Result<TcpInfo> {
    let info = ask(socket)?;
    let mss = u64::from(info.Mss);
    Ok(TcpInfo {
        snd_mss: omit_zero(info.Mss),
        rtt_us: omit_zero(info.RttUs),
        // Bytes, converted to full segments.
        snd_cwnd: u64::from(info.Cwnd).checked_div(mss),
        total_retrans: None,
        data_segs_out: None,
        data_segs_in: None,
        bytes_sent: Some(info.BytesOut),
        bytes_retrans: Some(info.BytesRetrans.into()),
        // The maximum value means that the connection has no measurement.
        min_rtt_us: omit_zero(info.MinRttUs).filter(|rtt| *rtt < u32::MAX.into()),
        srtt_mean_us: None,
    })
}

fn omit_zero(value: u32) -> Option<u64> {
    (value > 0).then_some(u64::from(value))
}

/// The options that Windows reports; of the buffers, what [`Socket`] reads on every system.
pub(crate) fn options(socket: &Socket, _family: Family, is_tcp: bool) -> SocketOptions {
    let mss = if is_tcp { ask(socket).ok().map(|info| info.Mss) } else { None };
    SocketOptions { mss, ..SocketOptions::default() }
}

fn ask(socket: &Socket) -> io::Result<WinSock::TCP_INFO_v0> {
    let version = 0_u32;
    let mut info = WinSock::TCP_INFO_v0::default();
    let mut filled = 0_u32;
    let size = size_of::<WinSock::TCP_INFO_v0>() as u32;
    // SAFETY: the socket is open for as long as it is borrowed; Winsock reads four bytes of `version` and writes at
    // most `size` bytes to `info`, which is that large, and one integer to `filled`; no operation is pending when it
    // returns, since it is given no overlapped structure. The structure's `bool` is one that Windows sets to 0 or 1.
    let result = unsafe {
        WinSock::WSAIoctl(
            raw(socket),
            WinSock::SIO_TCP_INFO,
            (&raw const version).cast(),
            size_of::<u32>() as u32,
            (&raw mut info).cast(),
            size,
            &raw mut filled,
            std::ptr::null_mut(),
            None,
        )
    };
    match result {
        0 if filled >= size => Ok(info),
        0 => Err(io::Error::other(format!("SIO_TCP_INFO filled {filled} of {size} bytes"))),
        _ => Err(match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(WinSock::WSAEOPNOTSUPP) => {
                let text = "this system does not know SIO_TCP_INFO: Windows does from 10 version 1703 on";
                io::Error::new(io::ErrorKind::Unsupported, text)
            }
            error => error,
        }),
    }
}
