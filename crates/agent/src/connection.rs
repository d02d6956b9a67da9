//! A connection to an agent's host, and why none is had.

use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use stacklab_model::ScopedAddr;
use stacklab_traffic::host::zone;
use stacklab_traffic::host::{limit_segments, notice_a_dead_peer};
use stacklab_traffic::protocol::AgentError;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Time limit for opening the control connection to an agent's host.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Why no agent is reached.
#[derive(Debug, thiserror::Error)]
pub enum ReachError {
    /// The request contradicts itself, or names something that does not exist.
    #[error("{0}")]
    Usage(String),
    /// Nothing answers, or no agent.
    #[error("{0}")]
    Unreachable(String),
    /// The agent cannot be used.
    #[error("{0}")]
    Agent(#[from] AgentError),
}

/// Opens a connection within five seconds, from this address if there is one.
pub(crate) fn connect(to: SocketAddr, from: Option<&ScopedAddr>) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
    if let Some(from) = from {
        socket.bind(&zone::socket_addr(from, 0)?.into())?;
    }
    limit_segments(&socket);
    socket.connect_timeout(&SockAddr::from(to), CONNECT_TIMEOUT)?;
    socket.set_tcp_nodelay(true)?;
    notice_a_dead_peer(&socket)?;
    Ok(socket.into())
}
