//! Quantities as users of iperf3 write them on a command line.

use stacklab_model::{Io, Metric, UnknownName, parse_duration};
use stacklab_report::OutputFormat;

/// The formats of documents, of those that also have a page, and of everything that `report` writes.
pub(crate) const DOCUMENT: &[&str] = &["text", "markdown", "csv", "raw-csv", "json"];
pub(crate) const DOCUMENT_OR_HTML: &[&str] = &["text", "markdown", "csv", "raw-csv", "json", "html"];
pub(crate) const REPORT: &[&str] =
    &["text", "markdown", "csv", "raw-csv", "json", "html", "latex", "svg", "pdf"];

pub(super) fn format(
    valid: &'static [&'static str],
) -> impl Fn(&str) -> Result<OutputFormat, UnknownName> + Clone + Send + Sync + 'static {
    move |name| OutputFormat::among(name, valid)
}

/// Nanoseconds of a time: seconds, or with a unit (`500ms`).
pub(super) fn time(text: &str) -> Result<u64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=1e9).contains(&seconds) => Ok((seconds * 1e9).round() as u64),
        Ok(_) => Err("expected seconds from 0 on".to_owned()),
        Err(_) => parse_duration(text).map_err(|_| "expected seconds, or a time such as 500ms".to_owned()),
    }
}

pub(super) fn some_time(text: &str) -> Result<u64, String> {
    match time(text)? {
        0 => Err("expected more than 0".to_owned()),
        time => Ok(time),
    }
}

/// Bytes: a number, with K or M for 1024 and 1024 * 1024.
pub(super) fn bytes(text: &str) -> Result<u32, String> {
    let bytes = parse_with_suffix(text, [1 << 10, 1 << 20, 1 << 30]).map(f64::round);
    let bytes = bytes.filter(|bytes| (1.0..=f64::from(u32::MAX)).contains(bytes));
    bytes.map(|bytes| bytes as u32).ok_or("expected bytes from 1 on, such as 1400, 128K or 4M".to_owned())
}

/// Bits per second: a number, with k, M or G for powers of 1000; 0 means no limit.
pub(super) fn rate(text: &str) -> Result<f64, String> {
    parse_with_suffix(text, [1_000, 1_000_000, 1_000_000_000])
        .filter(|rate| *rate == 0.0 || (1.0..=1e13).contains(rate))
        .ok_or("expected bits per second such as 500k, 10M or 1G, or 0 for no limit".to_owned())
}

/// Messages per second, more than none.
pub(super) fn per_second(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number <= 1e9 => Ok(number),
        _ => Err("expected messages per second, more than 0".to_owned()),
    }
}

/// Bytes to read at most: a number, with k, M or G for powers of 1000.
pub(super) fn read_bytes(text: &str) -> Result<u64, String> {
    let bytes = parse_with_suffix(text, [1_000, 1_000_000, 1_000_000_000]).map(f64::round);
    let bytes = bytes.filter(|bytes| (1e3..=1e11).contains(bytes));
    bytes.map(|bytes| bytes as u64).ok_or("expected bytes from 1k to 100G, such as 10M".to_owned())
}

pub(super) fn parse_compared_metric(text: &str) -> Result<Metric, String> {
    let metric: Metric = text.parse().map_err(|error: UnknownName| error.to_string())?;
    if metric.is_generator_error() {
        return Err("it has no verdict: it is the error of a generator against the interface's counters; `report` shows it"
            .to_owned());
    }
    Ok(metric)
}

/// How messages get into the kernel; `None` leaves it to the program.
pub(super) fn io(text: &str) -> Result<Option<Io>, String> {
    if text == "auto" {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| format!("expected one of auto, {}", Io::NAMES.join(", ")))
}

/// A differentiated services code point: 0 to 63, or a name of RFC 2474, 2597, 3246.
pub(super) fn dscp(text: &str) -> Result<u8, String> {
    let lower = text.to_lowercase();
    read_code_point(&lower).ok_or_else(|| {
        "expected a code point from 0 to 63 or its name, such as ef, cs1 or af41 (a whole TOS byte is four times its code point)"
            .to_owned()
    })
}

fn read_code_point(lower: &str) -> Option<u8> {
    if let Ok(number) = lower.parse() {
        return Some(number).filter(|point| *point < 64);
    }
    match lower.as_bytes() {
        b"ef" => Some(46),
        [b'c', b's', class @ b'0'..=b'7'] => Some(8 * (class - b'0')),
        [b'a', b'f', class @ b'1'..=b'4', drop @ b'1'..=b'3'] => Some(8 * (class - b'0') + 2 * (drop - b'0')),
        _ => None,
    }
}

/// A number with a suffix for its size; the letter's case does not matter.
fn parse_with_suffix(text: &str, factors: [u64; 3]) -> Option<f64> {
    let place = text.chars().last().and_then(|last| "kmg".find(last.to_ascii_lowercase()));
    let (number, factor) = match place {
        Some(place) => (&text[..text.len() - 1], factors[place] as f64),
        None => (text, 1.0),
    };
    let plain = number.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    number.parse().ok().filter(|_| plain).map(|number: f64| number * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_unless_they_say_otherwise() {
        assert_eq!(time("10"), Ok(10_000_000_000));
        assert_eq!(time("0.5"), Ok(500_000_000));
        assert_eq!(time("250ms"), Ok(250_000_000));
        assert_eq!(time("0"), Ok(0));
        for wrong in ["-1", "inf", "nan", "ten", "", "1e30"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
        assert!(some_time("0").is_err());
    }

    #[test]
    fn bytes_count_in_1024_and_rates_in_1000() {
        assert_eq!(bytes("1400"), Ok(1400));
        assert_eq!(bytes("128K"), Ok(131_072));
        assert_eq!(bytes("1m"), Ok(1_048_576));
        assert_eq!(rate("10M"), Ok(10e6));
        assert_eq!(rate("1.5g"), Ok(1.5e9));
        assert_eq!(rate("0"), Ok(0.0));
        for wrong in ["", "K", "-5", "inf", "nan", "5T", "0", "9G"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "M", "-5M", "inf", "10Mbit", "1e20"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn code_points_have_names() {
        let points = [("46", 46), ("EF", 46), ("cs0", 0), ("cs7", 56), ("af11", 10), ("af43", 38)];
        for (text, point) in points {
            assert_eq!(dscp(text), Ok(point), "{text}");
        }
        for wrong in ["64", "184", "cs8", "cs", "af10", "af51", "af4", "af411", "voice", ""] {
            assert!(dscp(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn io_is_chosen_or_left_to_the_program() {
        assert_eq!(io("auto"), Ok(None));
        assert_eq!(io("gso"), Ok(Some(Io::Gso)));
        assert!(io("fast").unwrap_err().contains("auto, send"));
    }
}
