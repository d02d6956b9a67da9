//! The findings of a campaign, all together.

use crate::explanation::pair::Explanation;
use crate::findings::finding::{CellEstimate, Comparison};
use crate::findings::overall::Headline;
use crate::findings::same_arm::{ArmOrder, SameArm};
use crate::host::facts::CpuScope;
use crate::trial::run::Warning;
use serde::{Deserialize, Serialize};

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
    /// Number of blocks with at least one measured run.
    pub blocks: u32,
    /// Time that the runs took, nanoseconds.
    #[serde(default)]
    pub measured_ns: u64,
    /// Number of valid runs.
    pub valid_runs: usize,
    /// Number of invalid runs (not measured as planned), by reason.
    pub invalid_runs: Vec<(usize, String)>,
    /// The testbed in one sentence.
    #[serde(rename = "testbed")]
    pub testbed_description: String,
    /// The hosts, one sentence each.
    pub hosts: Vec<String>,
    /// The hosts' noise floors, one sentence each, if they were measured.
    #[serde(default)]
    pub instruments: Vec<String>,
    /// The scope of the CPU figures.
    pub cpu_scope: CpuScope,
    /// Every cell and metric of the study.
    pub cells: Vec<CellEstimate>,
    /// Every question of the study, answered.
    pub comparisons: Vec<Comparison>,
    /// Each difference over all cells in which it was asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overall: Vec<Headline>,
    /// The A/A check of an interleaved campaign: an arm against itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub same_arm: Vec<SameArm>,
    /// Whether the order of two arms of one cell makes a difference, of the same pairs and of interleaved replicas.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arm_order: Vec<ArmOrder>,
    /// Carry-over between slices, of the same pairs: a slice behind one of the same arm against one behind the other's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub carry_over: Vec<SameArm>,
    /// Warnings for the reader, each once, with the number of runs that gave it.
    pub warnings: Vec<(usize, Warning)>,
    /// Whether the processors were sampled while it was measured: such runs give no verdict.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_sampled: bool,
    /// Why cells differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub explanations: Vec<Explanation>,
}
