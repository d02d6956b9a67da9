//! What takes a packet from a link into a router that is a namespace.

use crate::Cell;
use crate::names::named;

named! {
    pub enum RouterQueue("router queue") {
        /// No queue: the thread that sends a packet also forwards it, through both routers.
        Inline = "inline",
        /// A kernel thread of each ingress takes packets from a ring, which drops what it has no room for.
        Thread = "thread",
        /// The backlog of the receiver's processors, into which the sender's thread puts packets (receive packet
        /// steering).
        Rps = "rps",
    }
}

impl RouterQueue {
    pub fn of(cell: &Cell) -> Self {
        cell.settings.router_queue.unwrap_or(RouterQueue::Inline)
    }
}
