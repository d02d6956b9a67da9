//! What a campaign found.

use crate::{Cell, CpuScope, Factor, Metric, Scale, Warning};
use serde::{Deserialize, Serialize};

/// A comparison asked for by a study: two levels of one factor, all else equal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComparisonSpec {
    /// What differs.
    pub factor: Factor,
    /// The level compared with.
    pub baseline: String,
    /// The level compared.
    pub candidate: String,
    /// The metrics compared.
    pub metrics: Vec<Metric>,
    /// The largest ratio of difference that counts as none (0.02 is 2 %).
    pub margin: f64,
}

/// An interval of confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Whether a value lies inside, ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Whether the whole of it lies inside another.
    pub fn is_within(&self, other: &Interval) -> bool {
        other.low <= self.low && self.high <= other.high
    }

    /// Half its width.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

/// One cell's runs of one metric, summed up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Valid runs with a figure.
    pub n: usize,
    /// Mean over runs, in the metric's unit.
    pub mean: Option<f64>,
    /// Standard deviation over runs (n - 1).
    pub sd: Option<f64>,
    /// Median over runs.
    pub median: Option<f64>,
    /// 95 % interval of the mean (Student's t).
    pub interval: Option<Interval>,
    /// Why runs have no figure, where any has none.
    pub missing: Option<String>,
}

/// How far the candidate is from the baseline, paired within blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// `ratio`: candidate over baseline, 1 is none. `difference`: candidate minus baseline, 0 is none.
    pub scale: Scale,
    /// Blocks in which both arms have a figure.
    pub pairs: usize,
    /// The estimate.
    pub estimate: f64,
    /// 90 % interval, by which equivalence is judged (two one-sided tests at 5 %).
    pub interval90: Interval,
    /// 95 % interval, the one printed.
    pub interval95: Interval,
    /// 99 % interval, by which a difference is judged, because it is looked at after every block.
    pub interval99: Interval,
}

/// What the headers make of the comparison, and what they leave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explained {
    /// Candidate over baseline by header bytes alone; `None` where they explain nothing (no rate limit).
    pub ratio: Option<f64>,
    /// Measured ratio over explained ratio: the stacks' own part.
    pub left: Option<f64>,
    /// The reasoning in a few words.
    pub because: String,
}

/// The answer to a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// This level is the better one.
    Better(String),
    /// The difference is inside the margin.
    Equivalent,
    /// The runs do not tell.
    Inconclusive,
    /// There is nothing to compare, and why.
    Nothing(String),
}

/// Why a comparison was measured no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Settled {
    /// Its interval is narrow enough.
    Narrow,
    /// Its verdict is decided.
    Decided,
    /// The most blocks allowed were measured.
    Cap,
    /// The time allowed was used up.
    Budget,
    /// The campaign ended before (interrupted, or still running).
    Unfinished,
}

/// What the stopping rule needs to know of one question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Whether the half-width of its 99 % interval is inside the target.
    pub narrow: bool,
    /// Whether the verdict is `better` or `equivalent`.
    pub decided: bool,
}

/// One question that a study asks: two cells that differ in one factor, by one metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// What differs.
    pub factor: Factor,
    /// The metric.
    pub metric: Metric,
    /// The baseline's cell.
    pub baseline: Cell,
    /// The candidate's cell.
    pub candidate: Cell,
    /// The largest difference that counts as none: a ratio (0.02 is 2 %), or in the metric's unit on the difference
    /// scale.
    pub margin: f64,
}

/// A question and its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The question.
    #[serde(flatten)]
    pub question: Question,
    /// The baseline's runs.
    pub baseline_estimate: Estimate,
    /// The candidate's runs.
    pub candidate_estimate: Estimate,
    /// How far they are apart; `None` with fewer than two pairs.
    pub effect: Option<Effect>,
    /// What headers explain of it, for throughput and packet rate.
    pub explained: Option<Explained>,
    /// The answer.
    pub verdict: Verdict,
    /// Why no more was measured.
    pub settled: Settled,
}

/// One cell's runs of one metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellEstimate {
    /// The cell.
    pub cell: Cell,
    /// The metric.
    pub metric: Metric,
    /// Its runs.
    pub estimate: Estimate,
}

/// Everything a report says, computed from one record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// Title of the study.
    pub title: String,
    /// Version of stacklab that measured.
    pub version: String,
    /// Start of the campaign, nanoseconds since the Unix epoch.
    pub started_unix_ns: u64,
    /// Seed of the plan.
    pub seed: u64,
    /// Blocks of which something was measured.
    pub blocks: u32,
    /// Valid runs.
    pub valid_runs: usize,
    /// Runs that were not what was planned, by reason: how many and why.
    pub invalid_runs: Vec<(usize, String)>,
    /// The testbed in a sentence.
    pub bed: String,
    /// The hosts in a sentence each.
    pub hosts: Vec<String>,
    /// The hosts' noise floors in a sentence each, where they were measured.
    #[serde(default)]
    pub instruments: Vec<String>,
    /// Whose CPU the CPU figures are.
    pub cpu_scope: CpuScope,
    /// Every cell and metric of the study.
    pub cells: Vec<CellEstimate>,
    /// Every question of the study, answered.
    pub comparisons: Vec<Comparison>,
    /// What a reader should know, each once, with the number of runs that said it.
    pub warnings: Vec<(usize, Warning)>,
}
