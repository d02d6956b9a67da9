//! What a campaign found.

use crate::factors::cell::Cell;
use crate::factors::factor::Factor;
use crate::factors::family::Probe;
use crate::host::facts::CpuScope;
use crate::metrics::metric::Metric;
use crate::metrics::unit::Scale;
use crate::trial::run::Warning;
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

    /// The interval about the same middle, so many times as wide.
    pub fn widened(&self, times: f64) -> Interval {
        let more = self.half_width() * (times - 1.0);
        Interval { low: self.low - more, high: self.high + more }
    }
}

/// One cell's runs of one metric, summed up.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Valid runs with a figure.
    pub n: usize,
    /// Mean over runs, in the metric's unit.
    pub mean: Option<f64>,
    /// Standard deviation over runs (n - 1).
    pub sd: Option<f64>,
    /// Median over runs.
    pub median: Option<f64>,
    /// 95 % interval of the mean (Student's t), widened where runs resemble the ones before them.
    pub interval: Option<Interval>,
    /// 95 % interval of the median (order statistics); `None` with fewer than 6 runs.
    #[serde(default)]
    pub median_interval: Option<Interval>,
    /// What the order of the runs says; `None` where it says nothing.
    #[serde(default)]
    pub order: Option<Order>,
    /// Why runs have no figure, where any has none.
    pub missing: Option<String>,
}

/// Tests of the order of figures: drift and autocorrelation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// Kendall's tau of figures and order: 1 where every figure is above all before it, -1 where below.
    pub drift: f64,
    /// Two-sided p that they do not drift (Mann and Kendall).
    pub drift_p: f64,
    /// Correlation with the figure before, corrected for bias; `None` with fewer than 8 figures.
    pub autocorrelation: Option<f64>,
    /// By how much the interval is wider than Student's for it; 1 where it is not.
    pub widening: f64,
}

/// How a p was adjusted for being one of many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Adjustment {
    /// Holm's, over the claims of the study: the comparisons by its headline metric, the first one that it compares.
    Holm,
    /// Benjamini and Hochberg's, over all other comparisons.
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

/// Hypothesis tests and estimators of a comparison, apart from the t interval that gives its verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tests {
    /// Two-sided p of no difference (paired t, its error widened like the interval).
    pub p: f64,
    /// The same, adjusted for the number of comparisons. A p below 0.05 is a claim that stands among all others.
    pub adjusted_p: f64,
    /// How it was adjusted.
    pub adjustment: Adjustment,
    /// p of a difference as large as the margin or larger (two one-sided t tests).
    pub equivalence_p: f64,
    /// 95 % BCa bootstrap interval of the effect; `None` where all pairs are alike.
    pub bootstrap95: Option<Interval>,
    /// Two-sided p of Wilcoxon's signed-rank test; `None` where no pair differs.
    pub signed_rank_p: Option<f64>,
    /// Hodges and Lehmann's estimate of the effect, on its scale.
    pub hodges_lehmann: f64,
    /// Its 95 % interval; `None` with fewer than 6 pairs.
    pub hodges_lehmann95: Option<Interval>,
    /// Median of the candidate's runs over the baseline's; `None` where that is no number.
    pub ratio_of_medians: Option<f64>,
    /// How much more often the candidate's figure is above the baseline's than below, over all runs, -1 to 1.
    pub cliffs_delta: f64,
    /// What the order of the pairs says; `None` where it says nothing.
    pub order: Option<Order>,
}

/// Whether runs of a probe were in steady state when they were measured (MSER-5 on the messages of each row of a run's interval
/// series). Figures are of the whole measured window: this says what of it looks like warm-up still.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SteadyState {
    /// The probe.
    pub probe: Probe,
    /// Valid runs with a series.
    pub runs: usize,
    /// Those whose series is too short to tell (fewer than 30 whole rows).
    pub too_short: usize,
    /// Those with a transient at the beginning. Of series without any change, MSER-5 cuts something from nearly half.
    pub late: usize,
    /// The median over them of what should have been cut, nanoseconds after the window's beginning.
    pub late_ns: Option<f64>,
    /// Those without a steady state. Of series without any change, MSER-5 says so of up to one in six.
    pub unsettled: usize,
}

/// More than two arms of one factor, tested together before any two of them are compared (Friedman).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ManyArms {
    /// What differs.
    pub factor: Factor,
    /// The metric.
    pub metric: Metric,
    /// The cell of the first arm; the others differ from it in the factor alone.
    pub cell: Cell,
    /// The arms' levels.
    pub levels: Vec<String>,
    /// Blocks in which all of them have a figure.
    pub blocks: usize,
    /// Friedman's statistic, corrected for ties.
    pub statistic: f64,
    /// p that all arms are alike.
    pub p: f64,
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

/// The part of an effect that header bytes explain, and the rest.
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
    /// Neither a difference nor equivalence is significant.
    Inconclusive,
    /// There is nothing to compare, and why.
    Nothing(String),
}

/// Why a comparison was measured no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StopReason {
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
pub struct StoppingState {
    /// Whether the half-width of its 99 % interval has been inside the target at the last four looks.
    pub narrow: bool,
    /// Whether the verdict has been surely `better`, or surely `equivalent`, at the last four looks.
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
    /// What other tests say; `None` without an effect.
    #[serde(default)]
    pub tests: Option<Tests>,
    /// What headers explain of it, for throughput and packet rate.
    pub explained: Option<Explained>,
    /// The answer.
    pub verdict: Verdict,
    /// Why no more was measured.
    #[serde(rename = "settled")]
    pub stop_reason: StopReason,
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

/// The findings of one record.
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
    #[serde(rename = "bed")]
    pub testbed_description: String,
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
    /// Factors of which more than two arms are compared.
    #[serde(default)]
    pub many_arms: Vec<ManyArms>,
    /// The steady-state test of the runs, by probe.
    #[serde(default, rename = "settling")]
    pub steady_state: Vec<SteadyState>,
    /// What the tests of many comparisons say together, each with how many comparisons or cells it concerns.
    #[serde(default)]
    pub cautions: Vec<(usize, Warning)>,
    /// What a reader should know, each once, with the number of runs that said it.
    pub warnings: Vec<(usize, Warning)>,
}
