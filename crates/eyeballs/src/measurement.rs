//! What was measured of a client, as JSON has it.

use crate::runs::ScenarioRuns;
use crate::summary::Summary;
use serde::Serialize;

/// A reference that is measured further from its delay than this says that the machine is busy.
pub(crate) const MAX_REFERENCE_ERROR_MS: f64 = 5.0;

/// What was measured of a client.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measurement {
    /// The command and its arguments.
    pub command: Vec<String>,
    /// The seed of the order.
    pub seed: u64,
    /// How long a run was allowed to take, seconds.
    pub limit_s: f64,
    /// The check with the built-in client.
    pub reference: ReferenceCheck,
    /// What the runs say.
    pub summary: Summary,
    /// The scenarios, in the order of tables.
    pub scenarios: Vec<ScenarioRuns>,
}

/// What was measured of the built-in client.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReferenceCheck {
    /// Its connection attempt delay.
    pub set_ms: f64,
    /// The median of those that were measured.
    pub median_ms: Option<f64>,
    /// All that were measured.
    pub measured_ms: Vec<f64>,
}
