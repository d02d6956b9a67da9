//! Directions that studies found, and the conditions of each.

use crate::tables::{ReferenceError, rows};
use serde::Deserialize;
use stacklab_model::{Family, Mechanism, Metric, Transport};
use std::mem::discriminant;

/// One arm of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum FindingArm {
    Family(Family),
    Transport(Transport),
    /// Bytes.
    Size(u32),
    /// A tunnel; any kind if none is named.
    Tunnel(Option<Mechanism>),
    /// The socket buffers: enlarged or default.
    Buffers {
        larger: bool,
    },
    /// The link's MTU: a smaller one, or 1500.
    Mtu {
        smaller: bool,
    },
    Wpa2(bool),
    /// The roles of the hosts: client and server, or peers.
    ClientServer(bool),
}

/// The direction of arm a against arm b.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) enum FindingDirection {
    #[serde(rename = "a_higher")]
    Higher,
    #[serde(rename = "a_lower")]
    Lower,
    #[serde(rename = "equal")]
    Equal,
}

impl FindingDirection {
    /// The direction of arm b against arm a.
    pub(crate) fn reverse(self) -> Self {
        match self {
            FindingDirection::Higher => FindingDirection::Lower,
            FindingDirection::Lower => FindingDirection::Higher,
            FindingDirection::Equal => FindingDirection::Equal,
        }
    }
}

/// A direction that a study found.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Finding {
    /// Its name in this project, such as `S1`.
    pub id: String,
    pub source: String,
    /// Table, figure or section.
    pub location: String,
    pub metric: Metric,
    #[serde(rename = "arm_a")]
    pub a: FindingArm,
    #[serde(rename = "arm_b")]
    pub b: FindingArm,
    pub direction: FindingDirection,
    pub scope: Scope,
    /// The finding in words.
    pub statement: String,
}

pub(crate) fn findings(text: &str) -> Result<Vec<Finding>, ReferenceError> {
    rows("findings.csv", text, &["scope"], |finding: &Finding| {
        match discriminant(&finding.a) == discriminant(&finding.b) {
            true => Ok(()),
            false => Err("`arm_a` and `arm_b` are not of one kind".to_owned()),
        }
    })
}

impl TryFrom<String> for FindingArm {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if let Ok(family) = text.parse() {
            return Ok(FindingArm::Family(family));
        }
        if let Ok(transport) = text.parse() {
            return Ok(FindingArm::Transport(transport));
        }
        if let Some(size) = text.strip_prefix("size ").and_then(|size| size.parse().ok()) {
            return Ok(FindingArm::Size(size));
        }
        Ok(match text.as_str() {
            "tunnel" => FindingArm::Tunnel(None),
            "configured-tunnel" => FindingArm::Tunnel(Some(Mechanism::SixInFour)),
            "6to4" => FindingArm::Tunnel(Some(Mechanism::SixToFour)),
            "larger socket buffers" => FindingArm::Buffers { larger: true },
            "default socket buffers" => FindingArm::Buffers { larger: false },
            "smaller MTU" => FindingArm::Mtu { smaller: true },
            "MTU 1500" => FindingArm::Mtu { smaller: false },
            "WPA2" => FindingArm::Wpa2(true),
            "no WPA2" => FindingArm::Wpa2(false),
            "client-server" => FindingArm::ClientServer(true),
            "peer-to-peer" => FindingArm::ClientServer(false),
            _ => return Err(format!("`{text}` cannot be compared")),
        })
    }
}

/// The sizes of a finding.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sizes {
    /// The study states no sizes, or uses the mean over sizes: all sizes together.
    #[default]
    Together,
    /// Each size alone.
    Every,
    /// Each size except one.
    EveryBut(u32),
    /// More than half of the sizes, each alone.
    Most,
    Only(u32),
    /// Sizes below this one, together.
    Below(u32),
    /// Sizes from this one on, together.
    From(u32),
}

/// "Small sizes", if a study states no limit: less than this, in bytes.
const SMALL_BELOW: u32 = 512;
/// "Large sizes", if a study states no limit: this or more, in bytes.
const LARGE_FROM: u32 = 1024;

impl Sizes {
    /// Whether a size is in the scope.
    pub(crate) fn contains(self, size: u32) -> bool {
        match self {
            Sizes::Together | Sizes::Every | Sizes::Most => true,
            Sizes::EveryBut(but) => size != but,
            Sizes::Only(only) => size == only,
            Sizes::Below(least) => size < least,
            Sizes::From(least) => size >= least,
        }
    }

    /// Whether each size is judged alone.
    pub(crate) fn alone(self) -> bool {
        matches!(self, Sizes::Every | Sizes::EveryBut(_) | Sizes::Most)
    }
}

/// The systems of a finding.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) enum Systems {
    /// The study states no systems.
    #[default]
    Unsaid,
    Named(String),
    /// All of the study's systems.
    All,
    /// The mean of the study's systems.
    Mean,
    /// The finding compares the systems.
    Compared,
}

/// The conditions of a finding.
#[derive(Debug, Default, Clone, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Scope {
    /// The conditions as written.
    pub text: String,
    /// The transports, each judged alone; empty if none is named.
    pub transports: Vec<Transport>,
    pub family: Option<Family>,
    /// Whether the finding must hold in each family alone.
    pub each_family: bool,
    pub sizes: Sizes,
    pub systems: Systems,
    /// The tunnel, if the finding is about one.
    pub tunnel: Option<Mechanism>,
    /// The largest difference of the arms, in the metric's unit.
    pub within_points: Option<f64>,
}

impl TryFrom<String> for Scope {
    type Error = String;

    /// Reads the conditions, separated by `;`.
    fn try_from(text: String) -> Result<Self, String> {
        let mut scope = Scope { text: text.clone(), ..Scope::default() };
        for condition in text.split(';').map(str::trim).filter(|condition| !condition.is_empty()) {
            scope.add(condition)?;
        }
        Ok(scope)
    }
}

impl Scope {
    fn add(&mut self, condition: &str) -> Result<(), String> {
        match condition {
            "tcp" | "udp" => self.transports = condition.parse().into_iter().collect(),
            "tcp and udp" => self.transports = vec![Transport::Tcp, Transport::Udp],
            "ipv4" | "ipv6" => self.family = condition.parse().ok(),
            "both families" => self.each_family = true,
            "mean over sizes" => self.sizes = Sizes::Together,
            "all sizes" => self.sizes = Sizes::Every,
            "most sizes" => self.sizes = Sizes::Most,
            "small sizes" => self.sizes = Sizes::Below(SMALL_BELOW),
            "large sizes" => self.sizes = Sizes::From(LARGE_FROM),
            "both systems" | "all systems" => self.systems = Systems::All,
            "mean of systems" => self.systems = Systems::Mean,
            "between systems" => self.systems = Systems::Compared,
            "RHES 5.5" | "Ubuntu 10.04" | "Ubuntu" => self.systems = Systems::Named(condition.to_owned()),
            "configured-tunnel" => self.tunnel = Some(Mechanism::SixInFour),
            // The metric already states it.
            "sender" => {}
            _ => self.add_number(condition)?,
        }
        Ok(())
    }

    /// Reads a condition with a number in it.
    fn add_number(&mut self, condition: &str) -> Result<(), String> {
        let points = condition.strip_prefix("within ").and_then(|rest| rest.strip_suffix(" points"));
        if let Some(points) = points.and_then(parse_number) {
            self.within_points = Some(f64::from(points));
            return Ok(());
        }
        self.sizes = parse_sizes(condition).ok_or_else(|| format!("unknown condition `{condition}`"))?;
        Ok(())
    }
}

fn parse_sizes(condition: &str) -> Option<Sizes> {
    if let Some(but) = condition.strip_prefix("all sizes but").and_then(parse_number) {
        return Some(Sizes::EveryBut(but));
    }
    if let Some(least) = condition.strip_prefix("sizes below").and_then(parse_number) {
        return Some(Sizes::Below(least));
    }
    if let Some(least) = condition.strip_prefix("sizes from").and_then(parse_number) {
        return Some(Sizes::From(least));
    }
    parse_number(condition).map(Sizes::Only)
}

fn parse_number(text: &str) -> Option<u32> {
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(row: &str) -> String {
        let header = "id,source,location,metric,arm_a,arm_b,direction,scope,statement";
        findings(&format!("{header}\nX1,kolahi2009lan,IV,{row},same\n")).unwrap_err().to_string()
    }

    #[test]
    fn what_is_not_understood_is_said_with_its_line() {
        for (row, what) in [
            ("rtt,ipv4,size 64,equal,tcp", "`arm_a` and `arm_b` are not of one kind"),
            ("rtt,ipv4,ipv9,equal,tcp", "`ipv9` cannot be compared"),
            (
                "rtt,ipv4,ipv6,same,tcp",
                "unknown variant `same`, expected one of `a_higher`, `a_lower`, `equal`",
            ),
            ("rtt,ipv4,ipv6,equal,icmp", "unknown condition `icmp`"),
        ] {
            assert_eq!(error(row), format!("reference/findings.csv:2: {what}"));
        }
        let wrong = error("speed,ipv4,ipv6,equal,tcp");
        assert!(wrong.starts_with("reference/findings.csv:2: unknown variant `speed`"), "{wrong}");
    }

    #[test]
    fn conditions_are_read_one_by_one() {
        let scope = read_scope("tcp; sizes below 896; mean of systems").unwrap();
        assert_eq!(scope.transports, [Transport::Tcp]);
        assert_eq!((scope.sizes, scope.systems), (Sizes::Below(896), Systems::Mean));
        let scope = read_scope("udp; all sizes but 384").unwrap();
        assert_eq!(scope.sizes, Sizes::EveryBut(384));
        assert!(scope.sizes.alone() && !scope.sizes.contains(384) && scope.sizes.contains(128));
        assert_eq!(read_scope("within 5 points").unwrap().within_points, Some(5.0));
        assert_eq!(read_scope("tcp; tea").unwrap_err(), "unknown condition `tea`");
    }

    fn read_scope(text: &str) -> Result<Scope, String> {
        Scope::try_from(text.to_owned())
    }
}
