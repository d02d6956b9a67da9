//! Two records compared: two kernels, two machines, before and after.

use crate::factors::cell::Cell;
use crate::findings::finding::{Estimate, Interval};
use crate::host::facts::CpuScope;
use crate::metrics::metric::Metric;
use crate::metrics::unit::Scale;
use serde::{Deserialize, Serialize};

/// The second record's figure compared with the first one's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// The second record's is the better one.
    Better,
    /// The second record's is the worse one.
    Worse,
    /// The difference is inside the margin.
    Equivalent,
    /// Neither a difference nor equivalence is significant.
    Inconclusive,
    /// There is nothing to compare, and why.
    Nothing(String),
}

impl Change {
    /// The name as written in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Change::Better => "better",
            Change::Worse => "worse",
            Change::Equivalent => "equivalent",
            Change::Inconclusive => "inconclusive",
            Change::Nothing(_) => "nothing",
        }
    }
}

/// How far the second record's runs are from the first one's, not paired.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Unpaired {
    /// `ratio`: second over first, 1 is none. `difference`: second minus first, 0 is none.
    pub scale: Scale,
    /// The estimate: on the ratio scale, of the geometric means.
    pub estimate: f64,
    /// 90 % interval (Welch's t), by which equivalence is judged (two one-sided tests at 5 %).
    pub interval90: Interval,
    /// 95 % interval, the one printed.
    pub interval95: Interval,
    /// 99 % interval, by which a difference is judged.
    pub interval99: Interval,
    /// Two-sided p of no difference (Welch's t test).
    pub p: f64,
    /// The same, adjusted for the number of figures compared (Benjamini and Hochberg).
    pub adjusted_p: f64,
    /// p of a difference as large as the margin or larger (two one-sided tests).
    pub equivalence_p: f64,
    /// Two-sided p of one distribution (Mann and Whitney).
    pub mann_whitney_p: f64,
    /// Median of the second record's runs over the first one's; `None` where that is no number.
    pub ratio_of_medians: Option<f64>,
    /// How much more often the second record's figure is above the first one's than below, -1 to 1.
    pub cliffs_delta: f64,
}

/// One metric of one cell that both records have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Against {
    /// The cell.
    pub cell: Cell,
    /// The metric.
    pub metric: Metric,
    /// The largest difference that counts as none: a ratio (0.02 is 2 %), or in the metric's unit on the difference
    /// scale.
    pub margin: f64,
    /// The first record's runs.
    pub a: Estimate,
    /// The second record's runs.
    pub b: Estimate,
    /// How far they are apart; `None` where there is nothing to compare.
    pub effect: Option<Unpaired>,
    /// The answer.
    pub change: Change,
    /// Whether the second record is worse by more than what was allowed, or has no figure where the first one has;
    /// always false where no allowance was given.
    pub fails: bool,
}

/// A difference between the environments of two records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Apart {
    /// What it is, for example `kernel`.
    pub what: String,
    /// In the first record.
    pub a: String,
    /// In the second record.
    pub b: String,
}

/// What only one of two records has.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Alone {
    /// Cells.
    pub cells: Vec<Cell>,
    /// Metrics.
    pub metrics: Vec<Metric>,
}

/// A record in a few words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// The record's file.
    pub name: String,
    /// Title of the study.
    pub title: String,
    /// Version of stacklab that measured.
    pub version: String,
    /// Start of the campaign, nanoseconds since the Unix epoch.
    pub started_unix_ns: u64,
    /// Seed of the plan.
    pub seed: u64,
    /// The testbed in a sentence.
    #[serde(rename = "bed")]
    pub testbed_description: String,
    /// Whose CPU the CPU figures are.
    pub cpu_scope: CpuScope,
    /// Valid runs.
    pub valid_runs: usize,
    /// Runs that were not what was planned.
    pub invalid_runs: usize,
}

/// Two records side by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Between {
    /// The first record.
    pub a: Recorded,
    /// The second record, which is compared with the first.
    pub b: Recorded,
    /// Differences between their testbeds, hosts and probes.
    pub differences: Vec<Apart>,
    /// What only the first record has.
    pub only_a: Alone,
    /// What only the second record has.
    pub only_b: Alone,
    /// By how much the second record may be worse (0.05 is 5 %), where that was said.
    pub allowed: Option<f64>,
    /// Every metric of every cell that both have.
    pub figures: Vec<Against>,
}
