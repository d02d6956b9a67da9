//! The highest rate of all that an agent sends. Messages of streams, round trips, opening datagrams and end markers of
//! all its trials take from one allowance, so that no shape of a trial passes the operator's `--max-rate`.

use crate::engine::header::end_markers;
use crate::sys::{self, Nanos};
use stacklab_model::{HEADER_BYTES, Pacing, Transport, TrialSpec};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// A late schedule may catch up with this much at once.
const MAX_BURST_NS: Nanos = 200_000_000;
/// How long a sender sleeps at most before it looks whether it was stopped.
const MAX_SLEEP: Duration = Duration::from_millis(20);
/// How long what a trial sends beside its messages may take.
pub(crate) const MAX_OVERHEAD: Duration = Duration::from_secs(10);

/// Payload that may be sent per second, and how much of it has been spent.
#[derive(Debug)]
pub(crate) struct Allowance {
    bits_per_second: f64,
    /// When all that was sent so far would have been sent at the rate.
    spent_until_ns: AtomicU64,
}

impl Allowance {
    pub(crate) fn new(bits_per_second: f64) -> Self {
        Allowance { bits_per_second, spent_until_ns: AtomicU64::new(0) }
    }

    /// How long this many bytes take at the rate.
    pub(crate) fn lasts_ns(&self, bytes: u64) -> Nanos {
        (bytes as f64 * 8e9 / self.bits_per_second) as Nanos
    }

    /// Waits until something may be sent, or until this time, or until it is stopped. Returns whether it may be.
    pub(crate) fn wait(&self, burst: Burst, until_ns: Nanos, stop: Option<&AtomicBool>) -> bool {
        let early_ns = if burst == Burst::Allowed { MAX_BURST_NS } else { 0 };
        loop {
            let now = sys::now_ns();
            let free_ns = self.spent_until_ns.load(Ordering::Relaxed).saturating_sub(early_ns);
            if free_ns <= now {
                return true;
            }
            if now >= until_ns || stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                return false;
            }
            sys::sleep(Duration::from_nanos(free_ns.min(until_ns) - now).min(MAX_SLEEP));
        }
    }

    /// Counts what was sent.
    pub(crate) fn spend(&self, bytes: u64) {
        let now = sys::now_ns();
        let lasts_ns = self.lasts_ns(bytes);
        let _ = self.spent_until_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |until| {
            Some(until.max(now).saturating_add(lasts_ns))
        });
    }
}

/// Whether what was not sent in the last moments may be sent now at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Burst {
    /// As of a schedule, which may be late.
    Allowed,
    /// As of round trips one after another, which take what schedules leave.
    Forbidden,
}

impl Burst {
    pub(crate) fn of(pacing: Pacing) -> Self {
        if pacing == Pacing::Lockstep { Burst::Forbidden } else { Burst::Allowed }
    }
}

/// Bytes of payload that a sender sends beside its messages: the headers that open connections, and end markers.
pub(crate) fn overhead_bytes(spec: &TrialSpec) -> u64 {
    let header = if spec.transport == Transport::Tcp { u64::from(HEADER_BYTES) } else { 0 };
    let markers = u64::from(end_markers(spec.transport)) * u64::from(spec.message_bytes);
    u64::from(spec.flows) * (header + markers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use stacklab_model::Family;

    fn soon() -> Nanos {
        sys::now_ns() + 1_000_000
    }

    fn overhead_of(transport: Transport) -> u64 {
        let mut spec = fixtures::spec(Family::Ipv6, transport);
        spec.flows = 10;
        spec.message_bytes = 1000;
        overhead_bytes(&spec)
    }

    #[test]
    fn waits_for_what_was_spent_and_catches_up_when_late() {
        let allowance = Allowance::new(8e6);
        assert_eq!(allowance.lasts_ns(1_000_000), 1_000_000_000);
        allowance.spend(100_000);
        // A tenth of a second ahead: less than a burst, and more than nothing.
        assert!(allowance.wait(Burst::Allowed, soon(), None));
        assert!(!allowance.wait(Burst::Forbidden, soon(), None));
        allowance.spend(1_000_000);
        assert!(!allowance.wait(Burst::Allowed, soon(), None));
        let stopped = AtomicBool::new(true);
        assert!(!allowance.wait(Burst::Allowed, Nanos::MAX, Some(&stopped)));
    }

    #[test]
    fn waiting_lasts_as_long_as_the_rate_takes() {
        let allowance = Allowance::new(8e6);
        let began_ns = sys::now_ns();
        for _ in 0..5 {
            assert!(allowance.wait(Burst::Forbidden, Nanos::MAX, None));
            allowance.spend(5_000);
        }
        // Four waits of 5 ms.
        assert!(sys::now_ns() - began_ns >= 20_000_000);
    }

    #[test]
    fn end_markers_of_all_flows_are_counted() {
        assert_eq!(overhead_of(Transport::Udp), 30_000);
        assert_eq!(overhead_of(Transport::Tcp), 10_320);
    }
}
