//! Delay figures.

use stacklab_model::{Delays, Value};

/// Converts nanoseconds to milliseconds.
pub(super) fn milliseconds(nanoseconds: Option<f64>) -> Value {
    match nanoseconds {
        Some(nanoseconds) => Value::finite(nanoseconds / 1e6, "no delay was measured"),
        None => Value::Missing("too few messages arrived".to_owned()),
    }
}

/// A percentile, if there are enough messages to estimate it: at least one message must lie above it.
pub(super) fn percentile(delays: &Option<Delays>, p: f64) -> Value {
    let Some(delays) = delays else { return milliseconds(None) };
    let needed = (1.0 / (1.0 - p)).round() as u64;
    if delays.buckets.count() < needed {
        return Value::Missing(format!(
            "{} messages do not tell this percentile: {needed} do",
            delays.buckets.count()
        ));
    }
    milliseconds(delays.buckets.percentile(p).map(|nanoseconds| nanoseconds as f64))
}
