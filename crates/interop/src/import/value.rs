//! Limits of files, and values in them.

use stacklab_model::Value;

/// The longest file, bytes, and the longest content of a compressed one.
pub const MOST_BYTES: usize = 64 << 20;
/// The most tests, or rows of CSV, of one file.
pub(super) const MOST_TESTS: usize = 200_000;

/// What a tool does not tell.
pub(super) fn untold(tool: &str, what: &str) -> Value {
    Value::Missing(format!("{tool} does not tell {what}"))
}

/// A number that is finite and that sums stay exact with.
pub(super) fn number(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|number| number.is_finite() && number.abs() <= 1e18)
}
