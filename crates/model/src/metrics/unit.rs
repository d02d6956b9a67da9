//! Units of metrics, which direction is better, and how two figures are compared.

use crate::names::named;
use serde::{Deserialize, Serialize};

named! {
    pub enum Unit("unit") {
        /// Megabits (10^6) of application payload per second.
        MegabitPerSecond = "Mbit/s",
        MessagePerSecond = "message/s",
        Message = "message",
        /// A share, 0 to 1.
        Ratio = "ratio",
        Millisecond = "ms",
        Nanosecond = "ns",
        /// Per cent of one core: two busy cores are 200.
        CorePercent = "% of a core",
        CorePercentPerGigabit = "% of a core per Gbit/s",
        /// Per cent of the quantity that the metric's definition names.
        Percent = "%",
        /// A multiple of the quantity that the metric's definition names; 1 is equal.
        Times = "times",
        Kibibyte = "KiB",
        Byte = "B",
        BytePerEntry = "B per entry",
        BytePerSocket = "B per socket",
        Count = "count",
        /// Events per message sent: a faster arm does not have more of them.
        PerMessage = "per message",
        ConnectionPerSecond = "connection/s",
    }
}

impl Unit {
    pub fn symbol(self) -> &'static str {
        self.name()
    }

    /// What counts as none where figures may be zero: a tenth of a percentage point; half an event; one in a hundred
    /// messages; the mebibyte that a kernel reserves for each processor.
    pub(crate) fn margin(self) -> Option<f64> {
        match self {
            Unit::Ratio => Some(0.001),
            Unit::Percent => Some(0.1),
            Unit::PerMessage => Some(0.01),
            Unit::Count | Unit::Byte => Some(0.5),
            Unit::Kibibyte => Some(1024.0),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    Higher,
    Lower,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// By the ratio of their figures: rates and times, which are never zero.
    Ratio,
    /// By the difference of their figures: shares and counts, which may be zero.
    Difference,
}

impl Scale {
    /// A printed ratio or difference as the distance on which figures are averaged and tested: 0 where both are alike,
    /// and of ratios the logarithm.
    pub fn to_distance(self, printed: f64) -> f64 {
        match self {
            Scale::Ratio => printed.ln(),
            Scale::Difference => printed,
        }
    }
}

named! {
    pub enum Difference("difference") {
        /// Per cent of the mean of both: `200 * abs(a - b) / (a + b)`.
        Symmetric = "symmetric",
        Lower = "lower",
        Higher = "higher",
        /// The absolute difference, in the figures' own unit.
        Points = "points",
    }
}

impl Difference {
    /// The difference of two figures, never negative; `None` if the formula divides by zero.
    pub fn of(self, a: f64, b: f64) -> Option<f64> {
        let apart = (a - b).abs();
        let difference = match self {
            Difference::Symmetric => 200.0 * apart / (a + b),
            Difference::Lower => 100.0 * apart / a.min(b),
            Difference::Higher => 100.0 * apart / a.max(b),
            Difference::Points => apart,
        };
        difference.is_finite().then_some(difference)
    }

    pub fn definition(self) -> &'static str {
        match self {
            Difference::Symmetric => "200 * abs(a - b) / (a + b), per cent",
            Difference::Lower => "per cent of the lower figure",
            Difference::Higher => "per cent of the higher figure",
            Difference::Points => "absolute difference, in the unit of the figures",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_formula_is_as_named_in_either_order() {
        for (a, b) in [(75.0, 100.0), (100.0, 75.0)] {
            let found = Difference::ALL.iter().map(|formula| formula.of(a, b).unwrap()).collect::<Vec<_>>();
            for (found, expected) in found.into_iter().zip([200.0 / 7.0, 100.0 / 3.0, 25.0, 25.0]) {
                assert!((found - expected).abs() < 1e-12, "{found} is not {expected}");
            }
        }
    }

    #[test]
    fn nothing_is_divided_by_zero() {
        assert_eq!(Difference::Lower.of(0.0, 5.0), None);
        assert_eq!(Difference::Symmetric.of(0.0, 0.0), None);
        assert_eq!(Difference::Points.of(0.0, 5.0), Some(5.0));
    }
}
