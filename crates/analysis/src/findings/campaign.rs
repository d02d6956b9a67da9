//! A campaign as its record has it.

use stacklab_model::{Cell, CpuScope, HostFacts, LinkConfig, ProbeSpec, Question, RunRecord, StopReason};

/// A campaign as its record has it.
#[derive(Debug, Clone, Copy)]
pub struct Campaign<'a> {
    /// Title of the study.
    pub title: &'a str,
    /// Version of stacklab that measured.
    pub version: &'a str,
    /// Start, nanoseconds since the Unix epoch.
    pub started_unix_ns: u64,
    /// Seed of the plan.
    pub seed: u64,
    /// The testbed.
    pub link_config: &'a LinkConfig,
    /// The testbed in a sentence.
    pub testbed_description: &'a str,
    /// The hosts' names and facts.
    pub hosts: &'a [(String, HostFacts)],
    /// Whose CPU the CPU figures are.
    pub cpu_scope: CpuScope,
    /// Every cell of the study.
    pub cells: &'a [Cell],
    /// The probes, with the metrics taken from each.
    pub probes: &'a [ProbeSpec],
    /// Every question of the study.
    pub questions: &'a [Question],
    /// Why each question was measured no further, in their order; questions beyond its end are unfinished.
    pub stop_reasons: &'a [StopReason],
    /// The runs, valid and not, in any order.
    pub runs: &'a [RunRecord],
}
