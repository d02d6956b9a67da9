//! A point of the study's matrix: one level of every factor.

use crate::names::named;
use crate::{Family, Framing, Transport};
use serde::{Deserialize, Serialize};
use std::fmt;

named! {
    /// What a study varies.
    pub enum Factor("factor") {
        /// Address family.
        Family = "family",
        /// Transport protocol.
        Transport = "transport",
        /// What size means.
        Framing = "framing",
        /// Bytes per message or frame.
        Size = "size",
        /// A label without any effect: two replicas of one arm must not differ (an A/A study).
        Replica = "replica",
    }
}

/// One level of every factor.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Cell {
    /// Transport protocol.
    pub transport: Transport,
    /// What `size` means.
    pub framing: Framing,
    /// Bytes per message, or per frame where `framing` says so.
    pub size: u32,
    /// Address family.
    pub family: Family,
    /// A label without effect; empty where the study has no replicas.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub replica: String,
}

impl Cell {
    /// The cell's level of a factor, as printed and as written in study files.
    pub fn level(&self, factor: Factor) -> String {
        match factor {
            Factor::Family => self.family.to_string(),
            Factor::Transport => self.transport.to_string(),
            Factor::Framing => self.framing.to_string(),
            Factor::Size => self.size.to_string(),
            Factor::Replica => self.replica.clone(),
        }
    }

    /// Whether two cells differ in nothing but the factor (or not even there).
    pub fn same_but(&self, other: &Cell, factor: Factor) -> bool {
        Factor::ALL.iter().all(|f| *f == factor || self.level(*f) == other.level(*f))
    }

    /// The cell's levels without one factor, for headings: `tcp segment 128 B`.
    pub fn context(&self, without: Factor) -> String {
        let parts = Factor::ALL.iter().filter(|f| **f != without).filter_map(|f| match f {
            Factor::Size => Some(format!("{} B", self.size)),
            Factor::Replica if self.replica.is_empty() => None,
            _ => Some(self.level(*f)),
        });
        parts.collect::<Vec<_>>().join(" ")
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {} B", self.family, self.transport, self.framing, self.size)?;
        if self.replica.is_empty() { Ok(()) } else { write!(f, " {}", self.replica) }
    }
}
