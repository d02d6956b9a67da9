//! The path MTU of a connected socket.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

/// Level and name of an option, by the family of the socket's address.
fn option(socket: &UdpSocket, ipv4: i32, ipv6: i32) -> io::Result<(i32, i32)> {
    let six = socket.local_addr()?.is_ipv6();
    Ok(if six { (libc::IPPROTO_IPV6, ipv6) } else { (libc::IPPROTO_IP, ipv4) })
}

/// Has packets that are too large for the path be refused and not cut.
pub(crate) fn never_fragment(socket: &UdpSocket) -> io::Result<()> {
    discover(socket, libc::IP_PMTUDISC_DO)
}

/// Has packets sent as large as the interface takes, uncut, whatever is known of the path.
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

/// The path MTU to the peer as the kernel knows it, bytes.
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
