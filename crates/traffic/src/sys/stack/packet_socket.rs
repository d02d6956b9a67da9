//! A packet socket: whole frames of an interface.

use crate::sys::SocketOption;
use crate::sys::linux::options;
use socket2::{Domain, Socket, Type};
use std::ffi::c_int;
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::AsRawFd;

/// Half of the memory that frames may take that have not left, bytes: as a socket of Linux has by default, and less
/// than the queue of a link with a rate holds.
const SEND_BUFFER: usize = 106_496;

/// Opens one that never blocks, at an interface that is there, with a receive buffer of this size, bytes, where that
/// is permitted.
pub(super) fn open_packet_socket(interface: &str, buffer: usize) -> io::Result<Socket> {
    // Without a protocol it receives nothing before it is bound.
    let socket = Socket::new(Domain::PACKET, Type::RAW, None)?;
    socket.set_nonblocking(true)?;
    options::set(&socket, SocketOption::ReceiveBuffer(buffer))?;
    socket.set_send_buffer_size(SEND_BUFFER)?;
    ignore_outgoing(&socket)?;
    bind(&socket, interface)?;
    Ok(socket)
}

/// PACKET_IGNORE_OUTGOING: frames that it sends itself are not received.
fn ignore_outgoing(socket: &Socket) -> io::Result<()> {
    let on: c_int = 1;
    // SAFETY: the descriptor is open, and the kernel reads one integer, which outlives the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_IGNORE_OUTGOING,
            (&raw const on).cast(),
            size_of::<c_int>() as libc::socklen_t,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Receives frames of all protocols at an interface.
fn bind(socket: &Socket, interface: &str) -> io::Result<()> {
    let index = nix::net::if_::if_nametoindex(interface)?;
    // SAFETY: `sockaddr_ll` is plain data, for which all zeros is valid.
    let mut address: libc::sockaddr_ll = unsafe { MaybeUninit::zeroed().assume_init() };
    address.sll_family = libc::AF_PACKET as libc::c_ushort;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index as c_int;
    // SAFETY: the descriptor is open, and the kernel reads one address of this size, which outlives the call.
    let result = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// PACKET_STATISTICS: frames since the last call that the socket had no room for.
pub(super) fn take_drops(socket: &Socket) -> io::Result<u64> {
    let mut statistics = MaybeUninit::<libc::tpacket_stats>::zeroed();
    let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
    // SAFETY: the descriptor is open, and the kernel writes at most `length` bytes to the structure, which is that
    // large; both outlive the call.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            statistics.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it holds two integers, valid whatever their bytes; they were zeroed and perhaps overwritten.
    Ok(u64::from(unsafe { statistics.assume_init() }.tp_drops))
}

/// SIOCOUTQ: bytes of memory of frames that were sent and have not left.
pub(super) fn outgoing_bytes(socket: &Socket) -> io::Result<usize> {
    let mut bytes: c_int = 0;
    // SAFETY: the descriptor is open, and the kernel writes one integer, which outlives the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(bytes.max(0) as usize) }
}
