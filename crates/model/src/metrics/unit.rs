//! Units of metrics, which direction is better, and how two arms are compared.

use serde::{Deserialize, Serialize};

/// Unit of a metric's figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Megabits (10^6) of application payload per second.
    #[serde(rename = "Mbit/s")]
    MegabitPerSecond,
    /// Messages per second.
    #[serde(rename = "message/s")]
    MessagePerSecond,
    /// A share, 0 to 1.
    #[serde(rename = "ratio")]
    Ratio,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Millisecond,
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanosecond,
    /// Per cent of one core: two busy cores are 200.
    #[serde(rename = "% of a core")]
    CorePercent,
    /// Per cent of one core per rate of payload.
    #[serde(rename = "% of a core per Gbit/s")]
    CorePercentPerGigabit,
    /// Per cent of the quantity that the metric's definition names.
    #[serde(rename = "%")]
    Percent,
    /// A multiple of the quantity that the metric's definition names; 1 is equal.
    #[serde(rename = "times")]
    Times,
    /// Kibibytes (1024 bytes).
    #[serde(rename = "KiB")]
    Kibibyte,
    /// Bytes.
    #[serde(rename = "B")]
    Byte,
    /// A count of events.
    #[serde(rename = "count")]
    Count,
    /// Events per message sent: a faster arm does not have more of them.
    #[serde(rename = "per message")]
    PerMessage,
    /// Connections per second.
    #[serde(rename = "connection/s")]
    ConnectionPerSecond,
}

impl Unit {
    /// The unit as printed after a figure.
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::MegabitPerSecond => "Mbit/s",
            Unit::MessagePerSecond => "message/s",
            Unit::Ratio => "ratio",
            Unit::Millisecond => "ms",
            Unit::Nanosecond => "ns",
            Unit::CorePercent => "% of a core",
            Unit::CorePercentPerGigabit => "% of a core per Gbit/s",
            Unit::Percent => "%",
            Unit::Times => "times",
            Unit::Kibibyte => "KiB",
            Unit::Byte => "B",
            Unit::Count => "count",
            Unit::PerMessage => "per message",
            Unit::ConnectionPerSecond => "connection/s",
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
