//! Why two cells differ.

use crate::explanation::exact::ExactCounts;
use crate::explanation::stage_costs::StageCosts;
use crate::factors::cell::Cell;
use crate::factors::factor::Factor;
use crate::factors::family::Probe;
use serde::{Deserialize, Serialize};

/// Why two cells that differ in one factor differ in what a message costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// The probe that sent the messages.
    pub probe: Probe,
    /// The factor that differs.
    pub factor: Factor,
    /// The baseline's cell.
    pub baseline: Cell,
    /// The candidate's cell.
    pub candidate: Cell,
    /// The answer.
    pub why: Why,
    /// Instructions of the same pair, if they were counted: one cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact: Option<Box<ExactCounts>>,
}

impl Explanation {
    /// What both cells have in common, as keys: `stream udp 128 B payload`.
    pub fn context(&self) -> String {
        format!("{} {}", self.probe, self.baseline.context(self.factor))
    }

    /// The levels that differ, as keys: baseline, candidate.
    pub fn arms(&self) -> [String; 2] {
        [&self.baseline, &self.candidate].map(|cell| cell.level(self.factor))
    }

    /// The same in words: `stream UDP 128 B`.
    pub fn context_label(&self) -> String {
        format!("{} {}", self.probe, self.baseline.label_without(Some(self.factor)))
    }

    /// The levels in words: `IPv4`, `IPv6`.
    pub fn arm_labels(&self) -> [String; 2] {
        self.arms().map(|level| self.factor.level_label(&level))
    }

    /// The costs, if they are known.
    pub fn costs(&self) -> Option<&StageCosts> {
        match &self.why {
            Why::Costs(costs) => Some(costs),
            Why::Unknown(_) => None,
        }
    }
}

/// Where the difference is, or the reason why that is not known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Why {
    /// The costs by stage.
    Costs(Box<StageCosts>),
    /// They are not known, for this reason.
    Unknown(String),
}
