//! The interface to the operating system: all platform code and all `unsafe` of the engine is in this module.
//!
//! Every system has the same names: `linux` is complete, `windows` uses Winsock, `bsd` uses POSIX alone. Code that
//! the last two share is in `plain` (one message per call) and `unsupported` (Linux-only functions, which return an
//! error with a reason).

#[cfg(test)]
pub mod counting;

mod cmsg;
mod types;

#[cfg(any(test, not(target_os = "linux")))]
mod plain;
#[cfg(unix)]
mod posix;
#[cfg(unix)]
mod unix;

#[cfg(not(target_os = "linux"))]
mod unsupported;

#[cfg(not(any(target_os = "linux", windows)))]
mod bsd;
#[cfg(target_os = "linux")]
pub(crate) mod linux;
#[cfg(windows)]
mod windows;

#[cfg(not(any(target_os = "linux", windows)))]
pub use bsd::*;
#[cfg(target_os = "linux")]
pub use linux::*;
#[cfg(windows)]
pub use windows::*;

#[cfg(not(target_os = "linux"))]
pub use plain::*;
#[cfg(unix)]
pub use posix::*;
#[cfg(unix)]
pub use unix::*;
#[cfg(not(target_os = "linux"))]
pub use unsupported::*;

pub use cmsg::{RecvMeta, TxTimestamp};
pub use types::*;
