//! Calls of this kernel's sockets.

use crate::sys::DONTWAIT;
use socket2::Socket;
use std::ffi::c_int;
use std::io::{self, Read};
use std::os::fd::AsRawFd;

/// Sends as much as fits without blocking; `None` if nothing fits.
pub(super) fn send_now(socket: &Socket, message: &[u8], flags: c_int) -> io::Result<Option<usize>> {
    match socket.send_with_flags(message, flags | DONTWAIT) {
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
            Ok(None)
        }
        sent => sent.map(Some),
    }
}

/// Receives; `WouldBlock` after the socket's timeout.
pub(super) fn receive(mut socket: &Socket, room: &mut [u8]) -> io::Result<usize> {
    socket.read(room)
}

/// Receives without blocking; `WouldBlock` without data.
pub(crate) fn receive_now(socket: &Socket, room: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the descriptor is open for as long as `socket` is borrowed, and the kernel writes at most `room.len()`
    // bytes to `room`.
    let received = unsafe { libc::recv(socket.as_raw_fd(), room.as_mut_ptr().cast(), room.len(), DONTWAIT) };
    if received < 0 { Err(io::Error::last_os_error()) } else { Ok(received as usize) }
}

pub(crate) fn is_out_of_buffers(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOBUFS)
}
