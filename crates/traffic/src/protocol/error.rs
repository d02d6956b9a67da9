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
    /// The agent sent an answer of another kind.
    #[error("the agent on {host} sent an unexpected answer to `{asked}`: is it another version of stacklab?")]
    Confused {
        /// Name of the host.
        host: String,
        /// The request.
        asked: String,
    },
    /// The agent answered a request that nobody made, or one twice.
    #[error(
        "the agent on {host} sent an answer to request {id}, which was not made or already answered: it is faulty or hostile"
    )]
    Unasked {
        /// Name of the host.
        host: String,
        /// The request's id.
        id: u64,
    },
    /// The agent wrote a line that is not an answer.
    #[error("the agent on {host} sent an answer that cannot be parsed: {start}")]
    Unreadable {
        /// Name of the host.
        host: String,
        /// The start of the line.
        start: String,
    },
    /// The user interrupted.
    #[error("interrupted")]
    Interrupted,
}
