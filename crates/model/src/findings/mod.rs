//! The findings of a campaign.

pub(crate) mod fleet;
pub(crate) mod frame_loss;
pub(crate) mod loss_by_load;
pub(crate) mod records;
pub(crate) mod rfc8219;

use crate::findings::frame_loss::FrameLoss;
use crate::findings::loss_by_load::LossByLoad;
use crate::findings::records::Unpaired;
use crate::findings::rfc8219::Rfc8219;
use crate::names::named;
use crate::{Cell, CpuScope, Explanation, Factor, Metric, Scale, Topology, Transport, Uncounted, Warning};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    pub title: String,
    /// The record's file as the user names it, for advice.
    #[serde(skip)]
    pub record_name: Option<String>,
    /// Whether `stacklab run --resume` can continue it, for advice.
    #[serde(skip)]
    pub is_resumable: bool,
    pub version: String,
    pub started_unix_ns: u64,
    pub seed: u64,
    /// Number of blocks with at least one measured run.
    pub blocks: u32,
    /// Nanoseconds of the trials and of what was prepared between them.
    #[serde(default)]
    pub measured_ns: u64,
    pub valid_runs: usize,
    /// Number of invalid runs (not measured as planned), by reason.
    pub invalid_runs: Vec<(usize, String)>,
    #[serde(rename = "testbed")]
    pub testbed_description: String,
    pub hosts: Vec<String>,
    /// The hosts' noise floors, one sentence each, if they were measured.
    #[serde(default)]
    pub instruments: Vec<String>,
    /// What the hosts could not have, such as settings in a container, one sentence each: `NAME: WHAT`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<String>,
    pub cpu_scope: CpuScope,
    pub cells: Vec<CellEstimate>,
    pub comparisons: Vec<Comparison>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overall: Vec<Headline>,
    /// The A/A check of an interleaved campaign: an arm against itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub same_arm: Vec<Control>,
    /// Whether the order of two arms of one cell makes a difference, of the same pairs and of interleaved replicas.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arm_order: Vec<ArmOrder>,
    /// Carry-over between slices, of the same pairs: a slice behind one of the same arm against one behind the other's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub carry_over: Vec<SameArm>,
    /// The slices of searches, by load; of a report only, not of a campaign that is measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loss_by_load: Vec<LossByLoad>,
    /// Of a study with frame loss rates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame_loss: Option<FrameLoss>,
    /// Of a study with a goal of RFC 9971.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rfc8219: Option<Rfc8219>,
    /// Warnings for the reader, each once, with the number of runs that gave it.
    pub warnings: Vec<(usize, Warning)>,
    /// Whether the processors were sampled while it was measured: such runs give no verdict.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub is_sampled: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub explanations: Vec<Explanation>,
    /// Of the comparisons that ask for instructions, those without.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncounted: Vec<Uncounted>,
}

impl Findings {
    /// Whether its runs are of other tools, or read from rows: nothing was measured for it.
    pub fn is_import(&self) -> bool {
        self.testbed_description.starts_with("imported, ")
    }
}

/// A comparison asked for by a study: two levels of one factor, all else equal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComparisonSpec {
    pub factor: Factor,
    pub baseline: String,
    pub candidate: String,
    pub metrics: Vec<Metric>,
    /// The largest relative difference that counts as none (0.02 is 2 %).
    pub margin: f64,
    /// Whether the instructions per message of its cells are counted, too.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub instructions: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    pub low: f64,
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

    pub fn is_within(&self, other: &Interval) -> bool {
        other.low <= self.low && self.high <= other.high
    }

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
    pub median: Option<f64>,
    /// 95 % confidence interval of the mean (Student's t).
    pub interval: Option<Interval>,
    /// 95 % confidence interval of the median (order statistics); `None` with fewer than 6 runs.
    #[serde(default)]
    pub median_interval: Option<Interval>,
    /// Why runs have no figure, if any run has none.
    pub missing: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tests {
    /// Two-sided p of no difference: the larger one of Student's t and the signed-rank test, which is made where the
    /// first is at most 0.025.
    pub p: f64,
    /// p of a difference as large as the margin or larger: the largest one of one-sided t tests at both ends, of the
    /// trimmed and of the plain mean, and of the signed-rank tests at both ends.
    pub equivalence_p: f64,
    /// e-value against "no difference": Student's; from 20 on the smaller one of that and of the signs of the pairs.
    /// Valid whenever it is looked at.
    pub e: f64,
    /// e-value against "the difference is as large as the margin or larger".
    pub equivalence_e: f64,
    /// Adjusted for all comparisons of the campaign (Benjamini and Hochberg; p is 0 for those settled while measuring).
    /// At most 0.025 is a claim. `None` before the campaign has ended.
    pub adjusted_p: Option<f64>,
    pub adjusted_equivalence_p: Option<f64>,
}

/// The difference between candidate and baseline, paired within blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// `ratio`: candidate divided by baseline; 1 means equal. `difference`: candidate minus baseline; 0 means equal.
    pub scale: Scale,
    /// Number of blocks in which both arms have a figure.
    pub pairs: usize,
    pub estimate: f64,
    /// Standard error of the estimate (of its logarithm, for ratios).
    pub error: f64,
    pub degrees_of_freedom: f64,
    /// 90 % interval (Student's t): each end is a one-sided test at 5 %.
    pub interval90: Interval,
    pub interval95: Interval,
}

named! {
    pub enum LimitedBy("limited_by") {
        /// Bytes on a wire: headers cost.
        Headers = "headers",
        /// Time on a radio channel: frames and their exchanges cost.
        Airtime = "airtime",
    }
}

impl LimitedBy {
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
    pub by: LimitedBy,
    /// Candidate divided by baseline by these alone; `None` if they explain nothing (no rate limit).
    pub ratio: Option<f64>,
    /// Measured ratio divided by explained ratio: the effect of the stacks.
    pub residual: Option<f64>,
    pub because: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Better(String),
    Equivalent,
    Inconclusive,
    /// Neither arm had an event; the text has the bounds.
    #[serde(rename = "none_seen")]
    NoneSeen(String),
    /// There is nothing to compare; the text gives the reason.
    Nothing(String),
}

impl Verdict {
    pub fn is_answer(&self) -> bool {
        matches!(self, Verdict::Better(_) | Verdict::Equivalent | Verdict::NoneSeen(_))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StopReason {
    /// Its interval is as narrow as `until = "precise"` asks.
    Precise,
    Decided,
    Cap,
    Budget,
    /// The campaign ended earlier (interrupted, or still running).
    Unfinished,
}

/// One question of a study: two cells that differ in one factor, compared by one metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    pub factor: Factor,
    pub metric: Metric,
    pub baseline: Cell,
    pub candidate: Cell,
    /// The largest difference that counts as none: a ratio (0.02 is 2 %), or a value in the metric's unit on the
    /// difference scale.
    pub margin: f64,
}

/// How a remark begins on what an inconclusive comparison looks like, of a campaign that has not ended.
pub const APPEARS: &str = "looks";

impl Question {
    /// The baseline's and the candidate's.
    pub fn cells(&self) -> [&Cell; 2] {
        [&self.baseline, &self.candidate]
    }

    /// The transport of both cells; `None` if it is compared, or a program's own.
    pub fn transport(&self) -> Option<Transport> {
        self.baseline.transport_of_messages().filter(|_| self.factor != Factor::Transport)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    #[serde(flatten)]
    pub question: Question,
    pub baseline_estimate: Estimate,
    pub candidate_estimate: Estimate,
    /// The difference between both; `None` with fewer than two pairs.
    pub effect: Option<Effect>,
    /// The difference of runs that are not paired, such as imported ones: for a reader, and never a verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unpaired: Option<Unpaired>,
    /// Figures of baseline and candidate that fit the difference, in the metric's unit: what tables print.
    #[serde(default)]
    pub fitted: Option<[f64; 2]>,
    /// Its tests; `None` if the verdict follows without them.
    #[serde(default)]
    pub tests: Option<Tests>,
    /// The part that headers or airtime explain, for throughput and message rate.
    pub explained: Option<Explained>,
    pub verdict: Verdict,
    /// Of events of which none was seen: their bound is above the margin, or the blocks are too few for an answer.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub is_bound_wide: bool,
    /// Where the verdict is `better` or `equivalent`. It allows for the selection: of the ranges of a report, at most
    /// one in twenty is expected to miss the true difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_interval: Option<Interval>,
    #[serde(rename = "settled")]
    pub stop_reason: StopReason,
    /// Blocks that an inconclusive one still needs at this estimate and spread; `None` if it is answered, or no number
    /// would do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_blocks: Option<u32>,
    /// What a reader has to know of the verdict: why nothing is claimed, or what it leaves out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

impl Comparison {
    /// Whether its question has an answer.
    pub fn is_answer(&self) -> bool {
        self.verdict.is_answer() && !self.is_bound_wide
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellEstimate {
    pub cell: Cell,
    pub metric: Metric,
    pub estimate: Estimate,
}

/// Two levels of a factor compared by one metric, over all sizes and other factors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Headline {
    pub factor: Factor,
    pub baseline: String,
    pub candidate: String,
    pub metric: Metric,
    /// The transport; `None` if it is the factor.
    pub transport: Option<Transport>,
    pub comparisons: usize,
    /// Number of comparisons that say which arm is better, that they are equivalent, or that events are rarer than the
    /// margin.
    pub answered: usize,
    /// Mean of the comparisons' effects (of their logarithms, for ratios) with equal weights; `None` if one has none.
    pub effect: Option<Effect>,
    /// The lowest and the highest estimate of the comparisons that are answered; of all, if none is.
    #[serde(default)]
    pub range: Option<[f64; 2]>,
    /// The verdict that holds for each comparison; `inconclusive` if they differ.
    pub verdict: Verdict,
    /// Where one arm is better in each comparison: from the lowest to the highest end of their ranges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_range: Option<Interval>,
    /// Of comparisons whose runs are not paired, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unpaired: Option<UnpairedRange>,
    pub margin: f64,
}

/// Differences of runs that are not paired.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct UnpairedRange {
    /// The lowest and the highest estimate.
    pub range: [f64; 2],
    /// How many runs the baseline and the candidate have, if each comparison has the same.
    pub runs: Option<[usize; 2]>,
}

/// Replica labels of the two arms by which an interleaved campaign measures a cell against itself, in every block.
pub const SELF_ARMS: [&str; 2] = ["self 1", "self 2"];

/// The A/A check of a metric: one cell measured as two arms, each with its own sockets. By a sound method they differ
/// by chance alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Control {
    pub metric: Metric,
    pub transport: Transport,
    /// The cell that both arms measure.
    pub cell: Cell,
    pub estimates: [Estimate; 2],
    /// Figures of both arms that fit the difference, in the metric's unit.
    pub fitted: [f64; 2],
    pub effect: Effect,
    /// Two-sided p of no difference. Of many checks one in twenty is below 0.05.
    pub p: f64,
}

impl Control {
    /// Whether neither arm had an event, so that the interval without width is not a certainty.
    pub fn is_none_seen(&self) -> bool {
        self.metric.scale() == Scale::Difference && self.fitted == [0.0; 2] && self.effect.error == 0.0
    }
}

/// Two arms of one cell compared, each with its own sockets. By a sound method they differ by chance alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SameArm {
    pub metric: Metric,
    pub transport: Transport,
    pub effect: Effect,
    /// Two-sided p of no difference. Of many checks one in twenty is below 0.05.
    pub p: f64,
}

/// The arm of a cell whose sockets were opened second against the first. The order is drawn in each block; by a sound
/// method it makes no difference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArmOrder {
    pub metric: Metric,
    pub transport: Transport,
    /// Number of pairs. Those of a block count as one, by their mean.
    pub pairs: usize,
    pub effect: Effect,
    pub p: f64,
}
