//! Readiness of several sockets.

use crate::sys::linux::epoll::EpollSet;
use crate::sys::linux::socket::Socket;
use crate::sys::{Interest, plain, stack};
use std::io;
use std::time::Duration;

/// Readiness of several sockets: epoll for this kernel's, and one by one for a stack's.
pub(crate) enum Ready {
    Kernel(EpollSet),
    Stack(plain::Ready),
}

impl Ready {
    pub(crate) fn watch<'a>(sockets: impl Iterator<Item = &'a Socket>, what: Interest) -> io::Result<Self> {
        if stack::own().is_some() {
            return Ok(Ready::Stack(plain::Ready::watch(sockets, what)?));
        }
        Ok(Ready::Kernel(EpollSet::watch(sockets, what)?))
    }

    /// The next ready socket, waiting at most `limit`; `None` on a timeout.
    pub(crate) fn next(&mut self, limit: Duration) -> io::Result<Option<usize>> {
        match self {
            Ready::Kernel(ready) => ready.next(limit),
            Ready::Stack(ready) => ready.next(limit),
        }
    }

    pub(crate) fn again(&mut self, place: usize) {
        match self {
            Ready::Kernel(ready) => ready.again(place),
            Ready::Stack(ready) => ready.again(place),
        }
    }

    pub(crate) fn forget(&mut self, socket: &Socket) -> io::Result<()> {
        match self {
            Ready::Kernel(ready) => ready.forget(socket),
            Ready::Stack(ready) => ready.forget(socket),
        }
    }
}
