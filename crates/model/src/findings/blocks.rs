//! What a block gave for each question: all that the verdicts of a pair of hosts need of its runs.

use serde::{Deserialize, Serialize};

/// What an arm gave in a block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ArmFigure {
    /// The figure of a valid run.
    Measured(f64),
    /// A count of events, and about how many messages the run sent.
    Events([f64; 2]),
    /// Why it has no figure.
    Absent {
        /// The reason.
        absent: String,
        /// Whether the run is valid.
        valid: bool,
    },
}

impl ArmFigure {
    /// The figure, if there is one.
    pub fn figure(&self) -> Option<f64> {
        match self {
            ArmFigure::Measured(figure) | ArmFigure::Events([figure, _]) => Some(*figure),
            ArmFigure::Absent { .. } => None,
        }
    }
}

/// What both arms of a question gave in a block, the baseline first; `None` where an arm was not run.
pub type BlockFigures = [Option<ArmFigure>; 2];

/// A block of a pair of hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BlockSummary {
    /// Number of valid runs, and of all.
    pub runs: [u32; 2],
    /// The figures of each question of the study, in their order.
    pub figures: Vec<BlockFigures>,
}
