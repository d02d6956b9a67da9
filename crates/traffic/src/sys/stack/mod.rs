//! A TCP/IP stack within this process: smoltcp at the end of a link, behind the calls that the engine makes of sockets.
//!
//! Whoever sends, receives or waits moves its packets, as with a kernel's stack. A thread in the background looks every
//! few milliseconds while nobody waits, for timers and for what arrives meanwhile.

mod accept;
mod background;
mod config;
mod connection;
mod counters;
mod datagram;
mod device;
mod frame;
mod neighbours;
mod options;
mod packet_socket;
mod packets;
mod slot;
mod socket;
mod wait;
mod waiter;

pub use config::StackConfig;
pub(super) use packets::Stack;
pub(crate) use socket::StackSocket;

use std::io;
use std::sync::{Arc, OnceLock};

static OWN: OnceLock<Arc<Stack>> = OnceLock::new();

/// From now on, each socket of a trial in this process is one of a stack at this end of a link. Call it once, before
/// anything else.
pub fn use_stack(config: &StackConfig) -> io::Result<()> {
    let stack = Stack::new(config)?;
    background::start(&stack)?;
    OWN.set(stack).map_err(|_| io::Error::other("this process has a stack already"))
}

/// The stack of this process; `None` if its sockets are the kernel's.
pub(super) fn own() -> Option<&'static Arc<Stack>> {
    OWN.get()
}

/// The error of what smoltcp does not have.
pub(super) fn lacks(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, format!("smoltcp has no {what}"))
}

fn would_block<T>() -> io::Result<T> {
    Err(io::ErrorKind::WouldBlock.into())
}
