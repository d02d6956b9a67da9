//! One run as the record keeps it.

use crate::host::counters::Drops;
use crate::host::report::HostReport;
use crate::metrics::metric::Metric;
use crate::trial::Trial;
use crate::trial::spec::TrialSpec;
use crate::value::Value;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Whether a run counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    /// The observation agrees with the plan.
    Valid,
    /// It does not; each reason names what was planned and what was observed.
    Invalid(Vec<String>),
}

/// Something a reader of the figures should know.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Warning {
    /// A short name that does not change, for example `tick`.
    pub code: String,
    /// What was seen.
    pub text: String,
    /// What to do about it.
    pub advice: String,
}

/// One measured trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// What was planned.
    pub trial: Trial,
    /// What the agents were told.
    pub spec: TrialSpec,
    /// Start, nanoseconds since the Unix epoch.
    pub started_unix_ns: u64,
    /// Duration with set-up, warm-up and drain, nanoseconds.
    pub wall_ns: u64,
    /// Whether it counts.
    pub status: RunStatus,
    /// The figures of the probe's metrics.
    pub values: BTreeMap<Metric, Value>,
    /// Where messages were lost.
    pub drops: Drops,
    /// What each host saw, sender first.
    #[serde(rename = "sides")]
    pub host_reports: Vec<HostReport>,
    /// What a reader should know.
    pub warnings: Vec<Warning>,
}

impl RunRecord {
    /// Whether the run counts.
    pub fn is_valid(&self) -> bool {
        self.status == RunStatus::Valid
    }
}
