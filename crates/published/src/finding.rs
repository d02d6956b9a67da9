//! Directions that studies found.

use crate::rows::{ReferenceError, rows};
use crate::scope::Scope;
use serde::Deserialize;
use stacklab_model::{Family, Mechanism, Metric, Transport};
use std::mem::discriminant;

/// One arm of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum FindingArm {
    /// An address family.
    Family(Family),
    /// A transport protocol.
    Transport(Transport),
    /// A size, bytes.
    Size(u32),
    /// A tunnel; any kind if none is named.
    Tunnel(Option<Mechanism>),
    /// The socket buffers: enlarged or default.
    Buffers {
        /// Larger than the default.
        larger: bool,
    },
    /// The link's MTU: a smaller one, or 1500.
    Mtu {
        /// Smaller than 1500.
        smaller: bool,
    },
    /// Wi-Fi, encrypted or not.
    Wpa2(bool),
    /// The roles of the hosts: client and server, or peers.
    ClientServer(bool),
}

/// The direction of arm a against arm b.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum FindingDirection {
    /// It is higher.
    #[serde(rename = "a_higher")]
    Higher,
    /// It is lower.
    #[serde(rename = "a_lower")]
    Lower,
    /// They are the same.
    #[serde(rename = "equal")]
    Equal,
}

impl FindingDirection {
    /// The direction of arm b against arm a.
    pub(crate) fn mirrored(self) -> Self {
        match self {
            FindingDirection::Higher => FindingDirection::Lower,
            FindingDirection::Lower => FindingDirection::Higher,
            FindingDirection::Equal => FindingDirection::Equal,
        }
    }
}

/// A direction that a study found.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Finding {
    /// Its name in this project, such as `S1`.
    pub id: String,
    /// The study.
    pub source: String,
    /// Table, figure or section.
    pub location: String,
    /// The metric.
    pub metric: Metric,
    /// The arm compared.
    #[serde(rename = "arm_a")]
    pub a: FindingArm,
    /// The arm that it is compared with.
    #[serde(rename = "arm_b")]
    pub b: FindingArm,
    /// The direction of a against b.
    pub direction: FindingDirection,
    /// The conditions.
    pub scope: Scope,
    /// The finding in words.
    pub statement: String,
}

pub(crate) fn read(text: &str) -> Result<Vec<Finding>, ReferenceError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn error(row: &str) -> String {
        let header = "id,source,location,metric,arm_a,arm_b,direction,scope,statement";
        read(&format!("{header}\nX1,kolahi2009lan,IV,{row},same\n")).unwrap_err().to_string()
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
}
