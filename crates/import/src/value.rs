//! Limits of files, values in them, and why one cannot be read.

use stacklab_model::{Value, printable_text};
use std::fmt;

/// The longest file, bytes, and the longest content of a compressed one.
pub const MAX_BYTES: usize = 64 << 20;
/// The most tests, or rows of CSV, of one file.
pub(super) const MAX_TESTS: usize = 200_000;

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
    let amount = number(words.next()?)?;
    let unit_word = words.next()?;
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

/// Whether a figure has the three digits that its differences are judged by. Where `-f` asks for a unit, tools round to
/// two decimals: 24 Mbit/s are `0.02 Gbits/sec`.
pub(super) fn has_three_digits(number: &str) -> bool {
    let mantissa = number.split(['e', 'E']).next().unwrap_or_default();
    let digits = mantissa.trim_start_matches(['-', '0', '.']);
    digits.bytes().filter(u8::is_ascii_digit).count() >= 3
}

/// Whether an amount with a unit has three digits, or is exact: in bits or bytes as they are.
pub(super) fn is_precise(amount: &str) -> bool {
    let mut words = amount.split_whitespace();
    let digits = words.next().is_some_and(has_three_digits);
    digits || words.next().is_some_and(|unit| !unit.starts_with(['K', 'M', 'G', 'T']))
}

/// Why a figure of fewer than three digits is not read.
pub(super) fn too_few_digits(figure: &str) -> String {
    let figure = figure.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("`{figure}` has fewer than three digits: run the tool without -f, or with a smaller unit")
}

/// The mean of figures; NaN of none.
pub(super) fn mean(figures: &[f64]) -> f64 {
    figures.iter().sum::<f64>() / figures.len() as f64
}

/// A figure of round trips, if there is one, and if none of them is below 0: then the clock was set meanwhile.
pub(super) fn of_delays(delays: &[f64], figure: Option<f64>, otherwise: &str) -> Value {
    if delays.iter().any(|delay| *delay < 0.0) {
        return Value::Missing("a round trip is below 0".to_owned());
    }
    figure.map_or_else(|| Value::Missing(otherwise.to_owned()), |figure| Value::finite(figure, otherwise))
}

/// The share of what was sent that did not arrive.
pub(super) fn loss(sent: f64, received: f64) -> Value {
    if sent < 0.0 || received < 0.0 {
        Value::Missing("the file has a count below 0".to_owned())
    } else if sent > 0.0 && received > sent {
        Value::Missing("the file says that more arrived than was sent".to_owned())
    } else if sent > 0.0 {
        Value::finite(1.0 - received / sent, "it is not a number")
    } else {
        Value::Missing("nothing was sent".to_owned())
    }
}

/// The share of losses by a receiver's counts of one flow or several. Duplicates make some tools' counts negative.
pub(super) fn share_of_losses(flows: &[Datagrams], otherwise: &str) -> Value {
    let lost: f64 = flows.iter().map(|flow| flow.lost).sum();
    let sent: f64 = flows.iter().map(|flow| flow.sent).sum();
    if flows.iter().any(|flow| flow.sent < 0.0) {
        return Value::Missing("the file has a count below 0".to_owned());
    }
    if flows.iter().any(|flow| flow.lost < 0.0) {
        return Value::Missing("the file says that more arrived than was sent".to_owned());
    }
    if flows.iter().any(|flow| flow.lost > flow.sent) {
        return Value::Missing("the file says that more was lost than was sent".to_owned());
    }
    Value::finite(lost / sent, otherwise)
}

/// Datagrams of a flow, as its receiver counts them.
pub(super) struct Datagrams {
    pub(super) lost: f64,
    pub(super) sent: f64,
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

/// A place in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// The whole file.
    File,
    /// This line, from 1.
    Line(usize),
    /// This line and column, from 1.
    Column(usize, usize),
    /// This byte, from 0.
    Byte(usize),
    /// This byte of the content that was compressed.
    Inflated(usize),
}

/// Why a file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{at}{reason}")]
pub struct ImportError {
    /// Where.
    pub at: At,
    /// Why, without control characters.
    pub reason: String,
}

impl ImportError {
    /// At a place. Reasons quote the file, which is anybody's.
    pub(super) fn new(at: At, reason: impl AsRef<str>) -> Self {
        ImportError { at, reason: printable_text(reason.as_ref()) }
    }

    pub(super) fn of_file(reason: impl AsRef<str>) -> Self {
        ImportError::new(At::File, reason)
    }

    /// Fails if a file has as many tests as are read.
    pub(super) fn too_many(count: usize, line: usize) -> Result<(), Self> {
        if count < MAX_TESTS { Ok(()) } else { Err(ImportError::of_line(line, "there are too many tests")) }
    }

    /// In a line, counted from 0.
    pub(super) fn of_line(line: usize, reason: impl AsRef<str>) -> Self {
        ImportError::new(At::Line(line + 1), reason)
    }
}

/// Ends with a colon if there is anything.
impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            At::File => Ok(()),
            At::Line(line) => write!(f, "line {line}: "),
            At::Column(line, column) => write!(f, "line {line}, column {column}: "),
            At::Byte(byte) => write!(f, "byte {byte}: "),
            At::Inflated(byte) => write!(f, "byte {byte} of the content: "),
        }
    }
}
