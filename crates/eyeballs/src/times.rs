//! Times in milliseconds, and how they are printed.

use std::time::Duration;

/// What stands for a figure that does not exist.
pub(crate) const NONE: &str = "-";
/// Longer delays are in seconds.
pub(crate) const MAX_EXACT_MS: f64 = 10_000.0;

/// Milliseconds of a time, to the microsecond.
pub(crate) fn in_ms(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

/// Milliseconds: three digits or the whole number.
pub(crate) fn format_time(ms: f64) -> String {
    match ms {
        ..10.0 => format!("{ms:.1} ms"),
        ..10_000.0 => format!("{ms:.0} ms"),
        _ => format!("{:.1} s", ms / 1e3),
    }
}
