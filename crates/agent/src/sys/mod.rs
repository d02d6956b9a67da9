//! System-specific parts of a listening agent: accepting a connection and passing it to a process.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::{accept, serve};
#[cfg(windows)]
pub use windows::{accept, serve};
