//! The traffic engine and the agent that runs it on a host.
//!
//! | module | contents |
//! |---|---|
//! | [`protocol`] | the messages between coordinator and agent, and the coordinator's client |
//! | [`agent`] | the agent: does what a coordinator asks |
//! | [`timing`] | how long a trial and its steps may take |
//! | [`sign_of_life`] | a word to the user while a step takes long |
//! | [`waiting`] | a word to the user while a host says nothing |
//! | [`peer`] | exchanges with peers of other protocols |
//! | `engine` | the send loop and the receive loop, sender and receiver |
//! | [`stats`] | delays, sequence numbers, interval series, clock offset and skew |
//! | [`fuzzing`] | parsers of untrusted input, for fuzz targets |
//! | [`foreign`] | streams in other programs' formats, by the engine's loops |
//! | [`host`] | facts, counters, CPU time and noise floor of a host |
//! | `sys` | the operating system: all platform code and all `unsafe` |
//!
//! IPv4 and IPv6 share one code path. The family follows from the address; only `sys` has family-specific code.

pub mod agent;
pub mod foreign;
pub mod fuzzing;
pub mod host;
pub mod peer;
pub mod protocol;
pub mod sign_of_life;
pub mod stats;
pub mod timing;
pub mod waiting;

mod engine;
#[cfg(test)]
mod fixtures;
mod sys;

#[cfg(target_os = "linux")]
pub use sys::stack::{StackConfig, use_stack};

use std::io;

/// An operation of the engine that failed.
#[derive(Debug, thiserror::Error)]
#[error("could not {attempted}: {source}")]
pub struct EngineError {
    /// What was attempted and on which addresses.
    pub attempted: String,
    /// The system's error.
    pub source: io::Error,
}

impl From<EngineError> for String {
    fn from(error: EngineError) -> String {
        error.to_string()
    }
}

/// Adds the attempted operation to an error.
pub(crate) trait Attempt<T> {
    /// Names the attempt, in the infinitive: `connect tcp to [::1]:5`.
    fn attempt(self, what: impl FnOnce() -> String) -> Result<T, EngineError>;
}

impl<T> Attempt<T> for io::Result<T> {
    fn attempt(self, what: impl FnOnce() -> String) -> Result<T, EngineError> {
        self.map_err(|source| EngineError { attempted: what(), source })
    }
}
