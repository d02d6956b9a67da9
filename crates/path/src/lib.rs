//! Dual-stack hosts as seen from this machine over each family, without an agent at the other end.
//!
//! [`measure`] probes hosts in rounds: ICMP echoes, DNS, and HTTP requests (`probe`). `findings` says of the rounds
//! whether each family works and what differs, `print` and `export` write it.

mod export;
mod findings;
mod metric;
mod print;
mod probe;
mod progress;
mod target;
mod url;
mod watch;

pub use target::{Target, look_up_target, pairs, system_resolvers};
pub use watch::{Settings, WatchResult, measure};

/// Parsers of untrusted input, for the fuzz targets (`fuzz/`).
pub mod fuzzing {
    pub use crate::probe::body::{ResponseHead as HttpHead, read_head as http_head};
    pub use crate::probe::dns::read as dns_addresses;
}

use std::io;

/// Why hosts were not measured, or not to the end.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// A host, or a file of pairs, cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// A name has no address.
    #[error("{0}")]
    NoAddress(String),
    /// This host has no certificates of authorities to check those of servers with.
    #[error("{0}")]
    Certificates(String),
    /// The user interrupted before the end of the first round.
    #[error("interrupted")]
    Interrupted,
    /// The exporter cannot listen on its address.
    #[error("could not listen on the address of --metrics: {0}")]
    Listen(io::Error),
    /// Output cannot be written.
    #[error("could not write to standard output: {0}")]
    Output(io::Error),
}
