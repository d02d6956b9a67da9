//! The threads that wait for a stack.

use crate::sys::{Interest, Nanos};
use nix::sys::eventfd::EventFd;
use std::sync::Arc;

/// A thread that waits.
pub(super) struct Waiter {
    pub id: u64,
    /// The sockets that it waits for, and for what.
    pub sockets: Vec<(usize, Interest)>,
}

/// The thread at the end of the link.
pub(super) struct Leader {
    pub id: u64,
    /// When it began to wait.
    pub since_ns: Nanos,
    /// Whether it also waits for room at the link.
    pub awaits_room: bool,
    pub bell: Option<Arc<EventFd>>,
}

impl Leader {
    pub(super) fn wake(&self) {
        if let Some(bell) = &self.bell {
            // It can only be full of earlier rings.
            let _ = bell.write(1);
        }
    }
}
