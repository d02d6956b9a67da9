//! A process by a descriptor, which never means another process of the same ID.

use nix::sys::signal::Signal;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A process (pidfd_open(2), Linux 5.3).
#[derive(Debug)]
pub(crate) struct PidFd(OwnedFd);

impl PidFd {
    /// The process with this ID, which has not been waited for.
    pub fn open(id: u32) -> io::Result<Self> {
        // SAFETY: the call takes numbers only. What it returns is a new descriptor, or negative.
        let opened = unsafe { libc::syscall(libc::SYS_pidfd_open, id, 0) };
        match i32::try_from(opened) {
            // SAFETY: the kernel has just made it, and nobody else has it.
            Ok(number @ 0..) => Ok(PidFd(unsafe { OwnedFd::from_raw_fd(number) })),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        let none = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: the descriptor is open, and without signal information the kernel makes its own.
        let sent = unsafe {
            libc::syscall(libc::SYS_pidfd_send_signal, self.0.as_raw_fd(), signal as libc::c_int, none, 0)
        };
        if sent == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}
