//! Exact counts: the instructions that a message costs, by stage and function.

use crate::factors::factor::Factor;
use crate::factors::family::Family;
use crate::factors::mechanism::Mechanism;
use crate::names::named;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::str::FromStr;

named! {
    /// The traffic whose instructions are counted.
    pub enum ExactProbe("probe") {
        /// UDP messages, sent and received.
        Udp = "udp",
        /// TCP messages with TCP_NODELAY, sent and received.
        Tcp = "tcp",
        /// UDP messages that return to the sender.
        Echo = "echo",
        /// TCP connections, opened and closed by both ends.
        Connect = "connect",
    }
}

impl ExactProbe {
    /// One message as the unit of a figure.
    pub fn unit(self) -> &'static str {
        match self {
            ExactProbe::Udp | ExactProbe::Tcp => "message",
            ExactProbe::Echo => "round trip",
            ExactProbe::Connect => "connection",
        }
    }
}

/// The network between sender and receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExactPath {
    /// Loopback in one namespace.
    Loopback,
    /// Two namespaces joined by a veth pair.
    Link,
    /// Two namespaces behind two routers with a mechanism between them.
    Routed(Mechanism),
}

impl ExactPath {
    /// Whether packets of the family can pass.
    pub fn carries(self, family: Family) -> bool {
        !matches!(self, ExactPath::Routed(mechanism) if !mechanism.carries(family))
    }
}

impl fmt::Display for ExactPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExactPath::Loopback => f.pad("loopback"),
            ExactPath::Link => f.pad("link"),
            ExactPath::Routed(mechanism) => mechanism.fmt(f),
        }
    }
}

impl FromStr for ExactPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "loopback" => Ok(ExactPath::Loopback),
            "link" => Ok(ExactPath::Link),
            _ => text
                .parse()
                .map(ExactPath::Routed)
                .map_err(|unknown| format!("{unknown}; or loopback, or link: two hosts and a veth pair")),
        }
    }
}

impl Serialize for ExactPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ExactPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// One of the two kinds of messages that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ExactArm {
    /// The sender's address family.
    pub family: Family,
    /// The network.
    pub path: ExactPath,
    /// Payload bytes of a message; 0 for connections.
    pub size: u32,
    /// nftables rules without a match that each packet passes at the receiver, in the family of the packet there.
    pub rules: u32,
}

/// Instructions that an emulated machine executed for messages of both arms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExactCounts {
    /// Version of QEMU.
    pub qemu: String,
    /// Release of the guest's kernel.
    pub kernel: String,
    /// One for each compared pair, in the order of the request.
    pub cells: Vec<ExactCell>,
}

/// The counts of a pair of arms, baseline first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExactCell {
    /// The traffic.
    pub probe: ExactProbe,
    /// The arms.
    pub arms: [ExactArm; 2],
    /// Messages of each arm.
    pub messages: u64,
    /// All instructions of each arm.
    pub total: [u64; 2],
    /// The same of each round; rounds differ by timer interrupts.
    pub rounds: Vec<[u64; 2]>,
    /// Stages, the largest difference first. They add up to the total.
    pub stages: Vec<ExactRow>,
    /// Functions, in the same order. They add up to the total.
    pub functions: Vec<ExactRow>,
}

/// The instructions of a stage, or of a function; with arms of both families also of its twin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExactRow {
    /// The stage or function.
    pub name: String,
    /// The stage of a function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// Instructions of each arm.
    pub instructions: [u64; 2],
}

impl ExactCell {
    /// A number of instructions per message.
    pub fn per_message(&self, instructions: u64) -> f64 {
        instructions as f64 / self.messages as f64
    }

    /// Candidate minus baseline, per message.
    pub fn difference(&self, [baseline, candidate]: [u64; 2]) -> f64 {
        (candidate as f64 - baseline as f64) / self.messages as f64
    }

    /// The levels in which the arms differ: `IPv4` and `IPv6`, `native` and `6in4`, `0 rules` and `10 rules`.
    pub fn levels(&self) -> [String; 2] {
        let is_same = |of: fn(&ExactArm) -> String| of(&self.arms[0]) == of(&self.arms[1]);
        let parts: Vec<_> = PARTS.into_iter().filter(|of| !is_same(*of)).collect();
        self.arms.each_ref().map(|arm| join(parts.iter().map(|of| of(arm))))
    }

    /// The traffic, and everything that the arms have in common.
    pub fn context(&self) -> String {
        let [baseline, candidate] = &self.arms;
        let common = PARTS.into_iter().filter(|of| of(baseline) == of(candidate)).map(|of| of(baseline));
        let common = common.filter(|part| part != NO_RULES);
        let probe = match self.probe {
            ExactProbe::Udp => "UDP",
            ExactProbe::Tcp => "TCP",
            ExactProbe::Echo => "UDP echo",
            ExactProbe::Connect => "TCP connection",
        };
        join([probe.to_owned()].into_iter().chain(common))
    }
}

const NO_RULES: &str = "no rules";

/// The parts of an arm's label.
const PARTS: [fn(&ExactArm) -> String; 4] = [
    |arm| Factor::Family.level_label(arm.family.name()),
    |arm| match arm.size {
        0 => String::new(),
        size => format!("{size} B"),
    },
    |arm| match arm.path {
        ExactPath::Link => "veth link".to_owned(),
        path => path.to_string(),
    },
    |arm| match arm.rules {
        0 => NO_RULES.to_owned(),
        1 => "1 rule".to_owned(),
        rules => format!("{rules} rules"),
    },
];

fn join(parts: impl Iterator<Item = String>) -> String {
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}
