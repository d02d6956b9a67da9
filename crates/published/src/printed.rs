//! A figure as printed.

use serde::Deserialize;
use std::fmt;
use std::str::FromStr;

/// A decimal figure with its printed digits.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub struct Printed {
    text: String,
    /// Its value.
    pub value: f64,
    /// Digits after the decimal point.
    pub decimals: u32,
}

impl Printed {
    /// Whether an exact figure is printed like this: rounded to the nearest figure with this many decimals. A figure
    /// halfway between two may be rounded either way. A truncated figure does not count.
    pub fn is_rounded_from(&self, exact: f64) -> bool {
        (exact - self.value).abs() <= self.half_unit() + SLACK
    }

    /// The lowest and the highest figure that is printed like this when rounded.
    pub fn range(&self) -> [f64; 2] {
        [self.value - self.half_unit(), self.value + self.half_unit()]
    }

    /// Whether some figure of a range is printed like this.
    pub fn is_rounded_from_range(&self, [low, high]: [f64; 2]) -> bool {
        let [least, most] = self.range();
        low <= most + SLACK && high >= least - SLACK
    }

    /// Half of the last digit's unit.
    fn half_unit(&self) -> f64 {
        0.5 * 0.1_f64.powi(self.decimals as i32)
    }
}

/// Tolerance for floating-point error: figures have at most five digits, and formulas a few steps.
const SLACK: f64 = 1e-9;

impl FromStr for Printed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a decimal figure, such as 12.50");
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !digits(whole) || !digits(fraction) || text.ends_with('.') {
            return Err(wrong());
        }
        let value = text.parse().map_err(|_| wrong())?;
        Ok(Printed { text: text.to_owned(), value, decimals: fraction.len() as u32 })
    }
}

impl TryFrom<String> for Printed {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for Printed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(text: &str) -> Printed {
        text.parse().unwrap()
    }

    #[test]
    fn the_digits_that_are_printed_are_kept() {
        let figure = printed("91.50");
        assert_eq!((figure.value, figure.decimals, figure.to_string().as_str()), (91.5, 2, "91.50"));
        assert_eq!(printed("138").decimals, 0);
        for wrong in ["", ".5", "5.", "-1", "1e3", "NaN", "1,5"] {
            assert!(wrong.parse::<Printed>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn rounds_to_the_last_printed_digit() {
        assert!(printed("13.42").is_rounded_from(13.4155) && !printed("13.41").is_rounded_from(13.4155));
        // A figure halfway may be rounded either way; binary fractions do not decide.
        assert!(printed("0.12").is_rounded_from(0.125) && printed("0.13").is_rounded_from(0.125));
        assert!(printed("8.32").is_rounded_from(90.35 - 82.03));
        assert!(!printed("8.32").is_rounded_from(8.3251));
    }

    #[test]
    fn a_range_needs_one_figure_that_rounds_to_it() {
        let figure = printed("13.41");
        assert_eq!(printed("24.5").range(), [24.45, 24.55]);
        assert!(figure.is_rounded_from_range([13.4141, 13.4169]));
        assert!(figure.is_rounded_from_range([13.0, 14.0]));
        assert!(
            !figure.is_rounded_from_range([13.4151, 13.42]) && !figure.is_rounded_from_range([13.0, 13.4049])
        );
    }
}
