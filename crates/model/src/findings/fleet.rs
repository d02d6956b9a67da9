//! The findings of a fleet: the same questions asked of many pairs of hosts.

use crate::findings::finding::{Effect, Interval, Question, Verdict};
use crate::findings::overall::Headline;
use serde::{Deserialize, Serialize};

/// The answers of all pairs of hosts, and what holds over pairs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FleetFindings {
    /// Title of the study.
    pub title: String,
    /// Whether the campaign has ended. Before, nothing is claimed over pairs.
    pub has_ended: bool,
    /// The pairs of hosts.
    pub pairs: Vec<FleetPair>,
    /// Every question, with its answers.
    pub comparisons: Vec<FleetComparison>,
    /// The differences over pairs, each over all cells in which it was asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overall: Vec<Headline>,
}

/// A pair of hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetPair {
    /// Its name.
    pub name: String,
    /// Number of blocks with at least one measured run.
    pub blocks: u32,
    /// Number of valid runs.
    pub valid_runs: usize,
    /// Number of invalid runs.
    pub invalid_runs: usize,
}

/// A question that was asked of many pairs of hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FleetComparison {
    /// The question.
    #[serde(flatten)]
    pub question: Question,
    /// The answer of each pair, in the order of the pairs.
    pub answers: Vec<PairAnswer>,
    /// Number of pairs with a figure.
    pub counted: usize,
    /// Number of pairs without one, which are left out.
    pub left_out: usize,
    /// The difference over pairs; `None` with fewer than two of them, or where no event was seen.
    pub pooled: Option<PooledEffect>,
    /// The verdict over pairs.
    pub verdict: Verdict,
    /// The range of the mean difference where the verdict is `better` or `equivalent`, as in a campaign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_interval: Option<Interval>,
}

/// The answer of one pair of hosts, as in its own report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairAnswer {
    /// The verdict.
    pub verdict: Verdict,
    /// The difference.
    pub effect: Option<Effect>,
    /// The range of a claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_interval: Option<Interval>,
}

/// A difference over pairs of hosts that are a sample of many: random effects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PooledEffect {
    /// The mean over pairs. Its `pairs` are pairs of hosts.
    pub effect: Effect,
    /// The spread between pairs: the standard deviation of their true differences (of their logarithms, for ratios).
    pub spread: f64,
    /// Its 95 % interval.
    pub spread_interval: Interval,
    /// Where the true difference of another pair is expected, 95 %; `None` with fewer than three pairs.
    pub prediction: Option<Interval>,
    /// Two-sided p of no difference on average.
    pub p: f64,
    /// The same p, adjusted for the number of comparisons (Benjamini and Hochberg). At most 0.025 is a claim. `None`
    /// before the campaign has ended.
    pub adjusted_p: Option<f64>,
    /// p of a mean difference as large as the margin or larger (two one-sided tests).
    pub equivalence_p: f64,
    /// The same p, adjusted likewise.
    pub adjusted_equivalence_p: Option<f64>,
}
