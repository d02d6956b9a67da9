//! Errors on a host, with the operation that was attempted.

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
