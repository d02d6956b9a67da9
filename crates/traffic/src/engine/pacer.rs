//! Pacing: when the next message is sent.

use crate::stats::delay::{DelayRecorder, Variation};
use crate::sys::{self, LEAST_SLEEP_NS, Nanos};
use stacklab_model::{Delays, Length, Pacing};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::yield_now;
use std::time::Duration;

/// How long a sender that may be stopped sleeps at once.
const STOP_LOOK_NS: Nanos = 20_000_000;

/// Permission to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SendSlot {
    /// When the first message should leave.
    pub due: Nanos,
    /// The time now.
    pub now: Nanos,
    /// How many messages may leave.
    pub messages: usize,
}

/// Lateness: how long after its schedule each message was sent.
pub(crate) struct Lateness {
    recorder: DelayRecorder,
    order: Variation,
    most_ns: Nanos,
}

impl Lateness {
    fn new() -> Self {
        Lateness { recorder: DelayRecorder::new(), order: Variation::default(), most_ns: 0 }
    }

    /// Maximum lateness, nanoseconds.
    pub(crate) fn most_ns(&self) -> Nanos {
        self.most_ns
    }

    /// Adds another thread's lateness.
    pub(crate) fn join(&mut self, other: &Lateness) {
        self.recorder.join(&other.recorder);
        self.most_ns = self.most_ns.max(other.most_ns);
    }

    /// The distribution; `None` if no message was sent.
    pub(crate) fn finish(self) -> Option<Delays> {
        self.recorder.finish(std::iter::once(&self.order))
    }
}

/// The send times of one phase.
pub(crate) struct Pacer<'a> {
    start_ns: Nanos,
    /// Nanoseconds between messages on a schedule; 0 where there is none.
    gap_ns: f64,
    length: Length,
    /// No message is sent before this time: after a late message, the next one does not follow at once.
    not_before_ns: Nanos,
    lateness: Option<Lateness>,
    /// Set by whoever ends the phase early.
    stop: Option<&'a AtomicBool>,
    /// Whether this host has a single processor. Spinning would then starve the other hosts on it.
    only_processor: bool,
}

impl<'a> Pacer<'a> {
    /// A phase that starts now.
    pub(crate) fn start(pacing: Pacing, length: Length) -> Self {
        let gap_ns = match pacing {
            Pacing::Schedule(per_second) => 1e9 / per_second,
            // `Link` and `Share` have already been replaced by a schedule, and `Share` is a flood until then.
            Pacing::Flood | Pacing::Lockstep | Pacing::Link | Pacing::Share(_) => 0.0,
        };
        let lateness = (gap_ns > 0.0).then(Lateness::new);
        let only_processor = sys::allowed_processors().nth(1).is_none();
        let start_ns = sys::now_ns();
        Pacer { start_ns, gap_ns, length, not_before_ns: 0, lateness, stop: None, only_processor }
    }

    /// The phase also ends when this is set.
    pub(crate) fn stopped_by(self, stop: Option<&'a AtomicBool>) -> Self {
        Pacer { stop, ..self }
    }

    fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// Waits for the send time of message `sequence`. Without a schedule, up to `most` messages may be sent at once.
    /// `None` when the phase is over.
    pub(crate) fn next_slot(&mut self, sequence: u64, most: usize) -> Option<SendSlot> {
        let mut now = sys::now_ns();
        let scheduled = self.gap_ns > 0.0;
        let due = if scheduled { self.start_ns + (sequence as f64 * self.gap_ns) as Nanos } else { now };
        let left = match self.length {
            Length::Packets(packets) => packets.saturating_sub(sequence),
            Length::Time(time) if due.saturating_sub(self.start_ns) >= time => 0,
            Length::Time(_) => u64::MAX,
        };
        if left == 0 || self.is_stopped() {
            return None;
        }
        if scheduled {
            let due = due.max(self.not_before_ns);
            // Who may be stopped sleeps no longer than it takes to notice, and does not spin for it.
            while self.stop.is_some() && now + 2 * STOP_LOOK_NS < due {
                sys::sleep(Duration::from_nanos(STOP_LOOK_NS));
                now = sys::now_ns();
                if self.is_stopped() {
                    return None;
                }
            }
            now = wait_until(due, now, self.only_processor);
        }
        let messages = if scheduled { 1 } else { most.min(usize::try_from(left).unwrap_or(usize::MAX)) };
        Some(SendSlot { due, now, messages })
    }

    /// Records that the slot's message was sent. Behind schedule, the next gaps shrink to no less than half, so the
    /// sender catches up without a burst.
    pub(crate) fn sent(&mut self, slot: SendSlot) {
        if let Some(lateness) = &mut self.lateness {
            let late = slot.now - slot.due;
            lateness.recorder.record(late, &mut lateness.order);
            lateness.most_ns = lateness.most_ns.max(late);
            self.not_before_ns = slot.now + (self.gap_ns / 2.0) as Nanos;
        }
    }

    /// How late the messages were; `None` without a schedule.
    pub(crate) fn finish(self) -> Option<Lateness> {
        self.lateness
    }
}

/// Waits until `due` and returns the time, never before `due`. On a single processor it yields:
/// spinning there would be preempted for a whole time slice.
fn wait_until(due: Nanos, mut now: Nanos, only_processor: bool) -> Nanos {
    while now < due {
        match due - now {
            left @ LEAST_SLEEP_NS.. => sys::sleep(Duration::from_nanos(left - LEAST_SLEEP_NS / 2)),
            _ if only_processor => yield_now(),
            _ => std::hint::spin_loop(),
        }
        now = sys::now_ns();
    }
    now
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_never_sends_early_and_sends_the_right_number() {
        let mut pacer = Pacer::start(Pacing::Schedule(10_000.0), Length::Time(20_000_000));
        let start = pacer.start_ns;
        let mut sequence = 0;
        while let Some(slot) = pacer.next_slot(sequence, 64) {
            assert_eq!((slot.due, slot.messages), (start + sequence * 100_000, 1));
            assert!(slot.now >= slot.due);
            pacer.sent(slot);
            sequence += 1;
        }
        assert_eq!(sequence, 200);
        assert_eq!(pacer.finish().unwrap().finish().unwrap().buckets.count(), 200);
    }

    #[test]
    fn a_late_schedule_is_caught_up_with_and_never_by_a_burst() {
        let mut pacer = Pacer::start(Pacing::Schedule(1_000.0), Length::Packets(200));
        std::thread::sleep(Duration::from_millis(10));
        let (mut last, mut sequence) = (0, 0);
        let mut overslept = Vec::new();
        while let Some(slot) = pacer.next_slot(sequence, 1) {
            // Due, but half a gap after the last one at the earliest.
            let earliest = slot.due.max(last + 500_000);
            assert!(slot.now >= earliest, "a gap of {} ns", slot.now - last);
            overslept.push(slot.now - earliest);
            last = slot.now;
            pacer.sent(slot);
            sequence += 1;
        }
        // 10 ms late at first, and caught up with by half gaps. Only a machine that does something else is later.
        assert!(pacer.finish().unwrap().most_ns() >= 9_000_000);
        overslept.sort_unstable();
        assert!(overslept[100] < 5_000_000, "{overslept:?}");
    }

    #[test]
    fn a_count_ends_a_flood() {
        let mut pacer = Pacer::start(Pacing::Flood, Length::Packets(3));
        let slots = [0, 2, 3].map(|sequence| pacer.next_slot(sequence, 2).map(|slot| slot.messages));
        assert_eq!(slots, [Some(2), Some(1), None]);
        assert!(pacer.finish().is_none());
    }
}
