//! The comparison of two records: two kernels, two machines, before and after.

use crate::{Cell, CpuScope, Estimate, Interval, Metric, Scale};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    Better,
    Worse,
    Equivalent,
    Inconclusive,
    /// There is nothing to compare; the text gives the reason.
    Nothing(String),
}

impl Change {
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

/// Why the second record has no figure that the first one has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lacking {
    /// It was not measured, or cannot be any more.
    Gone,
    /// Other load or a CPU quota disturbed each run that has none, which may be why.
    Disturbed,
}

/// The difference between the second record's runs and the first record's, unpaired.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Unpaired {
    /// `ratio`: second divided by first; 1 means equal. `difference`: second minus first; 0 means equal.
    pub scale: Scale,
    /// The estimate: of the trimmed means; on the ratio scale, of the logarithms' trimmed means.
    pub estimate: f64,
    /// Standard error of the estimate (of its logarithm, for ratios).
    pub error: f64,
    /// Degrees of freedom, those of the smaller sample.
    pub degrees_of_freedom: f64,
    pub interval95: Interval,
    /// Where it or equivalence is claimed, with the selection allowed for: at most one in twenty is expected to miss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_interval: Option<Interval>,
    /// Two-sided p of no difference: the larger of Yuen and Welch's and of the rank-sum test's.
    pub p: f64,
    /// The same p, adjusted for the number of figures compared (Benjamini and Hochberg). At most 0.025 is a claim.
    pub adjusted_p: f64,
    /// p of a difference as large as the margin or larger (two one-sided tests).
    pub equivalence_p: f64,
    pub adjusted_equivalence_p: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricDiff {
    pub cell: Cell,
    pub metric: Metric,
    /// As of a [`Question`](crate::Question).
    pub margin: f64,
    pub a: Estimate,
    pub b: Estimate,
    pub effect: Option<Unpaired>,
    /// Figures of both records that fit the difference, in the metric's unit: what tables print.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fitted: Option<[f64; 2]>,
    pub change: Change,
    /// Why the second record has no figure although the first one has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacking: Option<Lacking>,
    /// Whether the second record is worse by more than is allowed, or the figure is gone.
    pub fails: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Apart {
    /// The name of the item, for example `kernel`.
    pub what: String,
    pub a: String,
    pub b: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct OnlyInOne {
    pub cells: Vec<Cell>,
    pub metrics: Vec<Metric>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordFacts {
    pub name: String,
    pub title: String,
    pub version: String,
    pub started_unix_ns: u64,
    pub seed: u64,
    #[serde(rename = "testbed")]
    pub testbed_description: String,
    pub cpu_scope: CpuScope,
    pub valid_runs: usize,
    /// Number of invalid runs (not measured as planned).
    pub invalid_runs: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordDiff {
    pub a: RecordFacts,
    pub b: RecordFacts,
    pub differences: Vec<Apart>,
    pub only_a: OnlyInOne,
    pub only_b: OnlyInOne,
    /// By how much the second record may be worse (0.05 is 5 %), if an allowance was given.
    pub allowed: Option<f64>,
    pub figures: Vec<MetricDiff>,
}
