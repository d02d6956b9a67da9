//! Errors of a fleet.

use stacklab_campaign::CampaignError;

/// Everything that can go wrong with a fleet.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The request contradicts itself, or names something that does not exist.
    #[error("{0}")]
    Usage(String),
    /// The store cannot be used.
    #[error("could not {attempted}: fleet store {place}: {reason}")]
    Store {
        /// The failed step.
        attempted: &'static str,
        /// The store, without its password.
        place: String,
        /// The engine's reason.
        reason: String,
    },
    /// NATS cannot be used now.
    #[error("NATS at {servers} does not answer: {reason}")]
    Wire {
        /// The servers, without passwords.
        servers: String,
        /// The reason.
        reason: String,
    },
    /// An agent cannot be used, or could not do what it was asked.
    #[error("{agent}: {reason}")]
    Agent {
        /// Its name.
        agent: String,
        /// The reason.
        reason: String,
    },
    /// A block could not be measured, or its runs have no findings.
    #[error("{0}")]
    Campaign(#[from] CampaignError),
    /// A step on this machine failed.
    #[error("could not {attempted}: {reason}")]
    System {
        /// The failed step.
        attempted: String,
        /// The system's reason.
        reason: std::io::Error,
    },
    /// The user interrupted. What is measured now is committed when the campaign is continued.
    #[error("interrupted; blocks that are being measured are kept by their agents")]
    Interrupted,
}

impl FleetError {
    pub(crate) fn agent(agent: &str, reason: impl Into<String>) -> Self {
        FleetError::Agent { agent: agent.to_owned(), reason: reason.into() }
    }
}
