//! POSIX socket options.

use socket2::Socket;
use stacklab_model::Family;
use std::ffi::c_int;
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::AsRawFd;

/// Reads a fixed-size socket option. Returns how many bytes the kernel filled.
pub(super) fn option<T>(
    socket: &Socket,
    level: c_int,
    name: c_int,
    value: &mut MaybeUninit<T>,
) -> io::Result<usize> {
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the descriptor is open for as long as `socket` is borrowed, and the kernel writes at most `length`
    // bytes to `value`, which is that large.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, name, value.as_mut_ptr().cast(), &raw mut length)
    };
    if result == 0 { Ok(length as usize) } else { Err(io::Error::last_os_error()) }
}

pub(super) fn number(socket: &Socket, level: c_int, name: c_int) -> io::Result<u32> {
    let mut value = MaybeUninit::<c_int>::zeroed();
    option(socket, level, name, &mut value)?;
    // SAFETY: an integer is valid whatever its bytes; it was zeroed and perhaps overwritten.
    let value = unsafe { value.assume_init() };
    u32::try_from(value).map_err(|_| io::Error::other(format!("the kernel said {value}")))
}

pub(super) fn set_option<T>(socket: &Socket, level: c_int, name: c_int, value: T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the descriptor is open for as long as `socket` is borrowed, and the kernel reads at most `length` bytes
    // of `value`.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The maximum segment size: the requested one before the connection, then the sending MSS without TCP options.
pub(crate) fn mss(socket: &Socket) -> io::Result<u32> {
    number(socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG)
}

/// Limits the maximum segment size of a future connection, in both directions.
pub(crate) fn set_mss(socket: &Socket, bytes: u32) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG, bytes as c_int)
}

/// The traffic class (DSCP and ECN) of sent packets.
pub(crate) fn traffic_class(socket: &Socket, family: Family) -> io::Result<u32> {
    let (level, name) = traffic_class_option(family);
    number(socket, level, name)
}

pub(crate) fn set_traffic_class(socket: &Socket, family: Family, byte: u8) -> io::Result<()> {
    let (level, name) = traffic_class_option(family);
    set_option(socket, level, name, c_int::from(byte))
}

fn traffic_class_option(family: Family) -> (c_int, c_int) {
    match family {
        Family::Ipv4 => (libc::IPPROTO_IP, libc::IP_TOS),
        Family::Ipv6 => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
    }
}
