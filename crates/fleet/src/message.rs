//! What a coordinator and the agents of a fleet say to each other: one JSON object per line. What a peer says is
//! untrusted until it is checked.

use crate::FleetError;
use crate::store::{AgentInfo, BlockKey, Class};
use crate::study::FleetStudy;
use serde::{Deserialize, Serialize};
use stacklab_model::{CpuScope, RunRecord};
use stacklab_store::HostRow;
use stacklab_traffic::protocol::printable;
use std::collections::BTreeMap;
use std::time::Duration;

/// Maximum length of a request, bytes: it has the text of a study.
pub(crate) const MAX_REQUEST_LENGTH: usize = 1 << 20;
/// Maximum length of an answer, bytes: it has the runs of a block.
pub(crate) const MAX_ANSWER_LENGTH: usize = 64 << 20;

/// The longest lease that an agent grants: far more than the longest block takes, and not beyond what clocks can add.
const MAX_LEASE: Duration = Duration::from_secs(30 * 24 * 3600);

/// An agent whose clock differs by more than this is not used: its runs would be dated wrongly.
const CLOCK_LIMIT_NS: u64 = 60_000_000_000;

const MAX_NAME_LENGTH: usize = 64;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
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
                check_name("an agent", &order.receiver.name)?;
                (&order.key, order.lease)
            }
            Request::Join(order) => (&order.key, order.lease),
            Request::Fetch(key) | Request::Forget(key) => (key, Duration::ZERO),
        };
        check_name("a campaign", &key.campaign)?;
        if lease > MAX_LEASE {
            let days = lease.as_secs() / 86_400;
            return Err(FleetError::Usage(format!("a lease of {days} days is too long")));
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

/// An agent that answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Presence {
    /// The agent.
    pub agent: AgentInfo,
    /// Its clock, nanoseconds since the Unix epoch.
    pub now_ns: i64,
    /// The attempts that it takes part in.
    pub held: Vec<BlockKey>,
    /// The attempts whose results it keeps.
    pub kept: Vec<BlockKey>,
}

impl Presence {
    /// Why the agent cannot be used by a coordinator whose clock says this.
    pub fn unusable(&self, now_ns: i64) -> Option<String> {
        let AgentInfo { name, version, .. } = &self.agent;
        if let Err(error) = check_name("an agent", name) {
            return Some(error.to_string());
        }
        let own = env!("CARGO_PKG_VERSION");
        if version != own {
            let version = stacklab_model::printable_lines(version);
            return Some(format!(
                "it is stacklab {version}, and this is {own}: install the same version on both"
            ));
        }
        let apart_ns = self.now_ns.abs_diff(now_ns);
        let apart = apart_ns / 1_000_000_000;
        let advice = "set both, for example with chrony or systemd-timesyncd";
        (apart_ns > CLOCK_LIMIT_NS).then(|| format!("its clock differs by {apart} s from this one: {advice}"))
    }
}

/// Checks the name of an agent or a campaign: it is a part of file names and of subjects.
pub(crate) fn check_name(what: &str, name: &str) -> Result<(), FleetError> {
    if !name.is_empty() && name.len() <= MAX_NAME_LENGTH && name.bytes().all(is_plain) {
        return Ok(());
    }
    let name = stacklab_model::printable_lines(name);
    Err(FleetError::Usage(format!(
        "`{name}` cannot be the name of {what}: use up to {MAX_NAME_LENGTH} letters, digits, - and _"
    )))
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Why an agent cannot be used whose clock is ahead by this; empty if it can.
    fn refuse(agent: &AgentInfo, ahead_ns: i64) -> String {
        let presence = Presence { agent: agent.clone(), now_ns: ahead_ns, held: vec![], kept: vec![] };
        presence.unusable(0).unwrap_or_default()
    }

    #[test]
    fn an_agent_of_another_version_or_time_is_not_used() {
        let agent = AgentInfo::new("a", &[], &[], &[]).unwrap();
        assert_eq!(refuse(&agent, 0), "");
        for hour in [-3_600_000_000_000, 3_600_000_000_000] {
            let reason = refuse(&agent, hour);
            assert!(reason.starts_with("its clock differs by 3"), "{reason}");
        }
        let other = AgentInfo { version: "9.9.9\u{1b}[31m".to_owned(), ..agent.clone() };
        let reason = refuse(&other, 0);
        assert!(
            reason.contains("9.9.9") && reason.contains("same version") && !reason.contains('\u{1b}'),
            "{reason}"
        );
        let named = AgentInfo { name: "../a".to_owned(), ..agent };
        let reason = refuse(&named, 0);
        assert!(reason.starts_with("`../a` cannot be the name of an agent"), "{reason}");
    }
}
