//! What the system has to do with a listening agent: waiting for a connection, and handing it to a process.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::{accept, serve};
#[cfg(windows)]
pub use windows::{accept, serve};
