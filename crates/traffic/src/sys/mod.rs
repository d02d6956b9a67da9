//! The one seam to the operating system: all platform code and all `unsafe` of the engine is below here.
//!
//! Every system has the same names: `linux` in full, `windows` by Winsock, `bsd` by POSIX alone. What the last
//! two have in common because they lack something is in `plain` (a message a call) and `unsupported` (what only Linux
//! does, refused with a reason).

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
mod linux;
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
