//! The calls on a trial's socket, each for this kernel's and for a stack's.

use crate::sys::linux::socket::Socket;
use crate::sys::linux::{calls, messages, options as kernel};
use crate::sys::stack::lacks;
use crate::sys::{
    DONTWAIT, Nanos, RECEIVE_TICK, SEND_TICK, SocketOption, TxTimestamp, ZerocopyCompletion, peek_kernel,
};
use socket2::SockAddr;
use stacklab_model::{Family, Offloads, SocketOptions, TcpInfo};
use std::ffi::c_int;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

pub(crate) fn set_timeouts(socket: &Socket) -> io::Result<()> {
    socket.set_read_timeout(Some(RECEIVE_TICK))?;
    socket.set_write_timeout(Some(SEND_TICK))
}

/// Sends; blocks up to the socket's timeout, then returns `WouldBlock`.
pub(crate) fn send(socket: &Socket, message: &[u8], flags: c_int) -> io::Result<usize> {
    socket.send_with_flags(message, flags)
}

/// Sends as much as fits without blocking; `None` if nothing fits.
pub(crate) fn send_now(socket: &Socket, message: &[u8], flags: c_int) -> io::Result<Option<usize>> {
    match socket {
        Socket::Kernel(socket) => calls::send_now(socket, message, flags),
        Socket::Stack(socket) => match socket.send(message, flags & !DONTWAIT, Duration::ZERO) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            sent => sent.map(Some),
        },
    }
}

/// Receives; `WouldBlock` after the socket's timeout.
pub(crate) fn receive(mut socket: &Socket, room: &mut [u8]) -> io::Result<usize> {
    socket.read(room)
}

/// Receives without blocking; `WouldBlock` without data.
pub(crate) fn receive_now(socket: &Socket, room: &mut [u8]) -> io::Result<usize> {
    match socket {
        Socket::Kernel(socket) => calls::receive_now(socket, room),
        Socket::Stack(socket) => Ok(socket.receive(room, Duration::ZERO)?.min(room.len())),
    }
}

/// Accepts a connection, with its peer's address as the socket has it; `WouldBlock` after the socket's timeout.
pub(crate) fn accept(socket: &Socket) -> io::Result<(Socket, Option<SocketAddr>)> {
    match socket {
        Socket::Kernel(socket) => {
            let (connection, peer) = socket.accept()?;
            Ok((connection.into(), peer.as_socket()))
        }
        Socket::Stack(socket) => {
            let (connection, peer) = socket.accept()?;
            Ok((Socket::Stack(Arc::new(connection)), Some(peer)))
        }
    }
}

/// Reads what waits at a socket, and leaves it there. Returns how many bytes it wrote.
pub(crate) fn peek(socket: &Socket, room: &mut [u8]) -> io::Result<usize> {
    match socket {
        Socket::Kernel(socket) => peek_kernel(socket, room),
        Socket::Stack(socket) => socket.peek(room),
    }
}

/// The source address of the next datagram, which stays in the queue; `WouldBlock` after the socket's timeout.
pub(crate) fn peek_sender(socket: &Socket) -> io::Result<SockAddr> {
    match socket {
        Socket::Kernel(socket) => socket.peek_sender(),
        Socket::Stack(socket) => Ok(socket.peek_sender()?.into()),
    }
}

pub(crate) fn receive_with_timestamp(
    socket: &Socket,
    room: &mut [u8],
    wait: bool,
) -> io::Result<(usize, Option<Nanos>)> {
    match socket {
        Socket::Kernel(socket) => messages::receive_with_timestamp(socket, room, wait),
        Socket::Stack(_) => Err(lacks("receive timestamps")),
    }
}

pub(crate) fn read_tx_timestamp(socket: &Socket, limit: Duration) -> io::Result<(u32, TxTimestamp)> {
    match socket {
        Socket::Kernel(socket) => messages::read_tx_timestamp(socket, limit),
        Socket::Stack(_) => Err(lacks("transmit timestamps")),
    }
}

pub(crate) fn zerocopy_completion(
    socket: &Socket,
    limit: Duration,
) -> io::Result<Option<ZerocopyCompletion>> {
    match socket {
        Socket::Kernel(socket) => messages::zerocopy_completion(socket, limit),
        Socket::Stack(_) => Err(lacks("zerocopy sends")),
    }
}

pub(crate) fn set(socket: &Socket, option: SocketOption<'_>) -> io::Result<()> {
    match socket {
        Socket::Kernel(socket) => kernel::set(socket, option),
        Socket::Stack(socket) => socket.set(option),
    }
}

pub(crate) fn options(socket: &Socket, family: Family, is_tcp: bool) -> SocketOptions {
    match socket {
        Socket::Kernel(socket) => kernel::options(socket, family, is_tcp),
        Socket::Stack(socket) => socket.options(),
    }
}

pub(crate) fn congestion_control(socket: &Socket) -> Option<String> {
    match socket {
        Socket::Kernel(socket) => kernel::congestion_control(socket),
        Socket::Stack(socket) => socket.congestion_control(),
    }
}

pub(crate) fn path_mtu(socket: &Socket, family: Family) -> io::Result<u32> {
    match socket {
        Socket::Kernel(socket) => kernel::path_mtu(socket, family),
        Socket::Stack(socket) => Ok(socket.mtu()),
    }
}

pub(crate) fn interface_mtu(socket: &Socket, interface: &str) -> io::Result<u32> {
    match socket {
        Socket::Kernel(socket) => kernel::interface_mtu(socket, interface),
        Socket::Stack(socket) => Ok(socket.mtu()),
    }
}

pub(crate) fn offloads(socket: &Socket, interface: &str) -> Offloads {
    match socket {
        Socket::Kernel(socket) => kernel::offloads(socket, interface),
        Socket::Stack(socket) => socket.offloads(),
    }
}

pub(crate) fn has_hardware_timestamps(socket: &Socket, interface: &str) -> io::Result<bool> {
    match socket {
        Socket::Kernel(socket) => kernel::has_hardware_timestamps(socket, interface),
        Socket::Stack(_) => Ok(false),
    }
}

pub(crate) fn socket_drops(socket: &Socket) -> io::Result<u64> {
    match socket {
        Socket::Kernel(socket) => kernel::socket_drops(socket),
        Socket::Stack(socket) => socket.drops(),
    }
}

pub(crate) fn tcp_info(socket: &Socket) -> io::Result<TcpInfo> {
    match socket {
        Socket::Kernel(socket) => kernel::tcp_info(socket),
        Socket::Stack(socket) => socket.tcp_info(),
    }
}

/// Bytes that have arrived behind a lost segment, in total.
pub(crate) fn out_of_order_bytes(socket: &Socket) -> u64 {
    match socket {
        Socket::Kernel(socket) => kernel::out_of_order_bytes(socket),
        Socket::Stack(_) => 0,
    }
}

pub(crate) fn lacks_acknowledgement(socket: &Socket) -> bool {
    match socket {
        Socket::Kernel(socket) => kernel::lacks_acknowledgement(socket),
        Socket::Stack(_) => false,
    }
}

pub(crate) fn unsent_bytes(socket: &Socket) -> io::Result<Option<u32>> {
    match socket {
        Socket::Kernel(socket) => kernel::unsent_bytes(socket),
        Socket::Stack(socket) => Ok(Some(socket.unsent_bytes())),
    }
}

pub(crate) fn unacknowledged_segments(socket: &Socket) -> io::Result<Option<u32>> {
    match socket {
        Socket::Kernel(socket) => kernel::unacknowledged_segments(socket),
        Socket::Stack(_) => Ok(None),
    }
}
