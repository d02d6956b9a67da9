//! The slices of an arm of an interleaved trial.

use crate::network::link_bucket::LinkBucket;
use serde::{Deserialize, Serialize};

/// One slice of one arm of an interleaved trial, as one host counted it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Slice {
    /// Round of the trial, from 0. Every arm has one slice in each round.
    pub round: u32,
    /// Messages that this host sent or received, duplicates not counted.
    pub messages: u64,
    /// Number of these that the first receive of the slice returned; 0 for a sender. A rate counts from that receive
    /// on.
    pub at_first: u64,
    /// Nanoseconds of the host's clock at the first message.
    pub first_ns: u64,
    /// Nanoseconds of the host's clock at the last arrival, or after the last send.
    pub last_ns: u64,
    /// Median of the slice's delays, nanoseconds: round trips at the sender of an echo, one-way delays at the receiver
    /// of a stream. An unanswered round trip counts as infinite: `None` if half or more are, and without any delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ns: Option<u64>,
    /// Mean absolute difference of consecutive delays within a flow, nanoseconds; `None` with fewer than two delays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter_ns: Option<f64>,
    /// CPU time of the arm's threads on this host for the slice, nanoseconds; `None` if the system does not count it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<u64>,
    /// Time for which the arm's threads on this host were ready to run and waited for a processor (run delay), from
    /// the slice's first message until the arm's next slice, at a sender until its last message; nanoseconds. `None` if
    /// the system does not count it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_ns: Option<u64>,
}

impl Slice {
    /// A slice whose threads waited for more than this share of its time counts as held up.
    pub const MOST_WAITED: f64 = 0.1;

    /// Seconds from the first message to the last.
    pub fn seconds(&self) -> f64 {
        self.last_ns.saturating_sub(self.first_ns) as f64 / 1e9
    }

    /// Messages per second after the first receive, without the burst of a token bucket on the path; `None` if all
    /// messages arrived at one moment.
    pub fn arrival_rate(&self, bucket: Option<LinkBucket>) -> Option<f64> {
        let (messages, seconds) = (self.messages.saturating_sub(self.at_first) as f64, self.seconds());
        let rate = |bucket: LinkBucket| bucket.sustained(messages, seconds);
        (seconds > 0.0).then(|| bucket.map_or(messages / seconds, rate))
    }

    /// Whether its threads waited for a processor for more than [`Slice::MOST_WAITED`] of its time; `None` without
    /// messages, or if the system does not count it.
    pub fn held_up(&self) -> Option<bool> {
        let waited = self.waited_ns.filter(|_| self.messages > 0)? as f64;
        Some(waited > Self::MOST_WAITED * self.seconds() * 1e9)
    }

    /// CPU time per message, nanoseconds.
    pub fn cpu_per_message(&self) -> Option<f64> {
        self.cpu_ns.filter(|_| self.messages > 0).map(|ns| ns as f64 / self.messages as f64)
    }
}
