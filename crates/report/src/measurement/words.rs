//! Figures in words.

use stacklab_model::{Drops, Value};

/// Printed where there is no figure.
pub(super) fn dash() -> String {
    "-".to_owned()
}

pub(crate) fn shown(value: Option<&Value>, words: impl FnOnce(f64) -> String) -> String {
    match value {
        Some(Value::Measured(figure)) => words(*figure),
        Some(Value::Missing(reason)) => format!("missing: {reason}"),
        Some(Value::Invalid(reason)) => format!("invalid: {reason}"),
        None => "missing: not requested".to_owned(),
    }
}

/// Counts above 0, each with its words; empty where there are none.
pub(super) fn counts<const N: usize>(all: [(u64, &str); N]) -> String {
    let counted = all.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
    counted.collect::<Vec<_>>().join(", ")
}

/// Where messages were lost, warm-up included.
pub(crate) fn places(drops: &Drops) -> String {
    counts([
        (drops.sender_queue, "in the sender's queue"),
        (drops.interface, "at an interface"),
        (drops.socket_buffer, "in the receiver's full socket buffer"),
        (drops.network, "on the way"),
    ])
}

/// Two figures in one sentence; if one is missing, the reason replaces both.
pub(super) fn both(
    one: Option<&Value>,
    other: Option<&Value>,
    words: impl FnOnce(f64, f64) -> String,
) -> String {
    match (one, other) {
        (Some(Value::Measured(one)), Some(Value::Measured(other))) => words(*one, *other),
        (Some(Value::Measured(_)), missing) | (missing, _) => shown(missing, figure),
    }
}

/// In the unit that leaves digits before the point: `870 ns`, `4.475 us`, `54.69 ms`.
pub(super) fn milliseconds(ms: f64) -> String {
    match ms {
        0.001..1.0 => format!("{} us", figure(ms * 1e3)),
        _ if ms > 0.0 && ms < 0.001 => format!("{:.0} ns", ms * 1e6),
        _ => format!("{} ms", figure(ms)),
    }
}

/// With about four significant digits.
pub(super) fn figure(figure: f64) -> String {
    match figure.abs() {
        0.0 => "0".to_owned(),
        100.0.. => format!("{figure:.1}"),
        10.0.. => format!("{figure:.2}"),
        1.0.. => format!("{figure:.3}"),
        0.001.. => format!("{figure:.4}"),
        _ => format!("{figure:.2e}"),
    }
}

/// A count a second.
pub(super) fn number(figure: f64) -> String {
    if figure >= 100.0 { format!("{figure:.0}") } else { format!("{figure:.2}") }
}

/// With the decimal prefix that leaves up to three digits before the point.
pub(super) fn scaled(amount: f64, unit: &str) -> String {
    let (scale, prefix) = match amount {
        1e12.. => (1e12, "T"),
        1e9.. => (1e9, "G"),
        1e6.. => (1e6, "M"),
        1e3.. => (1e3, "k"),
        _ => (1.0, ""),
    };
    let number = amount / scale;
    let decimals = match number {
        100.0.. => 1,
        _ if prefix.is_empty() => 0,
        _ => 2,
    };
    format!("{number:.decimals$} {prefix}{unit}")
}
