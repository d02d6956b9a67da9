//! Limits of files, and values in them.

use stacklab_model::Value;

/// The longest file, bytes, and the longest content of a compressed one.
pub const MOST_BYTES: usize = 64 << 20;
/// The most tests, or rows of CSV, of one file.
pub(super) const MOST_TESTS: usize = 200_000;

/// What a tool does not tell.
pub(super) fn untold(tool: &str, what: &str) -> Value {
    Value::Missing(format!("{tool} does not report {what}"))
}

/// A number that is finite and that sums stay exact with.
pub(super) fn number(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|number| number.is_finite() && number.abs() <= 1e18)
}

/// An amount with a unit: `2.51 MBytes`, `10.5 Mbits/sec`, with K, M, G, T as powers of `step`; 0 to 10^18.
pub(super) fn amount(text: &str, unit: &str, step: f64) -> Option<f64> {
    let mut words = text.split_whitespace();
    let (amount, unit_word) = (number(words.next()?)?, words.next()?);
    let power = match unit_word
        .strip_suffix("s/sec")
        .unwrap_or(unit_word.trim_end_matches('s'))
        .strip_suffix(unit)?
    {
        "" => 0,
        "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        _ => return None,
    };
    Some(amount * step.powi(power)).filter(|amount| *amount >= 0.0 && *amount <= 1e18)
}

/// A rate in bits per second, printed in bits or in bytes.
pub(super) fn bits_per_second(text: &str) -> Option<f64> {
    amount(text, "bit", 1000.0).or_else(|| Some(8.0 * amount(text, "Byte", 1024.0)?))
}

/// The mean of figures; NaN of none.
pub(super) fn mean(figures: &[f64]) -> f64 {
    figures.iter().sum::<f64>() / figures.len() as f64
}

/// A quantile of sorted figures, by the nearest rank; the middle of two for the median of an even number.
pub(super) fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let rank = (share * sorted.len() as f64).ceil().max(1.0) as usize;
    let found = *sorted.get(rank - 1)?;
    let is_between = share == 0.5 && sorted.len().is_multiple_of(2);
    Some(if is_between { (found + sorted[rank]) / 2.0 } else { found })
}

/// Nanoseconds since the Unix epoch of `2026-11-26T04:29:41.5Z`, or with an offset such as `+01:00`.
pub(super) fn rfc3339_ns(text: &str) -> Option<u64> {
    text.parse::<jiff::Timestamp>().ok()?.as_nanosecond().try_into().ok()
}
