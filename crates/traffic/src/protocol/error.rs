//! Why an agent gives no answer.

use std::time::Duration;

/// Why an agent gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The host answered that it could not.
    #[error("{host} {reason}")]
    Failed {
        /// Name of the host.
        host: String,
        /// What was attempted and why it failed.
        reason: String,
    },
    /// The agent's byte stream ended.
    #[error(
        "{host} disconnected during the request to {asked}: check whether its agent was killed, or the path to it is down"
    )]
    Gone {
        /// Name of the host.
        host: String,
        /// The request.
        asked: String,
    },
    /// The agent did not answer in time.
    #[error("{host} did not answer the request to {asked} within {} s: check whether it is overloaded, or the path to it is too slow or loses too much", limit.as_secs())]
    Silent {
        /// Name of the host.
        host: String,
        /// The request.
        asked: String,
        /// The time limit.
        limit: Duration,
    },
    /// The agent sent what is not an answer to a request under way.
    #[error("the agent on {host} sent {what}")]
    Faulty {
        /// Name of the host.
        host: String,
        /// Its answer, and what that may mean.
        what: String,
    },
    /// The user interrupted.
    #[error("interrupted")]
    Interrupted,
}
