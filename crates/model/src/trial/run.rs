//! One run, as stored in the record.

use crate::factors::family::Probe;
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
    /// The observation differs from the plan; each reason names the planned and the observed value.
    Invalid(Vec<String>),
}

/// A warning for the reader of the figures.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Warning {
    /// A short, stable name, for example `tick`.
    pub code: String,
    /// The observation.
    pub text: String,
    /// The recommended action.
    pub advice: String,
}

/// One measured trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The plan.
    pub trial: Trial,
    /// The specification that the agents received.
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
    /// The report of each host, sender first.
    #[serde(rename = "ends")]
    pub host_reports: Vec<HostReport>,
    /// Warnings for the reader.
    pub warnings: Vec<Warning>,
}

impl RunStatus {
    /// Valid without reasons against it.
    pub fn of(reasons: Vec<String>) -> Self {
        if reasons.is_empty() { RunStatus::Valid } else { RunStatus::Invalid(reasons) }
    }
}

impl RunRecord {
    /// Whether the run is of a paced stream that was to measure a metric, so that a flood's figure is not the study's.
    pub fn paces(&self, metric: Metric) -> bool {
        self.trial.probe == Probe::Paced && self.spec.probe.metrics.contains(&metric)
    }

    /// Whether the run counts.
    pub fn is_valid(&self) -> bool {
        self.status == RunStatus::Valid
    }
}
