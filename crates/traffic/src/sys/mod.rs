//! The interface to the operating system: all platform code and all `unsafe` of the engine is in this module.
//!
//! Both systems have the same names. `linux` is complete; `windows` uses Winsock, with `plain` (one message per call)
//! and `unsupported` (Linux-only functions, which return an error with a reason).
#![allow(unsafe_code)]

#[cfg(test)]
pub(crate) mod fixtures;

mod types;

#[cfg(any(test, not(target_os = "linux")))]
mod plain;
#[cfg(unix)]
mod unix;

#[cfg(not(target_os = "linux"))]
mod unsupported;

#[cfg(target_os = "linux")]
pub(crate) mod linux;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub use linux::*;
#[cfg(windows)]
pub(crate) use windows::*;

#[cfg(not(target_os = "linux"))]
pub(crate) use plain::*;
#[cfg(unix)]
pub(crate) use unix::*;
#[cfg(not(target_os = "linux"))]
pub(crate) use unsupported::*;

pub(crate) use types::*;

use socket2::Socket;
use std::io;
use std::mem::MaybeUninit;

/// Reads what waits at a socket, and leaves it there. Returns how many bytes it wrote.
pub(crate) fn peek(socket: &Socket, room: &mut [u8]) -> io::Result<usize> {
    let room: *mut [u8] = room;
    // SAFETY: both have the same layout, and the call writes initialised bytes alone.
    socket.peek(unsafe { &mut *(room as *mut [MaybeUninit<u8>]) })
}
