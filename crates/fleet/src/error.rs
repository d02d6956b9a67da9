//! Errors of a fleet.

/// Everything that can go wrong with a fleet.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The request contradicts itself, or names something that does not exist.
    #[error("{0}")]
    Usage(String),
    /// The store cannot be used.
    #[error("could not {attempted} in the fleet store {place}: {reason}")]
    Store {
        /// The failed step.
        attempted: &'static str,
        /// The store, without its password.
        place: String,
        /// The engine's reason.
        reason: String,
    },
}
