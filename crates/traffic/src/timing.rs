//! How long a trial and its steps may take, and other rules of the engine that a coordinator has to know.

pub use crate::engine::flows::OPEN_LIMIT;
pub use crate::engine::phases::{END_LIMIT, MIN_MESSAGES, MIN_ROUND_TRIPS};
pub use crate::engine::socket_options::pacing_rate;
pub use crate::stats::flow::MAX_DELAY_NS;

use stacklab_model::{Io, Length, Metric, Pacing, Transport, TrialSpec};
use std::time::Duration;

/// How long a send may find no room before the receiver counts as stuck.
pub const SEND_LIMIT: Duration = crate::sys::SEND_LIMIT;
/// What a trial may take in addition to its own length, all of its steps together: connecting, draining and a busy
/// machine. More than an agent takes until it gives up by itself, whose reason is the better one.
pub const SLACK: Duration = Duration::from_secs(30);
/// A trial that ends by message count is abandoned below this rate, messages per second.
const SLOWEST_PER_SECOND: f64 = 100.0;
/// No trial is longer: 31 years.
pub const MAX_DURATION: Duration = Duration::from_secs(1_000_000_000);

/// The longest that the traffic of a trial takes, with its warm-up.
pub fn longest(spec: &TrialSpec) -> Duration {
    let measured = match (spec.probe.length, spec.probe.pacing) {
        (Length::Time(ns), _) => ns as f64 / 1e9,
        (Length::Packets(packets), Pacing::Schedule(per_second)) => packets as f64 / per_second,
        (Length::Packets(packets), _) => packets as f64 / SLOWEST_PER_SECOND,
    };
    // What a stranger announces may be no time at all.
    let measured = Duration::try_from_secs_f64(measured).unwrap_or(MAX_DURATION).min(MAX_DURATION);
    Duration::from_nanos(spec.probe.warmup_ns) + measured
}

/// Nanoseconds per tick of this machine's CPU time.
pub fn tick_ns() -> u64 {
    crate::sys::tick_ns()
}

/// Whether receives are delayed until more data has arrived, since a wake-up per packet costs more than the receive:
/// in floods, except with plain I/O.
pub(crate) fn coalesces(spec: &TrialSpec) -> bool {
    if !spec.is_flood() || spec.io == Io::Send {
        return false;
    }
    spec.transport == Transport::Udp || !spec.probe.metrics.iter().copied().any(Metric::is_one_way_delay)
}

/// Whether the arrival time of each message is known. The kernel timestamps each datagram. In a byte stream it
/// timestamps only the last segment of a receive, so all messages of one receive would have the same time.
pub fn knows_arrival_times(spec: &TrialSpec) -> bool {
    spec.transport == Transport::Udp || !coalesces(spec)
}
