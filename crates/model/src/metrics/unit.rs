//! Units of metrics, which direction is better, and how two arms are compared.

use crate::names::named;
use serde::{Deserialize, Serialize};

named! {
    /// Unit of a metric's figures.
    pub enum Unit("unit") {
        /// Megabits (10^6) of application payload per second.
        MegabitPerSecond = "Mbit/s",
        /// Messages per second.
        MessagePerSecond = "message/s",
        /// A share, 0 to 1.
        Ratio = "ratio",
        /// Milliseconds.
        Millisecond = "ms",
        /// Nanoseconds.
        Nanosecond = "ns",
        /// Per cent of one core: two busy cores are 200.
        CorePercent = "% of a core",
        /// Per cent of one core per rate of payload.
        CorePercentPerGigabit = "% of a core per Gbit/s",
        /// Per cent of the quantity that the metric's definition names.
        Percent = "%",
        /// A multiple of the quantity that the metric's definition names; 1 is equal.
        Times = "times",
        /// Kibibytes (1024 bytes).
        Kibibyte = "KiB",
        /// Bytes.
        Byte = "B",
        /// A count of events.
        Count = "count",
        /// Events per message sent: a faster arm does not have more of them.
        PerMessage = "per message",
        /// Connections per second.
        ConnectionPerSecond = "connection/s",
    }
}

impl Unit {
    /// The unit as printed after a figure.
    pub fn symbol(self) -> &'static str {
        self.name()
    }

    /// The largest difference that counts as none, of figures that may be zero: a tenth of a percentage point of
    /// shares; half an event; one in a hundred messages; the mebibyte that a kernel reserves for each processor.
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

/// Which direction of a metric is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
}

/// How two arms are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// By the ratio of their figures: rates and times, which are never zero.
    Ratio,
    /// By the difference of their figures: shares and counts, which may be zero.
    Difference,
}
