//! The campaign and its hosts in a record.

use serde::{Deserialize, Serialize};
use stacklab_model::{CpuScope, HostFacts};

/// The campaign's row: everything needed to make the same plan again.
#[derive(Debug, Clone, PartialEq)]
pub struct Campaign {
    /// Version of stacklab that started it.
    pub program_version: String,
    /// Start, nanoseconds since the Unix epoch.
    pub created_unix_ns: u64,
    /// Name of the study's file.
    pub study_name: String,
    /// The study as written.
    pub study_text: String,
    /// The requested scale.
    pub scale: Option<String>,
    /// Settings made on the command line, `KEY=VALUE`.
    pub settings: Vec<String>,
    /// Seed of the plan.
    pub seed: u64,
    /// The testbed in one sentence.
    pub testbed_description: String,
    /// The scope of the hosts' CPU figures.
    pub cpu_scope: CpuScope,
    /// Mean time between samples of a processor, nanoseconds, if the processors were sampled while it was measured.
    pub sample_period_ns: Option<u64>,
}

/// A host at the beginning of a campaign, or at its resumption.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostRow {
    /// Its name in the testbed.
    pub name: String,
    /// Its kind, for example `namespace`.
    pub kind: String,
    /// When its facts were gathered, nanoseconds since the Unix epoch.
    pub since_unix_ns: u64,
    /// The facts.
    pub facts: HostFacts,
}
