//! A campaign, as read from its record.

use stacklab_model::{
    Cell, CpuScope, Explanation, HostFacts, LinkConfig, ProbeSpec, Question, RunRecord, StopReason, Topology,
    Verdict,
};

/// A campaign, as read from its record.
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
    /// How its hosts are connected.
    pub topology: &'a Topology,
    /// The testbed in one sentence.
    pub testbed_description: &'a str,
    /// The hosts' names and facts.
    pub hosts: &'a [(String, HostFacts)],
    /// The scope of the CPU figures.
    pub cpu_scope: CpuScope,
    /// Every cell of the study.
    pub cells: &'a [Cell],
    /// The probes, with the metrics taken from each.
    pub probes: &'a [ProbeSpec],
    /// Every question of the study.
    pub questions: &'a [Question],
    /// Why the measurement of each question ended, in their order; questions beyond the end of the list are
    /// unfinished.
    pub stop_reasons: &'a [StopReason],
    /// The verdict of each question that was settled while measuring, in their order; questions beyond the end of the
    /// list are open.
    pub settled: &'a [Option<Verdict>],
    /// The runs, valid and not, in any order.
    pub runs: &'a [RunRecord],
    /// Whether the processors were sampled while they were measured.
    pub is_sampled: bool,
    /// Why cells differ.
    pub explanations: &'a [Explanation],
}
