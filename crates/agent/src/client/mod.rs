//! The client of a listening agent: the host's addresses, the connection, and the handshake with the key.

mod address;

pub use address::{AgentAddress, addresses, both_families};

use crate::advice::connect_advice;
use crate::auth::{AuthError, handshake, show_address};
use crate::channel::Channel;
use crate::key::Key;
use crate::tls::{self, Fingerprint};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use stacklab_model::{Family, ScopedAddr};
use stacklab_traffic::host::{limit_segments, notice_a_dead_peer, zone};
use stacklab_traffic::protocol::{AgentClient, AgentError};
use std::io::{self, BufWriter};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Time limit for opening the control connection to an agent's host.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// Handshakes that are tried when one is cut short.
const HANDSHAKES: u32 = 2;
/// Time limit for an agent's handshake.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);

/// The host to reach, and how.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// Its name or addresses, separated by commas.
    pub host: &'a str,
    /// The port.
    pub port: u16,
    /// The only family; default: both, or that of `from`.
    pub family: Option<Family>,
    /// The address of this host to measure from.
    pub from: Option<&'a ScopedAddr>,
    /// The file with the agent's key.
    pub key_file: Option<&'a Path>,
    /// TLS with the agent of this fingerprint.
    pub tls: Option<Fingerprint>,
}

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

/// Asks a person for the key of an agent, if there is one.
pub type AskKey<'a> = &'a dyn Fn(&AgentAddress) -> Option<io::Result<String>>;

/// Connects to the agent on the first address of the host that accepts. `others` are further addresses of the host, to
/// and from which there will be traffic.
///
/// # Errors
/// The reasons of all addresses, with what to do.
pub fn reach(
    target: &Target,
    others: &[AgentAddress],
    ask_key: AskKey,
    interrupted: &'static AtomicBool,
) -> Result<(AgentClient, AgentAddress), ReachError> {
    let &Target { host, port, from, .. } = target;
    let mut key = Key::given(target.key_file).map_err(ReachError::Usage)?;
    // With --tls nothing is said in plain.
    let channel = |stream: TcpStream| -> Result<Channel, AuthError> {
        match target.tls {
            Some(fingerprint) => Ok(tls::secure(stream, fingerprint, Instant::now() + HANDSHAKE_LIMIT)?),
            None => Ok(stream.into()),
        }
    };
    let mut failed = Vec::new();
    for address in addresses(target)? {
        let stream = match connect(&address, from) {
            Ok(stream) => stream,
            Err(reason) => {
                failed.push((address, reason));
                continue;
            }
        };
        let mut tickets = Vec::new();
        for other in others.iter().filter(|other| **other != address) {
            tickets.push(
                asking(
                    &mut key,
                    (other, ask_key),
                    || channel(connect(other, None)?),
                    |channel, key| show_address(channel, key, HANDSHAKE_LIMIT),
                )?
                .0,
            );
        }
        // A person may have typed the key in between, for longer than the agent waits.
        let mut first = Some(stream).filter(|_| tickets.is_empty());
        let again = || channel(first.take().map_or_else(|| connect(&address, from), Ok)?);
        let ((), channel) = asking(&mut key, (&address, ask_key), again, |channel, key| {
            handshake(channel, key, tickets.clone(), HANDSHAKE_LIMIT)
        })?;
        // TCP_NODELAY: a request is sent at once.
        let output = BufWriter::new(channel.clone());
        let mut agent = AgentClient::new(address.to_string(), channel, output, interrupted);
        agent.hello().map_err(|error| not_an_agent(error, &address))?;
        return Ok((agent, address));
    }
    let port_option = if port == crate::PORT { String::new() } else { format!(" :{port}") };
    let service = format!("`stacklab agent --listen{port_option}`");
    Err(unreachable("no agent could be reached", &failed, &service, host, port))
}

/// Why none of a host's addresses answers, and what to do, by the reasons.
pub fn unreachable(
    what: &str,
    failed: &[(AgentAddress, io::Error)],
    service: &str,
    host: &str,
    port: u16,
) -> ReachError {
    let reasons: Vec<String> =
        failed.iter().map(|(address, reason)| format!("{address}: {reason}")).collect();
    let mut advice: Vec<String> = failed
        .iter()
        .map(|(address, reason)| connect_advice(reason, address.socket.is_ipv6(), service, host, port))
        .collect();
    advice.dedup();
    ReachError::Unreachable(format!("{what} ({}): {}", reasons.join("; "), advice.join("; ")))
}

/// Speaks with an agent; where it wants a key and a person is there, asks for it once and speaks again.
fn asking<T>(
    key: &mut Option<Key>,
    (there, ask_key): (&AgentAddress, AskKey),
    mut connect: impl FnMut() -> Result<Channel, AuthError>,
    mut speak: impl FnMut(&Channel, Option<&Key>) -> Result<T, AuthError>,
) -> Result<(T, Channel), ReachError> {
    let mut once = |key: Option<&Key>| -> Result<(T, Channel), AuthError> {
        let mut spoken = Err(AuthError::CutShort);
        for _ in 0..HANDSHAKES {
            let channel = connect()?;
            spoken = speak(&channel, key).map(|spoken| (spoken, channel));
            if !matches!(spoken, Err(AuthError::CutShort)) {
                break;
            }
        }
        spoken
    };
    let spoken = match once(key.as_ref()) {
        Err(AuthError::NoKey) => match ask_key(there) {
            Some(typed) => {
                let typed = typed.map_err(|reason| {
                    ReachError::Usage(format!("could not prompt for the agent's key: {reason}"))
                })?;
                *key = Some(Key::of(&typed, "the answer").map_err(ReachError::Usage)?);
                once(key.as_ref())
            }
            None => Err(AuthError::NoKey),
        },
        spoken => spoken,
    };
    spoken.map_err(|error| match error {
        AuthError::NoAgent => no_agent(there),
        error => ReachError::Unreachable(format!("could not use the agent on {there}: {error}")),
    })
}

fn connect(to: &AgentAddress, from: Option<&ScopedAddr>) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(to.socket), Type::STREAM, Some(Protocol::TCP))?;
    if let Some(from) = from {
        socket.bind(&zone::socket_addr(from, 0)?.into())?;
    }
    limit_segments(&socket);
    socket.connect_timeout(&SockAddr::from(to.socket), CONNECT_LIMIT)?;
    socket.set_tcp_nodelay(true)?;
    notice_a_dead_peer(&socket)?;
    Ok(socket.into())
}

/// The peer is not an agent after all.
fn not_an_agent(error: AgentError, there: &AgentAddress) -> ReachError {
    match error {
        AgentError::Gone { .. } | AgentError::Silent { .. } | AgentError::Faulty { .. } => no_agent(there),
        error => error.into(),
    }
}

fn no_agent(there: &AgentAddress) -> ReachError {
    ReachError::Unreachable(format!(
        "something listens on {there}, but it is not a stacklab agent, or not as one of this version, or has no room for another connection: start `stacklab agent --listen` of this version there, on a free port, and name it with -p"
    ))
}
