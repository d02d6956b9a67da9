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

use crate::channel::{Channel, LONGEST, wait_until};
use crate::key::{Key, challenge};
use crate::tls::TlsError;
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
const MOST_TICKETS: usize = 8;
/// Time for which a refused peer may still send.
const REFUSAL_LIMIT: Duration = Duration::from_millis(500);
/// For how long a ticket is good.
const TICKET_SECONDS: u64 = 60;
const NO_COORDINATOR: &str = "this is a stacklab agent: use `stacklab measure`";
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
pub(crate) struct Challenge {
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
pub(crate) struct Hello {
    stacklab: u32,
    challenge: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Response {
    proof: Option<String>,
    purpose: Purpose,
    #[serde(default)]
    tickets: Vec<Ticket>,
}

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Purpose {
    Measure,
    /// To show that the coordinator has this address.
    Address,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Welcome {
    Proof(Option<String>),
    Ticket { proof: Option<String>, ticket: Ticket },
    Refused(String),
}

/// The decision on a coordinator.
pub(crate) enum Judged {
    /// It is not served, and why.
    Refused(String),
    /// It only wanted a ticket, and this answers it.
    Shown(Welcome),
    Admitted(Admitted),
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
        channel.unlimited()
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
        let (own, binding) = (challenge(), channel.binding()?);
        channel.say(&Challenge {
            stacklab_agent: VERSION,
            challenge: own.clone(),
            open: self.key.is_none(),
        })?;
        let hello = match understood(channel.hear::<Hello>(deadline))? {
            Ok(hello) => hello,
            Err(reason) => return refused(reason.to_owned()),
        };
        if hello.stacklab != VERSION {
            return refused(format!(
                "the coordinator speaks handshake version {}, this agent {VERSION}: install the same stacklab on both",
                hello.stacklab
            ));
        }
        let response = match understood(channel.hear::<Response>(deadline))? {
            Ok(response) => response,
            Err(reason) => return refused(reason.to_owned()),
        };
        match self.judge([&own, &hello.challenge], &binding, here, &response) {
            Judged::Refused(reason) => refused(reason),
            Judged::Shown(welcome) => channel.say(&welcome).map(|()| None),
            Judged::Admitted(admitted) => Ok(Some(admitted)),
        }
    }

    /// Decides on the coordinator of a connection that responds to this gate's own challenge and had one itself, in
    /// this TLS session.
    pub(crate) fn judge(
        &self,
        [own, theirs]: [&String; 2],
        binding: &str,
        here: AddressPair,
        response: &Response,
    ) -> Judged {
        let purpose = response.purpose;
        if let Some(key) = &self.key {
            let parts = proved(COORDINATOR, purpose, [own, theirs], binding);
            if !response.proof.as_deref().is_some_and(|proof| key.is_proved(&parts, proof)) {
                return Judged::Refused("the key is not this agent's".to_owned());
            }
        }
        let parts = proved(AGENT, purpose, [theirs, own], binding);
        let proof = self.key.as_ref().map(|key| key.proof(&parts));
        if purpose == Purpose::Address {
            return Judged::Shown(Welcome::Ticket { proof, ticket: self.ticket(here) });
        }
        let good = |ticket: &&Ticket| self.is_good(ticket);
        let mut addresses = vec![here];
        addresses.extend(
            response.tickets.iter().take(MOST_TICKETS).filter(good).map(|ticket| ticket.addresses.clone()),
        );
        Judged::Admitted(Admitted { addresses, proof })
    }

    /// Tells a coordinator, instead of or after its welcome, why it is not served.
    pub fn refuse(channel: &Channel, reason: String) -> io::Result<()> {
        channel.say(&Welcome::Refused(reason))?;
        channel.finish()?;
        // Closing a connection with unread data resets it and loses the answer.
        let deadline = Instant::now() + REFUSAL_LIMIT;
        let mut rest = [0; LONGEST];
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

    fn is_good(&self, ticket: &Ticket) -> bool {
        let parts = Self::parts(&ticket.addresses, ticket.until_s);
        let in_time = (self.clock)() <= ticket.until_s;
        in_time && self.own.is_proved(&parts, &ticket.proof)
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
    let (own, binding) = (challenge(), channel.binding()?);
    channel.say(&Hello { stacklab: VERSION, challenge: own.clone() }).map_err(not_an_agent)?;
    let theirs = match channel.hear(deadline).map_err(not_an_agent)? {
        First::Challenge(challenge) => challenge,
        First::Refused { refused } if refused == LATE => return Err(AuthError::CutShort),
        First::Refused { refused } => return Err(AuthError::Refused(printable_text(&refused))),
    };
    if theirs.stacklab_agent != VERSION {
        return Err(AuthError::Refused(format!(
            "it speaks handshake version {}, this program {VERSION}: install the same stacklab on both",
            theirs.stacklab_agent
        )));
    }
    match (key, theirs.open) {
        (Some(_), true) => return Err(AuthError::Open),
        (None, false) => return Err(AuthError::NoKey),
        _ => {}
    }
    let proof = key.map(|key| key.proof(&proved(COORDINATOR, purpose, [&theirs.challenge, &own], &binding)));
    channel.say(&Response { proof, purpose, tickets })?;
    let welcome = channel.hear(deadline).map_err(|error| match not_an_agent(error) {
        // It began as an agent.
        AuthError::NoAgent => AuthError::CutShort,
        error => error,
    })?;
    let (proof, ticket) = match welcome {
        Welcome::Refused(reason) if reason == LATE => return Err(AuthError::CutShort),
        Welcome::Refused(reason) => return Err(AuthError::Refused(printable_text(&reason))),
        Welcome::Proof(proof) => (proof, None),
        Welcome::Ticket { proof, ticket } => (proof, Some(ticket)),
    };
    if let Some(key) = key {
        let parts = proved(AGENT, purpose, [&own, &theirs.challenge], &binding);
        if !proof.is_some_and(|proof| key.is_proved(&parts, &proof)) {
            return Err(AuthError::Unproved);
        }
    }
    channel.unlimited()?;
    Ok(ticket)
}

/// What an end proves: its role, for this purpose, by the other's challenge and then its own, in this TLS session.
fn proved(role: &str, purpose: Purpose, [asked, own]: [&String; 2], binding: &str) -> [String; 6] {
    let purpose = if purpose == Purpose::Measure { "measure" } else { "address" };
    [role, &VERSION.to_string(), purpose, asked, own, binding].map(str::to_owned)
}

/// What a peer says, or why it is refused: it says something else, or nothing in time.
fn understood<T>(heard: io::Result<T>) -> io::Result<Result<T, &'static str>> {
    match heard {
        Ok(heard) => Ok(Ok(heard)),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(Err(NO_COORDINATOR)),
        Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(Err(LATE)),
        Err(error) => Err(error),
    }
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
    /// The agent wants a key, and there is none.
    #[error(
        "the agent requires its key, which it printed at its start: pass it in a file with --key-file, or as {}",
        crate::key::VARIABLE
    )]
    NoKey,
    /// The agent is open, and a key was given.
    #[error(
        "the agent is open and cannot prove that it has this key: leave the key out, or start the agent without --no-auth"
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

impl From<TlsError> for AuthError {
    fn from(error: TlsError) -> Self {
        match error {
            TlsError::Connection(error) => not_an_agent(error),
            error => AuthError::Tls(error),
        }
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
        _ => AuthError::Connection(error),
    }
}

#[cfg(test)]
mod tests;
