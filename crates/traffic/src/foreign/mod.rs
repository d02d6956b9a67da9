//! Streams in other programs' formats, by the engine's send loop and receive loop: each stream has a socket and a
//! thread. Who opens them, and who says when they end, is the caller's.

mod counts;
mod own_host;
mod stream;

pub use crate::engine::header::{ForeignFormat, Numbered};
pub use crate::engine::socket_options::renounce_privileges;
pub use counts::{Counted, ReceivedCounts, SentCounts, Way};
pub use own_host::OwnHost;
pub use stream::Stream;

/// Whether this system has a congestion control without loading a module for it.
pub fn has_congestion_control(name: &str) -> bool {
    crate::sys::has_congestion_control(name)
}

/// Whether this process may choose a congestion control; an ordinary user may be allowed few of them.
pub fn may_choose_congestion_control(name: &str) -> bool {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
    socket.is_ok_and(|socket| crate::sys::set_congestion_control(&socket, name).is_ok())
}

/// Nanoseconds of this host's clock.
pub fn now_ns() -> u64 {
    crate::sys::now_ns()
}
