//! The findings of a campaign.

use crate::factors::cell::Cell;
use crate::factors::factor::Factor;
use crate::factors::family::Probe;
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

    /// The interval with the same midpoint, multiplied in width by a factor.
    pub fn widened(&self, times: f64) -> Interval {
        let more = self.half_width() * (times - 1.0);
        Interval { low: self.low - more, high: self.high + more }
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
    /// 95 % confidence interval of the mean (Student's t), widened if consecutive runs are correlated.
    pub interval: Option<Interval>,
    /// 95 % confidence interval of the median (order statistics); `None` with fewer than 6 runs.
    #[serde(default)]
    pub median_interval: Option<Interval>,
    /// The tests of the runs' order; `None` if they show nothing.
    #[serde(default)]
    pub order: Option<Order>,
    /// Why runs have no figure, if any run has none.
    pub missing: Option<String>,
}

/// Tests of the order of figures: drift and autocorrelation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// Kendall's tau of figures and order: 1 if every figure is above all earlier ones, -1 if every figure is below
    /// them.
    pub drift: f64,
    /// Two-sided p of no drift (Mann and Kendall).
    pub drift_p: f64,
    /// Lag-1 autocorrelation, corrected for bias; `None` with fewer than 8 figures.
    pub autocorrelation: Option<f64>,
    /// The factor by which the interval is wider than Student's because of it; 1 if it is not wider.
    pub widening: f64,
}

/// How a p-value was adjusted for multiple comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Adjustment {
    /// Holm's adjustment, over the claims of the study: the comparisons by the headline metric, which is the first
    /// metric compared.
    Holm,
    /// Benjamini and Hochberg's adjustment, over all other comparisons.
    #[serde(rename = "benjamini-hochberg")]
    BenjaminiHochberg,
}

impl Adjustment {
    /// The name as written in reports.
    pub fn name(self) -> &'static str {
        match self {
            Adjustment::Holm => "holm",
            Adjustment::BenjaminiHochberg => "benjamini-hochberg",
        }
    }
}

/// Hypothesis tests and estimators of a comparison, in addition to the t interval that gives its verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tests {
    /// Two-sided p of no difference (paired t test, with the standard error widened like the interval).
    pub p: f64,
    /// The same p, adjusted for the number of comparisons. An adjusted p below 0.05 is significant among all
    /// comparisons.
    pub adjusted_p: f64,
    /// How the p was adjusted.
    pub adjustment: Adjustment,
    /// p of a difference as large as the margin or larger (two one-sided t tests).
    pub equivalence_p: f64,
    /// 95 % BCa bootstrap interval of the effect; `None` if all pairs are equal.
    pub bootstrap95: Option<Interval>,
    /// Two-sided p of Wilcoxon's signed-rank test; `None` if no pair differs.
    pub signed_rank_p: Option<f64>,
    /// Hodges and Lehmann's estimate of the effect, on the scale of the effect.
    pub hodges_lehmann: f64,
    /// Its 95 % interval; `None` with fewer than 6 pairs.
    pub hodges_lehmann95: Option<Interval>,
    /// Median of the candidate's runs divided by the baseline's; `None` if the quotient is not a number.
    pub ratio_of_medians: Option<f64>,
    /// Share of run pairs with the candidate's figure above the baseline's, minus the share with it below, over all
    /// runs; -1 to 1.
    pub cliffs_delta: f64,
    /// The tests of the pairs' order; `None` if they show nothing.
    pub order: Option<Order>,
}

/// Whether runs of a probe were in steady state while they were measured (MSER-5 on the messages in each row of a
/// run's interval series). Figures cover the whole measured window; this test says how much of the window still looks
/// like warm-up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SteadyState {
    /// The probe.
    pub probe: Probe,
    /// Number of valid runs with a series.
    pub runs: usize,
    /// Number of runs with a series too short for the test (fewer than 30 whole rows).
    pub too_short: usize,
    /// Number of runs with a transient at the beginning. MSER-5 cuts something from nearly half of all series without
    /// any change.
    pub late: usize,
    /// The median length of these transients, nanoseconds after the window's beginning.
    pub late_ns: Option<f64>,
    /// Number of runs without a steady state. MSER-5 reports this for up to one in six series without any change.
    pub unsettled: usize,
}

/// A test of more than two arms of one factor together, before any two of them are compared (Friedman).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ManyArms {
    /// The factor that differs.
    pub factor: Factor,
    /// The metric.
    pub metric: Metric,
    /// The cell of the first arm. The other arms differ from it in the factor only.
    pub cell: Cell,
    /// The arms' levels.
    pub levels: Vec<String>,
    /// Number of blocks in which all arms have a figure.
    pub blocks: usize,
    /// Friedman's statistic, corrected for ties.
    pub statistic: f64,
    /// p that all arms are equal.
    pub p: f64,
}

/// The difference between candidate and baseline, paired within blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// `ratio`: candidate divided by baseline; 1 is no difference. `difference`: candidate minus baseline; 0 is no
    /// difference.
    pub scale: Scale,
    /// Number of blocks in which both arms have a figure.
    pub pairs: usize,
    /// The estimate.
    pub estimate: f64,
    /// 90 % interval, used to judge equivalence (two one-sided tests at 5 %).
    pub interval90: Interval,
    /// 95 % interval, used in reports.
    pub interval95: Interval,
    /// 99 % interval, used to judge a difference. It is wider because the data are tested after every block.
    pub interval99: Interval,
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
    pub left: Option<f64>,
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
    /// Neither a difference nor equivalence is significant.
    Inconclusive,
    /// There is nothing to compare; the text gives the reason.
    Nothing(String),
}

/// Why the measurement of a comparison ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StopReason {
    /// Its interval is narrow enough.
    Narrow,
    /// Its verdict is decided.
    Decided,
    /// The maximum number of blocks was measured.
    Cap,
    /// The maximum time was used.
    Budget,
    /// The campaign ended earlier (interrupted, or still running).
    Unfinished,
}

/// The state of one question for the stopping rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoppingState {
    /// Whether the half-width of its 99 % interval was inside the target at the last four looks.
    pub narrow: bool,
    /// Whether the verdict was surely `better`, or surely `equivalent`, at the last four looks.
    pub decided: bool,
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
    /// The results of the other tests; `None` without an effect.
    #[serde(default)]
    pub tests: Option<Tests>,
    /// The part that headers or airtime explain, for throughput and packet rate.
    pub explained: Option<Explained>,
    /// The answer.
    pub verdict: Verdict,
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
