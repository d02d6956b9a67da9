//! Commands on the hosts of a testbed in a guest. `stacklab lab enter` sends the request, the testbed's holder relays
//! it, and the guest runs the command, with this machine's files if it can show them.
//!
//! ```text
//! client ── socket ── relay (the holder) ── mux ── serve (the guest) ── inside (the command's process)
//! ```

mod client;
pub(crate) mod frames;
mod inside;
mod relay;
pub(crate) mod serve;

pub use client::{Ended, enter_guest, run_in_guest};
pub use frames::MOST_COMMANDS;
pub use inside::become_command;
pub use relay::listen;
