//! The first lines between a listening agent and a coordinator: both prove that they know the key, each by the other's
//! challenge. One JSON object a line:
//!
//! 1. both at once: version, a challenge; the agent also whether it is open (needs no key)
//! 2. coordinator: its proof, and tickets of its other addresses; or the wish for such a ticket
//! 3. agent: its proof, and the ticket that was wished for; or why it refuses
//!
//! After that the connection speaks the agent's protocol.
//!
//! A proof covers the roles, the version, both challenges and the TLS session. So a proof cannot be reflected,
//! replayed, or used in another session. A man in the middle cannot make an agent look open that is not.
//!
//! With TLS all this is inside the session. The proofs cover a secret of the session (tls-exporter, RFC 9266), not the
//! agent's fingerprint. So they also protect against a man in the middle who has stolen the agent's TLS key.

use crate::channel::{Channel, MAX_LENGTH, wait_until};
use crate::key::{Key, challenge};
use crate::tls::TlsError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use stacklab_traffic::host::zone::ScopedAddr;
use stacklab_traffic::protocol::printable_text;
use std::io::{self, Read};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Version of these lines.
const VERSION: u32 = 2;
/// The roles in proofs: neither end's is the other's.
const COORDINATOR: &str = "stacklab coordinator";
const AGENT: &str = "stacklab agent";
/// Maximum number of further addresses of a coordinator.
const MAX_TICKETS: usize = 8;
/// Time for which a refused peer may still send.
const REFUSAL_LIMIT: Duration = Duration::from_millis(500);
/// For how long a ticket is good.
const TICKET_SECONDS: u64 = 60;
const NO_COORDINATOR: &str = "this is a stacklab agent: use `stacklab measure`";
const OPEN: &str = "the agent is open and cannot prove that it has this key: leave the key out, or start the agent without --no-auth";
const UNPROVED: &str = "it does not know the key: another program listens there";
/// To a coordinator whose lines did not come in time.
const LATE: &str = "this is a stacklab agent: the handshake timed out: the path loses packets or is too slow";

/// A pair of addresses between which traffic may flow: the coordinator's, and the agent's own. Link-local ones are in a
/// zone of the agent's host, as its kernel says it; for a coordinator that means nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressPair {
    /// The coordinator's address.
    pub peer: ScopedAddr,
    /// The agent's.
    pub local: ScopedAddr,
}

impl AddressPair {
    /// The addresses of a connection.
    pub fn of(stream: &TcpStream) -> io::Result<Self> {
        Ok(AddressPair { peer: stream.peer_addr()?.into(), local: stream.local_addr()?.into() })
    }
}

/// Shows that a coordinator has been connected from this address: only from there can it have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    addresses: AddressPair,
    /// Seconds of the agent's clock until which it is good.
    until_s: u64,
    proof: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Challenge {
    stacklab_agent: u32,
    challenge: String,
    open: bool,
}

/// The first line of an agent.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum First {
    Challenge(Challenge),
    Refused { refused: String },
}

/// The first line of a coordinator. It does not wait for the agent's: one that speaks TLS only then refuses at once.
#[derive(Debug, Serialize, Deserialize)]
struct Hello {
    stacklab: u32,
    challenge: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Response {
    proof: Option<String>,
    purpose: Purpose,
    #[serde(default)]
    tickets: Vec<Ticket>,
}

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Purpose {
    Measure,
    /// To show that the coordinator has this address.
    Address,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Welcome {
    Proof(Option<String>),
    Ticket { proof: Option<String>, ticket: Box<Ticket> },
    Refused(String),
}

/// What a listening agent asks of coordinators.
pub struct Gate {
    /// The key; `None` for an open agent.
    key: Option<Key>,
    /// Signs tickets.
    own: Key,
    /// The clock of tickets, seconds.
    clock: Box<dyn Fn() -> u64 + Send + Sync>,
}

/// A coordinator that knows the key.
pub struct Admitted {
    /// The addresses that it has shown to be its own, each with the agent's.
    pub addresses: Vec<AddressPair>,
    proof: Option<String>,
}

impl Admitted {
    /// Proves to the coordinator that this is its agent.
    pub fn welcome(&self, channel: &Channel) -> io::Result<()> {
        channel.say(&Welcome::Proof(self.proof.clone()))?;
        channel.remove_time_limits()
    }
}

impl Gate {
    /// A gate that this key opens, or anybody.
    pub fn new(key: Option<Key>) -> Self {
        let started = Instant::now();
        Gate { key, own: Key::generate(), clock: Box::new(move || started.elapsed().as_secs()) }
    }

    /// Hears a coordinator within the limit. `None`: it is not served, or only wanted a ticket, and knows it.
    pub fn admit(&self, channel: &Channel, limit: Duration) -> io::Result<Option<Admitted>> {
        let refused = |reason: String| Self::refuse(channel, reason).map(|()| None);
        let deadline = Instant::now() + limit;
        let here = AddressPair::of(channel.stream())?;
        let own = challenge();
        let binding = channel.binding()?;
        let open = self.key.is_none();
        channel.say(&Challenge { stacklab_agent: VERSION, challenge: own.clone(), open })?;
        let Some(hello) = Self::heard::<Hello>(channel, deadline)? else { return Ok(None) };
        if hello.stacklab != VERSION {
            let theirs = hello.stacklab;
            return refused(format!(
                "the coordinator speaks handshake version {theirs}, this agent {VERSION}: install the same stacklab on both"
            ));
        }
        let Some(response) = Self::heard::<Response>(channel, deadline)? else { return Ok(None) };
        match self.judge([&own, &hello.challenge], &binding, here, &response) {
            Ok(admitted) => Ok(Some(admitted)),
            Err(Welcome::Refused(reason)) => refused(reason),
            Err(ticket) => channel.say(&ticket).map(|()| None),
        }
    }

    /// Decides on the coordinator of a connection that responds to this gate's own challenge and had one itself, in
    /// this TLS session. The error is the answer to one that is refused, or only wanted a ticket.
    fn judge(
        &self,
        [own, theirs]: [&String; 2],
        binding: &str,
        here: AddressPair,
        response: &Response,
    ) -> Result<Admitted, Welcome> {
        let purpose = response.purpose;
        if let Some(key) = &self.key {
            let parts = list_proof_parts(COORDINATOR, purpose, [own, theirs], binding);
            if !response.proof.as_deref().is_some_and(|proof| key.accepts_proof(&parts, proof)) {
                return Err(Welcome::Refused("the key is not this agent's".to_owned()));
            }
        }
        let parts = list_proof_parts(AGENT, purpose, [theirs, own], binding);
        let proof = self.key.as_ref().map(|key| key.proof(&parts));
        if purpose == Purpose::Address {
            return Err(Welcome::Ticket { proof, ticket: Box::new(self.ticket(here)) });
        }
        let good = response.tickets.iter().take(MAX_TICKETS).filter(|ticket| self.is_good(ticket));
        let addresses = std::iter::once(here).chain(good.map(|ticket| ticket.addresses.clone())).collect();
        Ok(Admitted { addresses, proof })
    }

    /// What a peer says; `None` if it is refused, because it says something else, or nothing in time.
    fn heard<T: DeserializeOwned>(channel: &Channel, deadline: Instant) -> io::Result<Option<T>> {
        let reason = match channel.hear(deadline) {
            Ok(heard) => return Ok(Some(heard)),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => NO_COORDINATOR,
            Err(error) if error.kind() == io::ErrorKind::TimedOut => LATE,
            Err(error) => return Err(error),
        };
        Self::refuse(channel, reason.to_owned()).map(|()| None)
    }

    /// Tells a coordinator, instead of or after its welcome, why it is not served.
    pub fn refuse(channel: &Channel, reason: String) -> io::Result<()> {
        channel.say(&Welcome::Refused(reason))?;
        channel.finish()?;
        // Closing a connection with unread data resets it and loses the answer.
        let deadline = Instant::now() + REFUSAL_LIMIT;
        let mut rest = [0; MAX_LENGTH];
        let mut stream = channel.stream();
        while wait_until(stream, deadline).is_ok() {
            match stream.read(&mut rest) {
                // It has heard, or gone.
                Ok(0) => break,
                Err(error) if error.kind() != io::ErrorKind::Interrupted => break,
                _ => {}
            }
        }
        Ok(())
    }

    fn ticket(&self, addresses: AddressPair) -> Ticket {
        let until_s = (self.clock)().saturating_add(TICKET_SECONDS);
        Ticket { until_s, proof: self.own.proof(&Self::parts(&addresses, until_s)), addresses }
    }

    fn is_good(&self, Ticket { addresses, until_s, proof }: &Ticket) -> bool {
        (self.clock)() <= *until_s && self.own.accepts_proof(&Self::parts(addresses, *until_s), proof)
    }

    fn parts(AddressPair { peer, local }: &AddressPair, until_s: u64) -> [String; 4] {
        ["ticket".to_owned(), peer.to_string(), local.to_string(), until_s.to_string()]
    }
}

/// Authenticates to an agent to measure with it. `tickets` are of this coordinator's other addresses.
pub fn handshake(
    channel: &Channel,
    key: Option<&Key>,
    tickets: Vec<Ticket>,
    limit: Duration,
) -> Result<(), AuthError> {
    exchange(channel, key, Purpose::Measure, tickets, limit).map(drop)
}

/// Shows an agent that this coordinator has the connection's address.
pub fn show_address(channel: &Channel, key: Option<&Key>, limit: Duration) -> Result<Ticket, AuthError> {
    exchange(channel, key, Purpose::Address, Vec::new(), limit)?.ok_or(AuthError::NoAgent)
}

fn exchange(
    channel: &Channel,
    key: Option<&Key>,
    purpose: Purpose,
    tickets: Vec<Ticket>,
    limit: Duration,
) -> Result<Option<Ticket>, AuthError> {
    let deadline = Instant::now() + limit;
    let own = challenge();
    let binding = channel.binding()?;
    channel.say(&Hello { stacklab: VERSION, challenge: own.clone() }).map_err(not_an_agent)?;
    let theirs = match channel.hear(deadline).map_err(not_an_agent)? {
        First::Challenge(challenge) => challenge,
        First::Refused { refused } => return Err(refused_for(&refused)),
    };
    if theirs.stacklab_agent != VERSION {
        return Err(AuthError::Failed(format!(
            "it refuses: it speaks handshake version {}, this program {VERSION}: install the same stacklab on both",
            theirs.stacklab_agent
        )));
    }
    match (key, theirs.open) {
        (Some(_), true) => return Err(AuthError::Failed(OPEN.to_owned())),
        (None, false) => return Err(AuthError::NoKey),
        _ => {}
    }
    let proof = key
        .map(|key| key.proof(&list_proof_parts(COORDINATOR, purpose, [&theirs.challenge, &own], &binding)));
    channel.say(&Response { proof, purpose, tickets })?;
    let welcome = channel.hear(deadline).map_err(|error| match not_an_agent(error) {
        // It began as an agent.
        AuthError::NoAgent => AuthError::CutShort,
        error => error,
    })?;
    let (proof, ticket) = match welcome {
        Welcome::Refused(reason) => return Err(refused_for(&reason)),
        Welcome::Proof(proof) => (proof, None),
        Welcome::Ticket { proof, ticket } => (proof, Some(*ticket)),
    };
    if let Some(key) = key {
        let parts = list_proof_parts(AGENT, purpose, [&own, &theirs.challenge], &binding);
        if !proof.is_some_and(|proof| key.accepts_proof(&parts, &proof)) {
            return Err(AuthError::Failed(UNPROVED.to_owned()));
        }
    }
    channel.remove_time_limits()?;
    Ok(ticket)
}

/// What an end proves: its role, for this purpose, by the other's challenge and then its own, in this TLS session.
fn list_proof_parts(role: &str, purpose: Purpose, [asked, own]: [&String; 2], binding: &str) -> [String; 6] {
    let purpose = if purpose == Purpose::Measure { "measure" } else { "address" };
    [role, &VERSION.to_string(), purpose, asked, own, binding].map(str::to_owned)
}

/// Why an agent does not serve this coordinator.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// What listens there does not speak as an agent.
    #[error("it is not a stacklab agent")]
    NoAgent,
    /// The agent spoke, and the rest of the handshake did not get through.
    #[error(
        "the handshake was cut short: the path loses packets or is too slow, or the agent ended; try again"
    )]
    CutShort,
    /// The agent requires a key, and there is none.
    #[error(
        "the agent requires its key, which it printed at its start: pass it in a file with --key-file, or as {}",
        crate::key::VARIABLE
    )]
    NoKey,
    /// Anything else, with what to do.
    #[error("{0}")]
    Failed(String),
}

impl From<io::Error> for AuthError {
    fn from(error: io::Error) -> Self {
        AuthError::Failed(error.to_string())
    }
}

impl From<TlsError> for AuthError {
    fn from(error: TlsError) -> Self {
        match error {
            TlsError::Connection(error) => not_an_agent(error),
            error => AuthError::Failed(error.to_string()),
        }
    }
}

fn refused_for(reason: &str) -> AuthError {
    match reason {
        LATE => AuthError::CutShort,
        reason => AuthError::Failed(format!("it refuses: {}", printable_text(reason))),
    }
}

/// The error for an agent that does not speak.
fn not_an_agent(error: io::Error) -> AuthError {
    match error.kind() {
        io::ErrorKind::InvalidData
        | io::ErrorKind::TimedOut
        | io::ErrorKind::UnexpectedEof
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::BrokenPipe => AuthError::NoAgent,
        _ => error.into(),
    }
}

/// Parsers of the lines of a handshake: untrusted input. Public for the fuzz targets (`fuzz/`) only.
pub mod fuzzing {
    use super::*;

    /// The line as each of the four lines of a handshake, written again: those that it is.
    pub fn handshake_lines(line: &[u8]) -> Vec<String> {
        fn as_one<T: DeserializeOwned + Serialize>(line: &[u8]) -> Option<String> {
            serde_json::to_string(&serde_json::from_slice::<T>(line).ok()?).ok()
        }
        let lines = [
            as_one::<Challenge>(line),
            as_one::<Hello>(line),
            as_one::<Response>(line),
            as_one::<Welcome>(line),
        ];
        lines.into_iter().flatten().collect()
    }

    /// The addresses of the coordinator that a gate admits by this line, which responds to the gate's own challenge
    /// (the first) and had one itself; `None` if it is not admitted.
    pub fn admit_response(
        gate: &Gate,
        challenges: [&String; 2],
        here: AddressPair,
        line: &[u8],
    ) -> Option<Vec<AddressPair>> {
        let judged = gate.judge(challenges, "", here, &serde_json::from_slice(line).ok()?);
        judged.ok().map(|admitted| admitted.addresses)
    }
}

#[cfg(test)]
mod tests;
