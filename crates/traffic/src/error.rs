//! What went wrong on a host, with what was attempted.

use std::io;

/// An operation of the engine that failed.
#[derive(Debug, thiserror::Error)]
#[error("could not {attempted}: {source}")]
pub struct EngineError {
    /// What was attempted and on which addresses.
    pub attempted: String,
    /// What the system said.
    pub source: io::Error,
}

/// Says what was attempted when it fails.
pub(crate) trait Attempt<T> {
    /// Names the attempt, in the infinitive: `connect tcp to [::1]:5`.
    fn attempt(self, what: impl FnOnce() -> String) -> Result<T, EngineError>;
}

impl<T> Attempt<T> for io::Result<T> {
    fn attempt(self, what: impl FnOnce() -> String) -> Result<T, EngineError> {
        self.map_err(|source| EngineError { attempted: what(), source })
    }
}
