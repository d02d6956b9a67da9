//! The two points between which a delay is taken.

use crate::names::named;
use serde::{Deserialize, Serialize};

named! {
    /// A point on a message's way at which its time is taken.
    pub enum Point("point") {
        /// The time at which it should have been sent.
        Schedule = "schedule",
        /// The program's call: just before a send or a connect, just after a receive or a connect.
        Call = "call",
        /// The kernel, by software, when the interface's driver hands the packet over (SO_TIMESTAMPNS).
        Kernel = "kernel",
        /// The interface itself, where it stamps packets (SO_TIMESTAMPING, raw hardware).
        Interface = "interface",
    }
}

named! {
    /// A clock of a host.
    pub enum Clock("clock") {
        /// CLOCK_MONOTONIC.
        Monotonic = "monotonic",
        /// CLOCK_REALTIME, turned into the monotonic clock's time by the difference of both at the receive.
        Realtime = "realtime",
        /// The interface's own.
        Interface = "interface",
    }
}

/// From where to where a side's delays are, and by which clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelayPoints {
    /// Where a delay begins.
    pub sent: Point,
    /// The clock that was read there.
    pub sent_clock: Clock,
    /// Where it ends.
    pub received: Point,
    /// The clock that was read there.
    pub received_clock: Clock,
    /// How the two hosts' clocks were compared; `None` where they are one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared: Option<Compared>,
}

/// How delays between two clocks were taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compared {
    /// How far the receiver's clock is ahead of the sender's before the trial, nanoseconds.
    pub offset_ns: i64,
    /// How wrong a delay may be for it, nanoseconds; 0 until both comparisons are known.
    pub bound_ns: u64,
    /// Nanoseconds that the receiver's clock gained a second, as they were taken out.
    pub skew_ns_per_s: i64,
}

impl DelayPoints {
    /// Between a point where a message leaves and one where it arrives.
    pub fn between(sent: Point, received: Point) -> Self {
        let clock = |point| match point {
            Point::Kernel => Clock::Realtime,
            Point::Interface => Clock::Interface,
            Point::Schedule | Point::Call => Clock::Monotonic,
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
