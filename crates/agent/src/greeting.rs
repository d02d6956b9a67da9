//! The first lines between a listening agent and a coordinator: both prove that they know the key, each by the other's
//! challenge. One JSON object a line:
//!
//! 1. agent: version, its challenge, whether it is open (needs no key)
//! 2. coordinator: version, its challenge, its proof, and tickets of its other addresses; or the wish for such a ticket
//! 3. agent: its proof, and the ticket that was wished for; or why it refuses
//!
//! After that the connection speaks the agent's protocol. Proofs are of roles, version and both challenges: one cannot be sent back or
//! again, and an agent that is not open cannot be made to look open.

use crate::key::{Key, challenge};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use stacklab_traffic::host::zone::ScopedAddr;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// Version of these lines.
const VERSION: u32 = 1;
/// The roles in proofs: neither end's is the other's.
const COORDINATOR: &str = "stacklab coordinator";
const AGENT: &str = "stacklab agent";
/// Maximum length of a line, bytes.
const LONGEST: usize = 8192;
/// Maximum number of further addresses of a coordinator.
const MOST_TICKETS: usize = 8;
/// For how long a peer that is refused may go on to speak.
const REFUSAL_LIMIT: Duration = Duration::from_millis(500);
/// For how long a ticket is good.
const TICKET_SECONDS: u64 = 60;

/// A pair of addresses between which traffic may flow: the coordinator's, and the agent's own. Link-local ones are in a zone of the agent's
/// host, as its kernel says it; for a coordinator that means nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressPair {
    /// The coordinator's address.
    pub peer: ScopedAddr,
    /// The agent's.
    pub local: ScopedAddr,
}

impl AddressPair {
    /// The addresses of a connection.
    ///
    /// # Errors
    /// If it has ended.
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

#[derive(Debug, Serialize, Deserialize)]
struct Response {
    stacklab: u32,
    challenge: String,
    proof: Option<String>,
    purpose: Purpose,
    #[serde(default)]
    tickets: Vec<Ticket>,
}

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Purpose {
    /// To measure.
    Measure,
    /// To show that the coordinator has this address.
    Address,
}

impl Purpose {
    fn name(self) -> &'static str {
        match self {
            Purpose::Measure => "measure",
            Purpose::Address => "address",
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Welcome {
    Proof(Option<String>),
    Ticket { proof: Option<String>, ticket: Ticket },
    Refused(String),
}

/// What a listening agent asks of coordinators.
pub struct Gate {
    /// The key; `None` for an open agent.
    key: Option<Key>,
    /// Signs tickets.
    own: Key,
    started: Instant,
}

/// A coordinator that knows the key.
pub struct Admitted {
    /// The addresses that it has shown to be its own, each with the agent's.
    pub addresses: Vec<AddressPair>,
    proof: Option<String>,
}

impl Admitted {
    /// Proves to the coordinator that this is its agent.
    ///
    /// # Errors
    /// If it has gone.
    pub fn welcome(&self, stream: &TcpStream) -> io::Result<()> {
        say(stream, &Welcome::Proof(self.proof.clone()))?;
        unlimited(stream)
    }
}

impl Gate {
    /// A gate that this key opens, or anybody.
    pub fn new(key: Option<Key>) -> Self {
        Gate { key, own: Key::generate(), started: Instant::now() }
    }

    /// Hears a coordinator within the limit. `None`: it is not served, or only wanted a ticket, and knows it.
    ///
    /// # Errors
    /// The connection's.
    pub fn admit(&self, stream: &TcpStream, limit: Duration) -> io::Result<Option<Admitted>> {
        let refused = |reason: String| Self::refuse(stream, reason).map(|()| None);
        let deadline = Instant::now() + limit;
        let here = AddressPair::of(stream)?;
        let own = challenge();
        say(
            stream,
            &Challenge { stacklab_agent: VERSION, challenge: own.clone(), open: self.key.is_none() },
        )?;
        let response: Response = match hear(stream, deadline) {
            Ok(response) => response,
            Err(error) if matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::TimedOut) => {
                return refused("this is an agent of stacklab: it is asked by `stacklab measure`".to_owned());
            }
            Err(error) => return Err(error),
        };
        if response.stacklab != VERSION {
            return refused(format!(
                "the coordinator greets by version {}, this agent by {VERSION}: install the same stacklab on both",
                response.stacklab
            ));
        }
        let purpose = response.purpose;
        if let Some(key) = &self.key {
            let parts = proved(COORDINATOR, purpose, &own, &response.challenge);
            if !response.proof.as_deref().is_some_and(|proof| key.is_proved(&parts, proof)) {
                return refused("the key is not this agent's".to_owned());
            }
        }
        let parts = proved(AGENT, purpose, &response.challenge, &own);
        let proof = self.key.as_ref().map(|key| key.proof(&parts));
        if purpose == Purpose::Address {
            say(stream, &Welcome::Ticket { proof, ticket: self.ticket(here) })?;
            return Ok(None);
        }
        let good = |ticket: &&Ticket| self.is_good(ticket);
        let mut addresses = vec![here];
        addresses.extend(
            response.tickets.iter().take(MOST_TICKETS).filter(good).map(|ticket| ticket.addresses.clone()),
        );
        Ok(Some(Admitted { addresses, proof }))
    }

    /// Tells a coordinator, instead of or after its welcome, why it is not served.
    ///
    /// # Errors
    /// If it has gone.
    pub fn refuse(mut stream: &TcpStream, reason: String) -> io::Result<()> {
        say(stream, &Welcome::Refused(reason))?;
        stream.shutdown(Shutdown::Write)?;
        // Closing a connection with unread data resets it and loses the answer.
        let deadline = Instant::now() + REFUSAL_LIMIT;
        let mut rest = [0; LONGEST];
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            stream.set_read_timeout(Some(left))?;
            match stream.read(&mut rest) {
                // It has heard, or gone.
                Ok(0) => return Ok(()),
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Ok(()),
                _ => {}
            }
        }
    }

    fn ticket(&self, addresses: AddressPair) -> Ticket {
        let until_s = self.started.elapsed().as_secs() + TICKET_SECONDS;
        Ticket { until_s, proof: self.own.proof(&Self::parts(&addresses, until_s)), addresses }
    }

    fn is_good(&self, ticket: &Ticket) -> bool {
        let parts = Self::parts(&ticket.addresses, ticket.until_s);
        let in_time = self.started.elapsed().as_secs() <= ticket.until_s;
        in_time && self.own.is_proved(&parts, &ticket.proof)
    }

    fn parts(AddressPair { peer, local }: &AddressPair, until_s: u64) -> [String; 4] {
        ["ticket".to_owned(), peer.to_string(), local.to_string(), until_s.to_string()]
    }
}

/// Why an agent does not serve this coordinator.
#[derive(Debug, thiserror::Error)]
pub enum GreetingError {
    /// What listens there does not greet as an agent.
    #[error("it does not speak as an agent of stacklab")]
    NoAgent,
    /// The agent wants a key, and there is none.
    #[error(
        "it wants its key: it was printed where the agent was started; give it in a file by --key-file, or as {}",
        crate::key::VARIABLE
    )]
    NoKey,
    /// The agent is open, and a key was given.
    #[error(
        "it is open and cannot prove that it is the agent of this key: leave the key out, or start that agent without --open"
    )]
    Open,
    /// The agent did not prove that it knows the key.
    #[error("it does not know the key: something else listens there")]
    Unproved,
    /// The agent says why it refuses.
    #[error("it refuses: {0}")]
    Refused(String),
    /// The connection ended.
    #[error("{0}")]
    Connection(#[from] io::Error),
}

/// Greets an agent to measure with it. `tickets` are of this coordinator's other addresses.
///
/// # Errors
/// Why the agent is not used.
pub fn greet(
    stream: &TcpStream,
    key: Option<&Key>,
    tickets: Vec<Ticket>,
    limit: Duration,
) -> Result<(), GreetingError> {
    exchange(stream, key, Purpose::Measure, tickets, limit).map(drop)
}

/// Shows an agent that this coordinator has the connection's address.
///
/// # Errors
/// As [`greet`].
pub fn show_address(stream: &TcpStream, key: Option<&Key>, limit: Duration) -> Result<Ticket, GreetingError> {
    exchange(stream, key, Purpose::Address, Vec::new(), limit)?.ok_or(GreetingError::NoAgent)
}

fn exchange(
    stream: &TcpStream,
    key: Option<&Key>,
    purpose: Purpose,
    tickets: Vec<Ticket>,
    limit: Duration,
) -> Result<Option<Ticket>, GreetingError> {
    let deadline = Instant::now() + limit;
    let not_an_agent = |error: io::Error| match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::TimedOut | io::ErrorKind::UnexpectedEof => {
            GreetingError::NoAgent
        }
        _ => GreetingError::Connection(error),
    };
    let theirs: Challenge = hear(stream, deadline).map_err(not_an_agent)?;
    if theirs.stacklab_agent != VERSION {
        return Err(GreetingError::Refused(format!(
            "it greets by version {}, this program by {VERSION}: install the same stacklab on both",
            theirs.stacklab_agent
        )));
    }
    match (key, theirs.open) {
        (Some(_), true) => return Err(GreetingError::Open),
        (None, false) => return Err(GreetingError::NoKey),
        _ => {}
    }
    let own = challenge();
    let proof = key.map(|key| key.proof(&proved(COORDINATOR, purpose, &theirs.challenge, &own)));
    say(stream, &Response { stacklab: VERSION, challenge: own.clone(), proof, purpose, tickets })?;
    let welcome = hear(stream, deadline).map_err(not_an_agent)?;
    let (proof, ticket) = match welcome {
        Welcome::Refused(reason) => return Err(GreetingError::Refused(printable(&reason))),
        Welcome::Proof(proof) => (proof, None),
        Welcome::Ticket { proof, ticket } => (proof, Some(ticket)),
    };
    if let Some(key) = key {
        let parts = proved(AGENT, purpose, &own, &theirs.challenge);
        if !proof.is_some_and(|proof| key.is_proved(&parts, &proof)) {
            return Err(GreetingError::Unproved);
        }
    }
    unlimited(stream)?;
    Ok(ticket)
}

/// What an end proves: its role, for this purpose, by the other's challenge and with its own.
fn proved(role: &str, purpose: Purpose, asked: &str, own: &str) -> [String; 5] {
    [role, &VERSION.to_string(), purpose.name(), asked, own].map(str::to_owned)
}

/// What a peer says, without control characters: they could change the terminal.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// Takes the time limits of the greeting away: what follows has its own.
fn unlimited(stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(None)?;
    stream.set_write_timeout(None)
}

fn say(mut stream: &TcpStream, line: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    stream.set_write_timeout(Some(Duration::from_secs(1)))?;
    stream.write_all(&text)
}

/// The next line. `InvalidData` if it is something else, `TimedOut` if it does not come.
fn hear<T: DeserializeOwned>(mut stream: &TcpStream, deadline: Instant) -> io::Result<T> {
    let mut line = Vec::new();
    let mut byte = [0];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        // One at a time: what follows the line is not for this reader.
        match stream.read(&mut byte) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) if byte[0] == b'\n' => break,
            Ok(_) if line.len() == LONGEST => return Err(io::ErrorKind::InvalidData.into()),
            Ok(_) => line.push(byte[0]),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    serde_json::from_slice(&line).map_err(|_| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests;
