//! What a coordinator and the agents of a fleet say to each other: one JSON object per line. What a peer says is
//! untrusted until it is checked.

use crate::FleetError;
use crate::presence::Presence;
use crate::store::{AgentInfo, BlockKey, Class};
use crate::study::FleetStudy;
use crate::wire::Wire;
use serde::{Deserialize, Serialize};
use stacklab_model::{CpuScope, RunRecord};
use stacklab_store::HostRow;
use stacklab_traffic::protocol::{Lines, json_line, printable};
use std::collections::BTreeMap;
use std::io::{BufReader, Read, Write};
use std::time::Duration;

/// Maximum length of a request, bytes: it has the text of a study.
pub(crate) const LONGEST_REQUEST: usize = 1 << 20;
/// Maximum length of an answer, bytes: it has the runs of a block.
const LONGEST_ANSWER: usize = 64 << 20;

/// The longest lease that an agent grants: far more than the longest block takes, and not beyond what clocks can add.
const LONGEST_LEASE: Duration = Duration::from_secs(30 * 24 * 3600);

/// What an agent is asked.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// Who it is, and what it keeps.
    Describe,
    /// Measure a block as the sender, and answer with its result.
    Measure(Box<Order>),
    /// Take part in a block as the receiver: after the answer, the stream is that of an agent for one trial after the
    /// other.
    Join(JoinOrder),
    /// The result of a block that it keeps.
    Fetch(BlockKey),
    /// The result was committed: forget it.
    Forget(BlockKey),
}

impl Request {
    /// Reads a request. Its names are names, and its lease ends.
    pub(crate) fn read(line: &str) -> Result<Self, FleetError> {
        let request = serde_json::from_str(line)
            .map_err(|error| FleetError::Usage(format!("it does not understand the request: {error}")))?;
        let (key, lease) = match &request {
            Request::Describe => return Ok(request),
            Request::Measure(order) => {
                crate::name::check("an agent", &order.receiver.name)?;
                (&order.key, order.lease)
            }
            Request::Join(order) => (&order.key, order.lease),
            Request::Fetch(key) | Request::Forget(key) => (key, Duration::ZERO),
        };
        crate::name::check("a campaign", &key.campaign)?;
        if lease > LONGEST_LEASE {
            return Err(FleetError::Usage(format!(
                "a lease of {} days is too long",
                lease.as_secs() / 86_400
            )));
        }
        Ok(request)
    }
}

/// A block to measure.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Order {
    pub key: BlockKey,
    pub class: Class,
    /// The time that is left of the lease. Not a time of day: clocks differ.
    pub lease: Duration,
    pub study: FleetStudy,
    pub receiver: AgentInfo,
}

/// A block to take part in.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct JoinOrder {
    pub key: BlockKey,
    pub class: Class,
    pub lease: Duration,
    /// The sender's addresses, by family.
    pub sender: BTreeMap<String, String>,
}

/// What an agent answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    Presence(Presence),
    Measured(Box<BlockResult>),
    /// The request cannot be fulfilled: which agent failed, and why.
    Failed {
        agent: String,
        reason: String,
    },
    Joined,
    Forgotten,
}

impl Answer {
    /// Reads an answer. No text in it has control characters, which would reach a terminal.
    pub(crate) fn read(line: &str) -> serde_json::Result<Self> {
        serde_json::from_str(&printable(line.trim_end()))
    }
}

/// What a block gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BlockResult {
    /// The path, in a sentence.
    pub path: String,
    /// Whose CPU time the hosts' CPU figures cover.
    pub cpu_scope: CpuScope,
    /// Both hosts, the sender first.
    pub hosts: Vec<HostRow>,
    /// The runs.
    pub runs: Vec<RunRecord>,
}

/// A conversation with an agent: one request, then its answer. Fails after a silence of `limit`, or if the agent says
/// that it failed.
pub(crate) fn ask(
    wire: &dyn Wire,
    agent: &str,
    request: &Request,
    limit: Duration,
) -> Result<Answer, FleetError> {
    talk(wire, agent, request, limit).map(|(answer, ..)| answer)
}

/// As [`ask`]. Returns the rest of the stream, too.
pub(crate) fn talk(
    wire: &dyn Wire,
    agent: &str,
    request: &Request,
    limit: Duration,
) -> Result<(Answer, impl Read + Send + use<>, Box<dyn Write + Send>), FleetError> {
    let failed = |reason: String| FleetError::Agent { agent: agent.to_owned(), reason };
    let (reader, mut writer) = wire.open(agent, limit)?;
    let line = json_line(request).map_err(|error| failed(error.to_string()))?;
    writer
        .write_all(&line)
        .and_then(|()| writer.flush())
        .map_err(|error| failed(format!("it takes no request: {error}")))?;
    let mut reader = BufReader::new(reader);
    let line = Lines::new(&mut reader, LONGEST_ANSWER).next();
    let line = match line {
        Some(Ok(line)) => line,
        Some(Err(error)) => return Err(failed(format!("it does not answer: {error}"))),
        None => return Err(failed("it ended before it answered".to_owned())),
    };
    let answer = Answer::read(&line)
        .map_err(|error| failed(format!("its answer is not one of this version: {error}")))?;
    match answer {
        Answer::Failed { agent, reason } => Err(FleetError::Agent { agent, reason }),
        answer => Ok((answer, reader, writer)),
    }
}

/// An answer that is none to the request.
pub(crate) fn other_answer(agent: &str) -> FleetError {
    FleetError::Agent { agent: agent.to_owned(), reason: "its answer is to another question".to_owned() }
}
