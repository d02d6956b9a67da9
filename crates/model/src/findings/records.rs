//! The comparison of two records: two kernels, two machines, before and after.

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
    /// The second record is better.
    Better,
    /// The second record is worse.
    Worse,
    /// The difference is inside the margin.
    Equivalent,
    /// Neither a difference nor equivalence is claimed.
    Inconclusive,
    /// There is nothing to compare; the text gives the reason.
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

/// The difference between the second record's runs and the first record's, unpaired.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Unpaired {
    /// `ratio`: second divided by first; 1 means equal. `difference`: second minus first; 0 means equal.
    pub scale: Scale,
    /// The estimate. On the ratio scale, it is the ratio of the geometric means.
    pub estimate: f64,
    /// Standard error of the estimate (of its logarithm, for ratios).
    pub error: f64,
    /// Welch and Satterthwaite's degrees of freedom.
    pub degrees_of_freedom: f64,
    /// 95 % interval (Welch's t).
    pub interval95: Interval,
    /// The range of the difference where it or equivalence is claimed. It allows for the selection: of the ranges, at
    /// most one in twenty is expected to miss the true difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_interval: Option<Interval>,
    /// Two-sided p of no difference (Welch's t test).
    pub p: f64,
    /// The same p, adjusted for the number of figures compared (Benjamini and Hochberg). At most 0.025 is a claim.
    pub adjusted_p: f64,
    /// p of a difference as large as the margin or larger (two one-sided tests).
    pub equivalence_p: f64,
    /// The same p, adjusted likewise.
    pub adjusted_equivalence_p: f64,
}

/// One metric of one cell that both records contain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricDiff {
    /// The cell.
    pub cell: Cell,
    /// The metric.
    pub metric: Metric,
    /// The largest difference that counts as none: a ratio (0.02 is 2 %), or a value in the metric's unit on the
    /// difference scale.
    pub margin: f64,
    /// The first record's runs.
    pub a: Estimate,
    /// The second record's runs.
    pub b: Estimate,
    /// The difference between both; `None` if there is nothing to compare.
    pub effect: Option<Unpaired>,
    /// Figures of both records that fit the difference, in the metric's unit: what tables print.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fitted: Option<[f64; 2]>,
    /// The answer.
    pub change: Change,
    /// Whether the second record is worse by more than the allowance, or has no figure although the first record has
    /// one. Always false if no allowance was given.
    pub fails: bool,
}

/// A difference between the environments of two records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Apart {
    /// The name of the item, for example `kernel`.
    pub what: String,
    /// Its value in the first record.
    pub a: String,
    /// Its value in the second record.
    pub b: String,
}

/// Items that only one of two records contains.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct OnlyInOne {
    /// Cells.
    pub cells: Vec<Cell>,
    /// Metrics.
    pub metrics: Vec<Metric>,
}

/// The summary of a record.
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
    /// The testbed in one sentence.
    #[serde(rename = "testbed")]
    pub testbed_description: String,
    /// The scope of the CPU figures.
    pub cpu_scope: CpuScope,
    /// Number of valid runs.
    pub valid_runs: usize,
    /// Number of invalid runs (not measured as planned).
    pub invalid_runs: usize,
}

/// The comparison of two records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordDiff {
    /// The first record.
    pub a: Recorded,
    /// The second record, which is compared with the first.
    pub b: Recorded,
    /// Differences between their testbeds, hosts and probes.
    pub differences: Vec<Apart>,
    /// Items that only the first record contains.
    pub only_a: OnlyInOne,
    /// Items that only the second record contains.
    pub only_b: OnlyInOne,
    /// By how much the second record may be worse (0.05 is 5 %), if an allowance was given.
    pub allowed: Option<f64>,
    /// Every metric of every cell that both records contain.
    pub figures: Vec<MetricDiff>,
}
