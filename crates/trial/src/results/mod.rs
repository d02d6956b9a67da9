//! The figures of the reports of two hosts, one arm for each metric.

mod figures;
pub mod interleaved;
mod locations;
mod measures;
mod warnings;

pub use locations::locate_loads;
pub use measures::{drops, of_answers};
pub use stacklab_traffic::timing::tick_ns;
pub use warnings::{standstill_of_stream, warnings};

use crate::path::Path;
use crate::results::figures::TrialReports;
use stacklab_model::{HostReport, Metric, TrialSpec, Value};
use std::collections::BTreeMap;

/// Every figure of the trial's probe.
pub fn values(
    spec: &TrialSpec,
    path: &Path,
    sender: &HostReport,
    receiver: &HostReport,
) -> BTreeMap<Metric, Value> {
    const SHARED: &str =
        "the arms of an interleaved trial share the host's counters: set blocks.schedule = \"sequential\"";
    let reports = TrialReports { spec, path, sender, receiver };
    let mut values = BTreeMap::new();
    for metric in Metric::ALL.iter().copied().filter(|metric| metric.is_of(spec.probe.probe)) {
        let is_shared = spec.schedule.shares(metric);
        values.insert(metric, if is_shared { missing(SHARED) } else { reports.value(metric) });
    }
    values
}

fn missing(reason: &str) -> Value {
    Value::Missing(reason.to_owned())
}

/// The value of a metric that is sampled only on request.
fn describe_missing_sample(metric: Metric) -> Value {
    Value::Missing(format!("not sampled: name {metric} among the probe's metrics"))
}

#[cfg(test)]
mod tests;
