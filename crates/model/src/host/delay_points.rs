//! The two points between which a delay is measured.

use crate::names::named;
use serde::{Deserialize, Serialize};

named! {
    /// A point on a message's path with a timestamp.
    pub enum Point("point") {
        /// The scheduled send time.
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
    /// A clock of a host.
    pub enum ClockSource("clock") {
        /// CLOCK_MONOTONIC.
        Monotonic = "monotonic",
        /// CLOCK_REALTIME, converted to the monotonic clock by the difference of both at the receive.
        Realtime = "realtime",
        /// The interface's clock.
        Interface = "interface",
    }
}

/// The start and end points of a host's delays, and the clocks read there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelayPoints {
    /// The start of a delay.
    pub sent: Point,
    /// The clock that was read there.
    pub sent_clock: ClockSource,
    /// The end of a delay.
    pub received: Point,
    /// The clock that was read there.
    pub received_clock: ClockSource,
    /// How the two hosts' clocks were compared; `None` if both hosts share one clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared: Option<Compared>,
}

/// How delays between two clocks were corrected.
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
    /// From the point of a message's departure to the point of its arrival.
    pub fn between(sent: Point, received: Point) -> Self {
        let clock = |point| match point {
            Point::Kernel => ClockSource::Realtime,
            Point::Interface => ClockSource::Interface,
            Point::Schedule | Point::Call => ClockSource::Monotonic,
        };
        DelayPoints {
            sent,
            sent_clock: clock(sent),
            received,
            received_clock: clock(received),
            compared: None,
        }
    }
}
