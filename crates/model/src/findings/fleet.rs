//! The findings of a fleet: the same questions asked of many pairs of hosts.

use crate::{Effect, Headline, Interval, MIN_FLEET_PAIRS, Question, Verdict};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FleetFindings {
    pub title: String,
    /// Whether the campaign has ended. Before, nothing is claimed over pairs.
    pub has_ended: bool,
    pub pairs: Vec<FleetPair>,
    pub comparisons: Vec<FleetComparison>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overall: Vec<Headline>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetPair {
    pub name: String,
    /// Number of blocks with at least one measured run.
    pub blocks: u32,
    pub valid_runs: usize,
    pub invalid_runs: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FleetComparison {
    #[serde(flatten)]
    pub question: Question,
    pub answers: Vec<PairAnswer>,
    pub counted: usize,
    /// Number of pairs without a figure.
    pub left_out: usize,
    /// The difference over pairs; `None` with fewer than two of them, or where no event was seen.
    pub pooled: Option<PooledEffect>,
    pub verdict: Verdict,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_interval: Option<Interval>,
}

impl FleetComparison {
    /// Whether its question has an answer: nothing is claimed of few pairs, not even that events are rare.
    pub fn is_answer(&self) -> bool {
        let is_none_seen = matches!(self.verdict, Verdict::NoneSeen(_));
        self.verdict.is_answer() && (!is_none_seen || self.counted >= MIN_FLEET_PAIRS)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairAnswer {
    pub verdict: Verdict,
    pub effect: Option<Effect>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_interval: Option<Interval>,
}

/// A difference over pairs of hosts that are a sample of many: random effects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PooledEffect {
    /// The mean over pairs; of fewer than [`MIN_PAIRS_OF_MEAN`](crate::MIN_PAIRS_OF_MEAN) the typical pair, whose p are
    /// those of its tests. Its `pairs` are pairs of hosts.
    pub effect: Effect,
    /// The spread between pairs: the standard deviation of their true differences (of their logarithms, for ratios).
    pub spread: f64,
    pub spread_interval: Interval,
    /// Where the true difference of another pair is expected, 95 %; `None` with fewer than three pairs.
    pub prediction: Option<Interval>,
    pub p: f64,
    /// Adjusted for the number of comparisons (Benjamini and Hochberg). At most 0.025 is a claim. `None` before the
    /// campaign has ended.
    pub adjusted_p: Option<f64>,
    /// p of a difference as large as the margin or larger (two one-sided tests).
    pub equivalence_p: f64,
    pub adjusted_equivalence_p: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ArmFigure {
    Measured(f64),
    /// A count of events, and about how many messages the run sent.
    Events([f64; 2]),
    Absent {
        absent: String,
        valid: bool,
    },
}

impl ArmFigure {
    pub fn figure(&self) -> Option<f64> {
        match self {
            ArmFigure::Measured(figure) | ArmFigure::Events([figure, _]) => Some(*figure),
            ArmFigure::Absent { .. } => None,
        }
    }
}

/// What both arms of a question gave in a block, the baseline first; `None` where an arm was not run.
pub type BlockFigures = [Option<ArmFigure>; 2];

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BlockSummary {
    /// Number of valid runs, and of all.
    pub runs: [u32; 2],
    pub figures: Vec<BlockFigures>,
}
