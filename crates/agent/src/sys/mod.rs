//! System-specific parts of a listening agent: accepting a connection, passing it to a process, and a file for its
//! owner only.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use unix::{accept, others_may_read, own_file, serve};
#[cfg(windows)]
pub(crate) use windows::{accept, others_may_read, own_file, serve};
