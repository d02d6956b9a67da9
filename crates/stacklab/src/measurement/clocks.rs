//! Figures that need one clock at both ends.

use stacklab_model::{HostFacts, Metric, RunRecord, Value};

/// Why a one-way delay between two machines is missing.
const APART: &str = "the two hosts' clocks are not compared";

/// Whether two hosts run on one kernel, and so share clock and processors.
pub fn one_machine(one: &HostFacts, other: &HostFacts) -> bool {
    one.boot_id.is_some() && one.boot_id == other.boot_id
}

/// Takes out of a run between two machines what was made of the difference of their clocks. Round trips and times to
/// connect are taken at one end, and stay.
pub fn forget_one_way(run: &mut RunRecord) {
    use Metric::*;
    if run.spec.probe.probe != stacklab_model::Probe::Stream {
        return;
    }
    for metric in [OneWayDelay, OneWayDelayMean, Jitter, JitterRfc3550, Pdv] {
        if let Some(value) = run.values.get_mut(&metric) {
            *value = Value::Missing(APART.to_owned());
        }
    }
    for side in &mut run.sides {
        (side.delays, side.delay_points) = (None, None);
        side.series.iter_mut().for_each(|row| row.delay_mean_ns = None);
    }
}
