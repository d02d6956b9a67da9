//! Directions that studies found.

use crate::rows::{ReferenceError, rows};
use crate::scope::Scope;
use stacklab_model::{Family, Mechanism, Metric, Transport};
use std::mem::discriminant;

/// One arm of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arm {
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FindingDirection {
    /// It is higher.
    Higher,
    /// It is lower.
    Lower,
    /// They are the same.
    Equal,
}

/// A direction that a study found.
#[derive(Debug, Clone, PartialEq)]
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
    pub a: Arm,
    /// The arm that it is compared with.
    pub b: Arm,
    /// The direction of a against b.
    pub direction: FindingDirection,
    /// The conditions.
    pub scope: Scope,
    /// The conditions as written.
    pub scope_text: String,
    /// The finding in words.
    pub statement: String,
}

const COLUMNS: &[&str] =
    &["id", "source", "location", "metric", "arm_a", "arm_b", "direction", "scope", "statement"];

/// Reads `findings.csv`.
pub(crate) fn read(text: &str) -> Result<Vec<Finding>, ReferenceError> {
    rows("findings.csv", text, COLUMNS, |row| {
        let (a, b) = (row.read("arm_a", arm)?, row.read("arm_b", arm)?);
        if discriminant(&a) != discriminant(&b) {
            return Err(row.wrong("`arm_a` and `arm_b` are not of one kind"));
        }
        Ok(Finding {
            id: row.filled("id")?,
            source: row.source()?,
            location: row.filled("location")?,
            metric: row.read("metric", str::parse)?,
            a,
            b,
            direction: row.read("direction", direction)?,
            scope: row.read("scope", Scope::read)?,
            scope_text: row.text("scope").to_owned(),
            statement: row.filled("statement")?,
        })
    })
}

fn arm(text: &str) -> Result<Arm, String> {
    if let Ok(family) = text.parse() {
        return Ok(Arm::Family(family));
    }
    if let Ok(transport) = text.parse() {
        return Ok(Arm::Transport(transport));
    }
    if let Some(size) = text.strip_prefix("size ").and_then(|size| size.parse().ok()) {
        return Ok(Arm::Size(size));
    }
    Ok(match text {
        "tunnel" => Arm::Tunnel(None),
        "configured-tunnel" => Arm::Tunnel(Some(Mechanism::SixInFour)),
        "6to4" => Arm::Tunnel(Some(Mechanism::SixToFour)),
        "larger socket buffers" => Arm::Buffers { larger: true },
        "default socket buffers" => Arm::Buffers { larger: false },
        "smaller MTU" => Arm::Mtu { smaller: true },
        "MTU 1500" => Arm::Mtu { smaller: false },
        "WPA2" => Arm::Wpa2(true),
        "no WPA2" => Arm::Wpa2(false),
        "client-server" => Arm::ClientServer(true),
        "peer-to-peer" => Arm::ClientServer(false),
        _ => return Err(format!("`{text}` cannot be compared")),
    })
}

fn direction(text: &str) -> Result<FindingDirection, String> {
    Ok(match text {
        "a_higher" => FindingDirection::Higher,
        "a_lower" => FindingDirection::Lower,
        "equal" => FindingDirection::Equal,
        _ => return Err(format!("`{text}` is none of a_higher, a_lower and equal")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(row: &str) -> String {
        read(&format!("{}\n{row}\n", COLUMNS.join(","))).unwrap_err().to_string()
    }

    #[test]
    fn what_is_not_understood_is_said_with_its_line_and_column() {
        let place = "reference/findings.csv:2: ";
        let wrong = error("X1,kolahi2009lan,IV,speed,ipv4,ipv6,equal,tcp,same");
        assert!(wrong.starts_with(&format!("{place}`metric`: there is no metric `speed`")), "{wrong}");
        for (row, what) in [
            (
                "X1,kolahi2009lan,IV,rtt,ipv4,size 64,equal,tcp,same",
                "`arm_a` and `arm_b` are not of one kind",
            ),
            ("X1,kolahi2009lan,IV,rtt,ipv4,ipv9,equal,tcp,same", "`arm_b`: `ipv9` cannot be compared"),
            (
                "X1,kolahi2009lan,IV,rtt,ipv4,ipv6,same,tcp,same",
                "`direction`: `same` is none of a_higher, a_lower and equal",
            ),
            ("X1,kolahi2009lan,IV,rtt,ipv4,ipv6,equal,icmp,same", "`scope`: unknown condition `icmp`"),
        ] {
            assert_eq!(error(row), format!("{place}{what}"));
        }
    }
}
