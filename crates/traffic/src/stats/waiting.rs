//! How many messages of a stream still waited in a queue of the path when its last one was sent.
//!
//! A queue hides an overload until it is full: nothing is lost until then, and a stream of a fraction of a second may
//! end before. What arrives after the end of the stream and the least delay of the path was in the queue.

use crate::sys::Nanos;
use stacklab_model::{Length, TrialSpec};

/// The most arrivals that are kept, for any load and length that a peer asks for.
const MAX_ARRIVALS: usize = 8 << 20;

#[derive(Debug, Clone)]
pub(crate) struct WaitingCounter {
    arrivals: Vec<Nanos>,
    gap_ns: Nanos,
    last_sent_ns: Nanos,
    /// By clocks that may differ: it is added to times of the sender's alone.
    least_delay_ns: i128,
}

impl WaitingCounter {
    /// Of slices of a search, which end after a time.
    pub(crate) fn of(spec: &TrialSpec) -> Option<Self> {
        let Length::Time(length_ns) = spec.probe.length else { return None };
        spec.search_load().map(|load| WaitingCounter::new(load, length_ns))
    }

    /// For a stream of this many messages per second for this long.
    pub(crate) fn new(per_second: f64, length_ns: Nanos) -> Self {
        // A schedule that moves sends as many messages as one that does not.
        let expected = (per_second * length_ns as f64 / 1e9) as usize + 64;
        WaitingCounter {
            arrivals: Vec::with_capacity(expected.min(MAX_ARRIVALS)),
            gap_ns: (1e9 / per_second) as Nanos,
            last_sent_ns: 0,
            least_delay_ns: i128::MAX,
        }
    }

    /// Adds the first copy of a message.
    pub(crate) fn record(&mut self, sent_ns: Nanos, arrived_ns: Nanos) {
        self.last_sent_ns = self.last_sent_ns.max(sent_ns);
        self.least_delay_ns = self.least_delay_ns.min(i128::from(arrived_ns) - i128::from(sent_ns));
        if self.arrivals.len() < self.arrivals.capacity() {
            self.arrivals.push(arrived_ns);
        }
    }

    pub(crate) fn join(&mut self, other: WaitingCounter) {
        self.last_sent_ns = self.last_sent_ns.max(other.last_sent_ns);
        self.least_delay_ns = self.least_delay_ns.min(other.least_delay_ns);
        self.arrivals.extend(other.arrivals);
    }

    /// Messages that arrived later than the next one would have, had it met no queue.
    pub(crate) fn count(&self) -> u64 {
        if self.arrivals.is_empty() {
            return 0;
        }
        let end_ns = i128::from(self.last_sent_ns) + i128::from(self.gap_ns) + self.least_delay_ns;
        self.arrivals.iter().filter(|arrived_ns| i128::from(**arrived_ns) > end_ns).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream of 1000 messages per second for 100 ms over a queue that serves this many per second.
    fn count_waiting(served_per_second: f64, clock_ahead_ns: i64) -> u64 {
        let mut waiting = WaitingCounter::new(1000.0, 100_000_000);
        let mut free_ns = 0.0_f64;
        for sequence in 0..100 {
            let sent_ns = 1_000_000_000 + sequence * 1_000_000;
            free_ns = free_ns.max(sent_ns as f64) + 1e9 / served_per_second;
            waiting.record(sent_ns, (free_ns as Nanos + 50_000).saturating_add_signed(clock_ahead_ns));
        }
        waiting.count()
    }

    #[test]
    fn a_queue_holds_what_exceeds_its_rate() {
        assert_eq!(count_waiting(2000.0, 0), 0);
        assert_eq!(count_waiting(1000.0, 0), 0);
        // 100 messages take 1/950 s each: five are left when the last one's gap is over, and one of them is served
        // within the least delay.
        assert_eq!(count_waiting(950.0, 0), 4);
        assert_eq!(count_waiting(500.0, 0), 49);
    }

    #[test]
    fn clocks_may_differ() {
        for ahead_ns in [-900_000_000, 3_600_000_000_000] {
            assert_eq!(count_waiting(500.0, ahead_ns), 49);
        }
        assert_eq!(WaitingCounter::new(1000.0, 1).count(), 0);
    }
}
