//! Why a figure is missing.

use stacklab_model::{Metric, Value};

/// The value of a metric that is sampled only on request.
pub(super) fn not_sampled(metric: Metric) -> Value {
    Value::Missing(format!("not sampled: name {metric} among the probe's metrics"))
}
