//! Conditions of studies that a testbed of namespaces cannot reproduce.

use crate::rows::{ReferenceError, rows};

/// The kind of condition. A finding about it cannot be judged without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitKind {
    /// An operating system.
    System,
    /// The link and its cable.
    Link,
    /// Routers between the hosts.
    Router,
    /// Wi-Fi.
    Wifi,
    /// The roles of the two hosts.
    Topology,
    /// Services running on the hosts.
    Services,
    /// The traffic generator.
    Tool,
}

/// A condition that a preset does not reproduce.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// The study.
    pub source: String,
    /// Its kind.
    pub kind: LimitKind,
    /// The study's condition.
    pub original: String,
    /// The preset's replacement.
    pub stand_in: String,
    /// The requirement for reproducing it.
    pub needs: String,
}

/// Reads `limits.csv`.
pub(crate) fn read(text: &str) -> Result<Vec<Limit>, ReferenceError> {
    rows("limits.csv", text, &["source", "kind", "original", "stand_in", "needs"], |row| {
        Ok(Limit {
            source: row.source()?,
            kind: row.read("kind", kind)?,
            original: row.filled("original")?,
            stand_in: row.filled("stand_in")?,
            needs: row.filled("needs")?,
        })
    })
}

fn kind(text: &str) -> Result<LimitKind, String> {
    Ok(match text {
        "system" => LimitKind::System,
        "link" => LimitKind::Link,
        "router" => LimitKind::Router,
        "wifi" => LimitKind::Wifi,
        "topology" => LimitKind::Topology,
        "services" => LimitKind::Services,
        "tool" => LimitKind::Tool,
        _ => return Err(format!("there is no kind `{text}`")),
    })
}
