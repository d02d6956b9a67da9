//! Delays: the points between which they are measured, and their histogram.

use crate::names::named;
use serde::{Deserialize, Serialize};

named! {
    pub enum Point("point") {
        Schedule = "schedule",
        /// The program's system call: just before a send or a connect, just after a receive or a connect.
        Call = "call",
        /// The kernel's software timestamp, when the interface's driver hands the packet over (SO_TIMESTAMPNS).
        Kernel = "kernel",
        /// The interface's timestamp, if it stamps packets (SO_TIMESTAMPING, raw hardware).
        Interface = "interface",
    }
}

named! {
    pub enum ClockSource("clock") {
        Monotonic = "monotonic",
        /// CLOCK_REALTIME, converted to the monotonic clock by the difference of both at the receive.
        Realtime = "realtime",
        Interface = "interface",
    }
}

/// The start and end points of a host's delays, and the clocks read there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelayPoints {
    pub sent: Point,
    pub sent_clock: ClockSource,
    pub received: Point,
    pub received_clock: ClockSource,
    /// How the two hosts' clocks were compared; `None` if both hosts share one clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared: Option<Compared>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compared {
    /// How far the receiver's clock is ahead of the sender's before the trial, nanoseconds.
    pub offset_ns: i64,
    /// The largest error of a delay because of the comparison, nanoseconds; 0 until both comparisons are known.
    pub bound_ns: u64,
    /// Clock drift: nanoseconds per second that the receiver's clock gained. The delays are corrected for it.
    pub skew_ns_per_s: i64,
}

impl DelayPoints {
    pub fn between(sent: Point, received: Point) -> Self {
        DelayPoints {
            sent,
            sent_clock: choose_clock(sent),
            received,
            received_clock: choose_clock(received),
            compared: None,
        }
    }
}

fn choose_clock(point: Point) -> ClockSource {
    match point {
        Point::Kernel => ClockSource::Realtime,
        Point::Interface => ClockSource::Interface,
        Point::Schedule | Point::Call => ClockSource::Monotonic,
    }
}

/// The non-empty buckets of an HDR histogram with 3 significant digits: `[value, count]` pairs, values ascending.
/// Values are nanoseconds. Histograms are merged by adding counts, never averaged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Buckets(pub Vec<(u64, u64)>);

impl Buckets {
    pub fn count(&self) -> u64 {
        self.0.iter().fold(0, |sum: u64, (_, count)| sum.saturating_add(*count))
    }

    /// The smallest recorded value with at least a share `p` (0 to 1) of all values at or below it: nearest rank, RFC
    /// 2330 section 11.3. `None` if the histogram is empty.
    pub fn percentile(&self, p: f64) -> Option<u64> {
        let rank = ((p * self.count() as f64).ceil() as u64).max(1);
        let mut seen = 0_u64;
        self.0
            .iter()
            .find(|(_, count)| {
                seen = seen.saturating_add(*count);
                seen >= rank
            })
            .map(|(value, _)| *value)
    }
}

/// IP packet delay variation of messages sent one after the other (RFC 3393): by how much the second one took longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ipdv {
    /// Pairs of messages of which both arrived.
    pub pairs: u64,
    pub min_ns: i64,
    pub median_ns: i64,
    pub max_ns: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let buckets = Buckets(vec![(10, 5), (20, 4), (100, 1)]);
        assert_eq!(buckets.count(), 10);
        assert_eq!(buckets.percentile(0.5), Some(10));
        assert_eq!(buckets.percentile(0.51), Some(20));
        assert_eq!(buckets.percentile(0.9), Some(20));
        assert_eq!(buckets.percentile(0.99), Some(100));
        assert_eq!(Buckets::default().percentile(0.5), None);
    }
}
