//! The path MTU of a connected socket.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

/// The level and name of a socket option, by the family of the socket's address.
fn option(socket: &UdpSocket, ipv4: i32, ipv6: i32) -> io::Result<(i32, i32)> {
    let six = socket.local_addr()?.is_ipv6();
    Ok(if six { (libc::IPPROTO_IPV6, ipv6) } else { (libc::IPPROTO_IP, ipv4) })
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
    let set = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), length) };
    if set < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The kernel's current path MTU to the peer, bytes.
pub(crate) fn path_mtu(socket: &UdpSocket) -> io::Result<u32> {
    let (level, name) = option(socket, libc::IP_MTU, libc::IPV6_MTU)?;
    let mut value: libc::c_int = 0;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: there is room for an integer as long as said, which outlives the call.
    let got = unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, name, (&raw mut value).cast(), &raw mut length)
    };
    if got < 0 { Err(io::Error::last_os_error()) } else { Ok(value as u32) }
}
