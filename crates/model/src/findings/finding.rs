//! The findings of a campaign.

use crate::factors::cell::Cell;
use crate::factors::factor::Factor;
use crate::metrics::metric::Metric;
use crate::metrics::unit::Scale;
use crate::names::named;
use crate::network::topology::Topology;
use serde::{Deserialize, Serialize};

/// A comparison asked for by a study: two levels of one factor, all else equal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComparisonSpec {
    /// The factor that differs.
    pub factor: Factor,
    /// The level compared with.
    pub baseline: String,
    /// The level compared.
    pub candidate: String,
    /// The metrics compared.
    pub metrics: Vec<Metric>,
    /// The largest relative difference that counts as none (0.02 is 2 %).
    pub margin: f64,
}

/// A confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// The effects on this scale that count as no difference.
    pub fn of_margin(scale: Scale, margin: f64) -> Self {
        match scale {
            Scale::Ratio => Interval { low: 1.0 / (1.0 + margin), high: 1.0 + margin },
            Scale::Difference => Interval { low: -margin, high: margin },
        }
    }

    /// Whether a value is inside, ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Whether the whole interval is inside another one.
    pub fn is_within(&self, other: &Interval) -> bool {
        other.low <= self.low && self.high <= other.high
    }

    /// Half its width.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

/// The summary of one cell's runs of one metric.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Number of valid runs with a figure.
    pub n: usize,
    /// Mean over runs, in the metric's unit.
    pub mean: Option<f64>,
    /// Standard deviation over runs (n - 1).
    pub sd: Option<f64>,
    /// Median over runs.
    pub median: Option<f64>,
    /// 95 % confidence interval of the mean (Student's t).
    pub interval: Option<Interval>,
    /// 95 % confidence interval of the median (order statistics); `None` with fewer than 6 runs.
    #[serde(default)]
    pub median_interval: Option<Interval>,
    /// Why runs have no figure, if any run has none.
    pub missing: Option<String>,
}

/// The tests of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tests {
    /// Two-sided p of no difference (Student's t).
    pub p: f64,
    /// p of a difference as large as the margin or larger (two one-sided t tests).
    pub equivalence_p: f64,
    /// e-value against "no difference": valid whenever it is looked at.
    pub e: f64,
    /// e-value against "the difference is as large as the margin or larger".
    pub equivalence_e: f64,
    /// The p, adjusted for all comparisons of the campaign (Benjamini and Hochberg, those that were settled while
    /// measuring with p = 0). At most 0.025 is a claim. `None` before the campaign has ended.
    pub adjusted_p: Option<f64>,
    /// The equivalence p, adjusted likewise.
    pub adjusted_equivalence_p: Option<f64>,
}

/// The difference between candidate and baseline, paired within blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// `ratio`: candidate divided by baseline; 1 means equal. `difference`: candidate minus baseline; 0 means equal.
    /// difference.
    pub scale: Scale,
    /// Number of blocks in which both arms have a figure.
    pub pairs: usize,
    /// The estimate.
    pub estimate: f64,
    /// Standard error of the estimate (of its logarithm, for ratios).
    pub error: f64,
    /// Degrees of freedom of that error.
    pub degrees_of_freedom: f64,
    /// 90 % interval (Student's t): each end is a one-sided test at 5 %.
    pub interval90: Interval,
    /// 95 % interval (Student's t).
    pub interval95: Interval,
}

named! {
    /// What a path has a limit of.
    pub enum LimitedBy("limited_by") {
        /// Bytes on a wire: headers cost.
        Headers = "headers",
        /// Time on a radio channel: frames and their exchanges cost.
        Airtime = "airtime",
    }
}

impl LimitedBy {
    /// What limits the paths of a testbed.
    pub fn of(topology: &Topology) -> Self {
        match topology {
            Topology::Wifi(_) => LimitedBy::Airtime,
            _ => LimitedBy::Headers,
        }
    }
}

/// The part of an effect that header bytes or airtime explain, and the remainder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explained {
    /// Which of them.
    pub by: LimitedBy,
    /// Candidate divided by baseline by these alone; `None` if they explain nothing (no rate limit).
    pub ratio: Option<f64>,
    /// Measured ratio divided by explained ratio: the effect of the stacks.
    pub residual: Option<f64>,
    /// The reasoning in a few words.
    pub because: String,
}

/// The answer to a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// This level is better.
    Better(String),
    /// The difference is inside the margin.
    Equivalent,
    /// Neither a difference nor equivalence is claimed.
    Inconclusive,
    /// Neither arm had an event; the text has the bounds.
    #[serde(rename = "none_seen")]
    NoneSeen(String),
    /// There is nothing to compare; the text gives the reason.
    Nothing(String),
}

impl Verdict {
    /// Whether it answers the question.
    pub fn is_answer(&self) -> bool {
        matches!(self, Verdict::Better(_) | Verdict::Equivalent | Verdict::NoneSeen(_))
    }
}

/// Why the measurement of a comparison ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StopReason {
    /// Its interval is as narrow as `until = "precise"` asks.
    Precise,
    /// Its verdict is settled.
    Decided,
    /// The maximum number of blocks was measured.
    Cap,
    /// The maximum time was used.
    Budget,
    /// The campaign ended earlier (interrupted, or still running).
    Unfinished,
}

/// One question of a study: two cells that differ in one factor, compared by one metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// The factor that differs.
    pub factor: Factor,
    /// The metric.
    pub metric: Metric,
    /// The baseline's cell.
    pub baseline: Cell,
    /// The candidate's cell.
    pub candidate: Cell,
    /// The largest difference that counts as none: a ratio (0.02 is 2 %), or a value in the metric's unit on the
    /// difference scale.
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
    /// The difference between both; `None` with fewer than two pairs.
    pub effect: Option<Effect>,
    /// Figures of baseline and candidate that fit the difference, in the metric's unit: what tables print.
    #[serde(default)]
    pub fitted: Option<[f64; 2]>,
    /// Its tests; `None` if the verdict follows without them.
    #[serde(default)]
    pub tests: Option<Tests>,
    /// The part that headers or airtime explain, for throughput and message rate.
    pub explained: Option<Explained>,
    /// The answer.
    pub verdict: Verdict,
    /// The range of the difference where the verdict is `better` or `equivalent`. It allows for the selection: of the
    /// ranges of a report, at most one in twenty is expected to miss the true difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_interval: Option<Interval>,
    /// Why its measurement ended.
    #[serde(rename = "settled")]
    pub stop_reason: StopReason,
    /// How many more blocks an inconclusive one would need, if estimate and spread stayed as they are; `None` if it is
    /// answered, or no number of blocks would do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_blocks: Option<u32>,
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
