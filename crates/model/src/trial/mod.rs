//! One planned measurement, and its run as stored in the record.

pub(crate) mod connections;
pub(crate) mod options;
pub(crate) mod program;
pub(crate) mod search;
pub(crate) mod spec;
pub(crate) mod spent;
pub(crate) mod values;

use crate::{
    Cell, Drops, HostReport, Length, Metric, Pacing, Probe, ProbeSpec, TrialSpec, Values, is_in_bounds,
};
use serde::{Deserialize, Serialize};
use std::fmt;

/// One cell measured by one probe in one block. Block and position identify it within a campaign.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Trial {
    /// Block, from 0. A block holds every cell and probe of the study once.
    pub block: u32,
    /// Position in the block's full shuffled order, from 0; unchanged if other trials of the block are omitted.
    pub position: u32,
    pub cell: Cell,
    pub probe: Probe,
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block {} {} {}", self.block + 1, self.probe, self.cell)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    Valid,
    /// The observation differs from the plan; each reason names the planned and the observed value.
    Invalid(Vec<String>),
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Warning {
    /// A short, stable name, for example `tick`.
    pub code: String,
    pub text: String,
    pub advice: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    pub trial: Trial,
    pub spec: TrialSpec,
    pub started_unix_ns: u64,
    /// Duration with set-up, warm-up and drain, nanoseconds.
    pub wall_ns: u64,
    pub status: RunStatus,
    pub values: Values,
    pub drops: Drops,
    /// The report of each host, sender first.
    #[serde(rename = "ends")]
    pub host_reports: Vec<HostReport>,
    pub warnings: Vec<Warning>,
}

impl RunStatus {
    pub fn of(reasons: Vec<String>) -> Self {
        if reasons.is_empty() { RunStatus::Valid } else { RunStatus::Invalid(reasons) }
    }
}

impl RunRecord {
    /// A valid run of one message with one figure, as simulations and tests have them.
    pub fn with_value(trial: Trial, metric: Metric, value: Value) -> Self {
        let probe = ProbeSpec {
            probe: trial.probe,
            pacing: Pacing::Flood,
            length: Length::Packets(1),
            warmup_ns: 0,
            interval_ns: 1,
            metrics: vec![metric],
        };
        RunRecord {
            spec: TrialSpec::new(1, &trial.cell, probe),
            trial,
            started_unix_ns: 0,
            wall_ns: 1,
            status: RunStatus::Valid,
            values: Values::from_iter([(metric, value)]),
            drops: Drops::default(),
            host_reports: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Whether the run was to measure a metric that is another probe's too, as a paced stream a flood's: then it has
    /// the study's figure.
    pub fn takes_over(&self, metric: Metric) -> bool {
        self.trial.probe != metric.probe() && self.spec.probe.metrics.contains(&metric)
    }

    pub fn is_valid(&self) -> bool {
        self.status == RunStatus::Valid
    }
}

/// A figure in its metric's unit, or the reason for its absence; never NaN, never a silent zero.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Value {
    Measured(f64),
    /// The figure cannot be measured here; the text gives the reason.
    Missing(String),
    /// The figure was measured but must not be used; the text gives the reason.
    Invalid(String),
}

impl Value {
    /// A measured figure, or `Missing` with the reason if the arithmetic gave none within bounds: an empty window,
    /// zero by zero.
    pub fn finite(figure: f64, otherwise: &str) -> Self {
        if is_in_bounds(figure) { Value::Measured(figure) } else { Value::Missing(otherwise.to_owned()) }
    }

    pub fn measured(&self) -> Option<f64> {
        if let Value::Measured(figure) = self { Some(*figure) } else { None }
    }
}
