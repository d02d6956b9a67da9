//! Quantities as people write them: `100 Mbit/s`, `250ms`, `2 %`.

use serde::{Deserialize, Serialize};
use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitError {
    pub found: String,
    pub expected: &'static str,
}

impl UnitError {
    fn new(found: &str, expected: &'static str) -> Self {
        UnitError { found: found.to_owned(), expected }
    }
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not {}", self.found, self.expected)
    }
}

impl std::error::Error for UnitError {}

/// A link rate in bits per second, measured on the wire (frame, preamble and gap included).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Rate(pub u64);

impl Rate {
    pub fn bits_per_second(self) -> u64 {
        self.0
    }
}

impl std::str::FromStr for Rate {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let error = || UnitError::new(text, "a rate such as \"100 Mbit/s\" or \"1 Gbit/s\"");
        let (number, unit) = split(text).ok_or_else(error)?;
        // As iperf3 and data sheets write them, too. `B` is a byte, and not accepted.
        let scale = match unit {
            "bit/s" | "bps" => 1.0,
            "kbit/s" | "kbps" | "k" | "K" => 1e3,
            "Mbit/s" | "Mbps" | "M" => 1e6,
            "Gbit/s" | "Gbps" | "G" => 1e9,
            _ => return Err(error()),
        };
        let bits = number * scale;
        if (1.0..=1e13).contains(&bits) { Ok(Rate(bits.round() as u64)) } else { Err(error()) }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scale, unit) = match self.0 {
            1_000_000_000.. => (1e9, "Gbit/s"),
            1_000_000.. => (1e6, "Mbit/s"),
            1_000.. => (1e3, "kbit/s"),
            _ => (1.0, "bit/s"),
        };
        write!(f, "{} {unit}", self.0 as f64 / scale)
    }
}

/// Nanoseconds.
pub fn parse_duration(text: &str) -> Result<u64, UnitError> {
    let error = || UnitError::new(text, "a duration such as \"200ms\", \"1.5s\" or \"2min\"");
    let (number, unit) = split(text).ok_or_else(error)?;
    let scale = match unit {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "min" => 60e9,
        "h" => 3600e9,
        _ => return Err(error()),
    };
    let nanoseconds = number * scale;
    if nanoseconds <= 1e18 { Ok(nanoseconds.round() as u64) } else { Err(error()) }
}

/// A duration in nanoseconds as a setting has it, rounded up: `380s`, and from ten minutes on `12min`.
pub fn write_time(nanoseconds: u64) -> String {
    match nanoseconds.div_ceil(1_000_000_000) {
        seconds @ ..600 => format!("{seconds}s"),
        seconds => format!("{}min", seconds.div_ceil(60)),
    }
}

/// A duration in nanoseconds, printed for people: `250 ms`, `1.5 s`, `2 min 5 s`.
pub fn print_duration(nanoseconds: u64) -> String {
    match nanoseconds {
        60_000_000_000.. => {
            let seconds = nanoseconds.div_ceil(1_000_000_000);
            let minutes = seconds / 60;
            let seconds = seconds % 60;
            if seconds == 0 { format!("{minutes} min") } else { format!("{minutes} min {seconds} s") }
        }
        1_000_000_000.. => format!("{} s", (nanoseconds as f64 / 1e8).round() / 10.0),
        1_000_000.. => format!("{} ms", (nanoseconds as f64 / 1e5).round() / 10.0),
        1_000.. => format!("{} us", (nanoseconds as f64 / 1e2).round() / 10.0),
        _ => format!("{nanoseconds} ns"),
    }
}

/// A duration in nanoseconds. Its text is what [`parse_duration`] reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Nanoseconds(pub u64);

impl std::str::FromStr for Nanoseconds {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse_duration(text).map(Nanoseconds)
    }
}

impl fmt::Display for Nanoseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ns", self.0)
    }
}

/// A share such as `2 %` or `0.02`, as a ratio between 0 and 1.
pub fn parse_ratio(text: &str) -> Result<f64, UnitError> {
    let error = || UnitError::new(text, "a share such as \"2 %\"");
    let (number, unit) = split(text).ok_or_else(error)?;
    let ratio = match unit {
        "%" => number / 100.0,
        "" => number,
        _ => return Err(error()),
    };
    if ratio > 0.0 && ratio < 1.0 { Ok(ratio) } else { Err(error()) }
}

/// Splits `1.5 s` into its non-negative number and its unit.
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    let number: f64 = text[..end].replace('_', "").parse().ok()?;
    Some((number, text[end..].trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_as_people_write_them() {
        assert_eq!("100 Mbit/s".parse(), Ok(Rate(100_000_000)));
        assert_eq!("2.5Gbit/s".parse(), Ok(Rate(2_500_000_000)));
        assert_eq!(parse_duration("250ms"), Ok(250_000_000));
        assert_eq!(parse_duration("1.5 s"), Ok(1_500_000_000));
        assert_eq!(parse_ratio("2 %"), Ok(0.02));
        let time: Nanoseconds = "5484us".parse().unwrap();
        assert_eq!((time.0, time.to_string().parse()), (5_484_000, Ok(time)));
    }

    #[test]
    fn what_is_not_a_quantity_is_refused() {
        for text in ["", "fast", "-1 Mbit/s", "0 Mbit/s", "100 MBps", "100 MB/s", "100", "1e300 Gbit/s"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
        for text in ["", "ms", "5", "-5ms", "5 parsecs"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
        for text in ["0 %", "100 %", "2 percent"] {
            assert!(parse_ratio(text).is_err(), "{text}");
        }
    }

    #[test]
    fn quantities_print_so_that_they_read_back() {
        for spelling in ["100 Mbit/s", "100 Mbps", "100Mbps", "100M", "0.1 G", "100000 k", "100000000 bps"] {
            assert_eq!(spelling.parse(), Ok(Rate(100_000_000)), "{spelling}");
        }
        for rate in [Rate(1), Rate(1_500), Rate(100_000_000), Rate(2_500_000_000)] {
            assert_eq!(rate.to_string().parse(), Ok(rate));
        }
        assert_eq!(print_duration(125_000_000_000), "2 min 5 s");
        assert_eq!(print_duration(250_000_000), "250 ms");
    }
}
