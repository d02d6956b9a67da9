//! Exact counts: the instructions that a message costs, by stage and function.

use crate::names::{json_is_text, named};
use crate::{Factor, Family, Mechanism, RuleForm, Rules, SocketKind, Tracking};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

named! {
    pub enum ExactProbe("probe") {
        Udp = "udp",
        /// TCP messages with TCP_NODELAY, sent and received.
        Tcp = "tcp",
        Echo = "echo",
        Connect = "connect",
    }
}

impl ExactProbe {
    pub fn unit(self) -> &'static str {
        match self {
            ExactProbe::Udp | ExactProbe::Tcp => "message",
            ExactProbe::Echo => "round trip",
            ExactProbe::Connect => "connection",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExactPath {
    Loopback,
    Link,
    /// Two namespaces behind two routers with a mechanism between them.
    Routed(Mechanism),
}

impl ExactPath {
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

json_is_text!(ExactPath);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ExactArm {
    pub family: Family,
    pub path: ExactPath,
    /// Payload bytes of a message; 0 for connections.
    pub size: u32,
    /// nftables rules without a match that each packet passes at the receiver, in the family of the packet there.
    pub rules: u32,
    /// Further routes of each family on the near router.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub routes: u32,
    /// Connection tracking on the near router.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub conntrack: Tracking,
    /// A firewall on the near router, none of whose rules matches.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub firewall: Rules,
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub socket: SocketKind,
}

impl ExactArm {
    /// Whether its routers have more than they need to forward.
    pub fn has_tables(&self) -> bool {
        self.routes > 0 || self.conntrack != Tracking::Off || self.firewall.count > 0
    }

    /// Whether two arms differ in nothing of their network.
    pub fn shares_network(&self, other: &ExactArm) -> bool {
        self.path == other.path
            && self.rules == other.rules
            && self.firewall == other.firewall
            && (self.routes, self.conntrack) == (other.routes, other.conntrack)
    }

    /// The entries of both families that its routers' tables have.
    pub(crate) fn count_entries(&self) -> u32 {
        let entries = self.routes.saturating_add(self.conntrack.connections());
        entries.saturating_add(self.firewall.count).saturating_mul(2)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExactCounts {
    pub qemu: String,
    pub kernel: String,
    /// One for each compared pair, in the order of the request.
    pub cells: Vec<ExactCell>,
}

/// The counts of a pair of arms, baseline first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExactCell {
    pub probe: ExactProbe,
    pub arms: [ExactArm; 2],
    pub messages: u64,
    pub total: [u64; 2],
    /// The total of each round; rounds differ by timer interrupts.
    pub rounds: Vec<[u64; 2]>,
    /// Stages, the largest difference first. They add up to the total.
    pub stages: Vec<ExactRow>,
    /// Functions, in the same order. They add up to the total.
    pub functions: Vec<ExactRow>,
}

/// The instructions of a stage, or of a function; with arms of both families also of its twin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExactRow {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    pub instructions: [u64; 2],
}

impl ExactCell {
    pub fn per_message(&self, instructions: u64) -> f64 {
        instructions as f64 / self.messages as f64
    }

    pub fn difference(&self, [baseline, candidate]: [u64; 2]) -> f64 {
        (candidate as f64 - baseline as f64) / self.messages as f64
    }

    /// The levels in which the arms differ: `IPv4` and `IPv6`, `native` and `6in4`, `0 rules` and `10 rules`.
    pub fn levels(&self) -> [String; 2] {
        let parts: Vec<_> = PARTS.into_iter().filter(|of| of(&self.arms[0]) != of(&self.arms[1])).collect();
        self.arms.each_ref().map(|arm| join(parts.iter().map(|of| of(arm))))
    }

    pub fn context(&self) -> String {
        let [baseline, candidate] = &self.arms;
        let common = PARTS.into_iter().filter(|of| of(baseline) == of(candidate)).map(|of| of(baseline));
        let common = common.filter(|part| !USUAL.contains(&part.as_str()));
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
const NO_ROUTES: &str = "no further routes";
const NO_TRACKING: &str = "no tracking";
const NO_FIREWALL: &str = "no firewall";
/// What is not said of two arms that both have it.
const USUAL: [&str; 5] = [NO_RULES, NO_ROUTES, NO_TRACKING, NO_FIREWALL, "native socket"];

const PARTS: [fn(&ExactArm) -> String; 8] = [
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
    |arm| match arm.routes {
        0 => NO_ROUTES.to_owned(),
        routes => format!("{routes} further routes"),
    },
    |arm| match arm.conntrack {
        Tracking::Off => NO_TRACKING.to_owned(),
        Tracking::On(connections) => format!("tracking, {connections} further connections"),
    },
    |arm| match arm.firewall {
        Rules { count: 0, .. } => NO_FIREWALL.to_owned(),
        Rules { count, form: RuleForm::List } => format!("firewall of {count} rules"),
        Rules { count, form } => format!("firewall with a {form} of {count}"),
    },
    |arm| format!("{} socket", arm.socket),
];

fn join(parts: impl Iterator<Item = String>) -> String {
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}
