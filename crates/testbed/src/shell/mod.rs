//! Commands on the hosts of a testbed that is inside a guest: `stacklab lab enter` asks, the testbed's holder passes on what
//! it says, and the guest runs the command where this machine's files are.
//!
//! ```text
//! client ── socket ── relay (the holder) ── mux ── serve (the guest) ── inside (the command's process)
//! ```

mod client;
mod frames;
mod inside;
mod relay;
pub(crate) mod serve;
mod window;

pub use client::enter_guest;
pub use frames::DOORS;
pub use inside::become_command;
pub use relay::listen;
