//! What sockets have beyond the standard library: packet capture (packet(7)), and the path MTU of a connected socket.

use std::io;
use std::mem::{size_of, zeroed};
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, FromRawFd};
use std::time::Duration;

/// The maximum number of bytes that are kept of a frame.
const SNAP: usize = 2048;

/// Captures every frame on an interface of the namespace in which it was opened. The socket has the type of another
/// kind, because timeout and `recv` are the same for all.
#[derive(Debug)]
pub(crate) struct Capture(UdpSocket);

impl Capture {
    /// Starts to capture on an interface, given its index.
    pub(crate) fn open(index: u32) -> io::Result<Self> {
        let every = (libc::ETH_P_ALL as u16).to_be();
        // SAFETY: socket takes numbers.
        let socket =
            unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, every.into()) };
        succeeded(socket)?;
        // SAFETY: the kernel has just given this number, and nobody else has it.
        let socket = unsafe { UdpSocket::from_raw_fd(socket) };
        // SAFETY: `sockaddr_ll` is plain C data, for which all zeros is a valid value.
        let mut place: libc::sockaddr_ll = unsafe { zeroed() };
        place.sll_family = libc::AF_PACKET as u16;
        place.sll_protocol = every;
        place.sll_ifindex = index as i32;
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the address is as long as said, and outlives the call.
        succeeded(unsafe { libc::bind(socket.as_raw_fd(), (&raw const place).cast(), length) })?;
        Ok(Capture(socket))
    }

    pub(crate) fn next(&self, patience: Duration) -> io::Result<Option<Vec<u8>>> {
        self.0.set_read_timeout(Some(patience))?;
        let mut frame = vec![0; SNAP];
        match self.0.recv(&mut frame) {
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Ok(None)
            }
            got => {
                frame.truncate(got?);
                Ok(Some(frame))
            }
        }
    }
}

/// Sets the don't-fragment mode: packets that exceed the path MTU are refused, not fragmented.
pub(crate) fn never_fragment(socket: &UdpSocket) -> io::Result<()> {
    discover(socket, libc::IP_PMTUDISC_DO)
}

/// Sets the probe mode: packets up to the interface's MTU are sent unfragmented, regardless of the known path MTU.
pub(crate) fn probe_path(socket: &UdpSocket) -> io::Result<()> {
    discover(socket, libc::IP_PMTUDISC_PROBE)
}

fn discover(socket: &UdpSocket, value: libc::c_int) -> io::Result<()> {
    let (level, name) = option(socket, libc::IP_MTU_DISCOVER, libc::IPV6_MTU_DISCOVER)?;
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the option is an integer as long as said, which outlives the call.
    succeeded(unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), length) })
}

/// The kernel's current path MTU to the peer, bytes.
pub(crate) fn path_mtu(socket: &UdpSocket) -> io::Result<u32> {
    let (level, name) = option(socket, libc::IP_MTU, libc::IPV6_MTU)?;
    let mut value: libc::c_int = 0;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    let (place, room) = ((&raw mut value).cast(), &raw mut length);
    // SAFETY: there is room for an integer as long as said, which outlives the call.
    succeeded(unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, place, room) })?;
    Ok(value as u32)
}

/// The level and name of a socket option, by the family of the socket's address.
fn option(socket: &UdpSocket, ipv4: i32, ipv6: i32) -> io::Result<(i32, i32)> {
    let six = socket.local_addr()?.is_ipv6();
    Ok(if six { (libc::IPPROTO_IPV6, ipv6) } else { (libc::IPPROTO_IP, ipv4) })
}

fn succeeded(answer: libc::c_int) -> io::Result<()> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
