//! Why a greeting fails.

use crate::tls::TlsError;
use std::io;

/// Why an agent does not serve this coordinator.
#[derive(Debug, thiserror::Error)]
pub enum GreetingError {
    /// What listens there does not greet as an agent.
    #[error("it is not a stacklab agent")]
    NoAgent,
    /// The agent has greeted, and the rest of the greeting did not get through.
    #[error(
        "the handshake was cut short: the path loses packets or is too slow, or the agent ended; try again"
    )]
    CutShort,
    /// The agent wants a key, and there is none.
    #[error(
        "the agent requires its key, which it printed at its start: pass it in a file with --key-file, or as {}",
        crate::key::VARIABLE
    )]
    NoKey,
    /// The agent is open, and a key was given.
    #[error(
        "the agent is open and cannot prove that it has this key: leave the key out, or start the agent without --open"
    )]
    Open,
    /// The agent did not prove that it knows the key.
    #[error("it does not know the key: another program listens there")]
    Unproved,
    /// The agent says why it refuses.
    #[error("it refuses: {0}")]
    Refused(String),
    /// It answers in plain and TLS was asked for, or its TLS key is another.
    #[error("{0}")]
    Tls(TlsError),
    /// The connection ended.
    #[error("{0}")]
    Connection(#[from] io::Error),
}

impl From<TlsError> for GreetingError {
    fn from(error: TlsError) -> Self {
        match error {
            TlsError::Connection(error) => not_an_agent(error),
            error => GreetingError::Tls(error),
        }
    }
}

/// The error for an agent that does not greet.
pub(super) fn not_an_agent(error: io::Error) -> GreetingError {
    match error.kind() {
        io::ErrorKind::InvalidData
        | io::ErrorKind::TimedOut
        | io::ErrorKind::UnexpectedEof
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::BrokenPipe => GreetingError::NoAgent,
        _ => GreetingError::Connection(error),
    }
}
