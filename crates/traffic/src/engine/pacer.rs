//! Pacing: when the next message is sent.

use crate::stats::flow::FlowDelays;
use crate::sys::{self, MIN_SLEEP_NS, Nanos};
use stacklab_model::{Delays, Length, LoadStep, Pacing};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::yield_now;
use std::time::Duration;

/// How long a late schedule is caught up with after its end: a tenth of the phase, within these bounds.
const CATCH_UP_NS: (Nanos, Nanos) = (100_000_000, 1_000_000_000);
/// How many times its length a phase lasts at most whose schedule moves.
const MAX_SHIFTED_LENGTH: Nanos = 3;
/// What a schedule that moves catches up with all the same, by half gaps: this many gaps, and no longer than this time.
/// A call that takes longer than its gap would else lower the load, and a device has room for a few messages.
const MAX_CAUGHT_UP_GAPS: f64 = 16.0;
const MAX_CAUGHT_UP_NS: f64 = 100_000.0;
/// How long a sender that may be stopped sleeps at once.
const STOP_LOOK_NS: Nanos = 20_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SendSlot {
    pub due: Nanos,
    pub now: Nanos,
    pub messages: usize,
}

/// Pacing error: how long after its schedule each message was sent.
pub(crate) struct PacingError {
    delays: FlowDelays,
    most_ns: Nanos,
}

impl PacingError {
    fn new() -> Self {
        PacingError { delays: FlowDelays::new(), most_ns: 0 }
    }

    pub(crate) fn most_ns(&self) -> Nanos {
        self.most_ns
    }

    pub(crate) fn join(&mut self, other: &PacingError) {
        self.delays.all.join(&other.delays.all);
        self.most_ns = self.most_ns.max(other.most_ns);
    }

    pub(crate) fn finish(self) -> Option<Delays> {
        self.delays.finish()
    }
}

pub(crate) struct Pacer<'a> {
    start_ns: Nanos,
    /// Nanoseconds between messages on a schedule; 0 where there is none.
    gap_ns: f64,
    /// A schedule whose gap changes.
    step: Option<LoadStep>,
    length: Length,
    /// Time of the first message after the start, on a schedule.
    offset_ns: Nanos,
    /// The phase ends here though its length is not reached.
    limit_ns: Nanos,
    /// Messages that the phase has at the least, within its limit.
    min_messages: u64,
    /// No message is sent before this time: after a late message, the next one does not follow at once.
    not_before_ns: Nanos,
    pacing_error: Option<PacingError>,
    /// By how much the schedule has moved; `None` if it does not move, and is caught up with.
    shift_ns: Option<Nanos>,
    stop: Option<&'a AtomicBool>,
    /// Whether this host has a single processor. Spinning would then starve the other hosts on it.
    only_processor: bool,
}

impl<'a> Pacer<'a> {
    pub(crate) fn start(pacing: Pacing, length: Length) -> Self {
        let gap_ns = match pacing {
            Pacing::Schedule(per_second) | Pacing::Shifted(per_second) => 1e9 / per_second,
            Pacing::Stepped(step) => 1e9 / step.first,
            // All but the first two have already been replaced by a schedule, and `Share` is a flood until then.
            Pacing::Flood
            | Pacing::Lockstep
            | Pacing::Link
            | Pacing::Share(_)
            | Pacing::Search(_)
            | Pacing::Searched => 0.0,
        };
        let step = if let Pacing::Stepped(step) = pacing { Some(step) } else { None };
        let shift_ns = matches!(pacing, Pacing::Shifted(_) | Pacing::Stepped(_)).then_some(0);
        let pacing_error = (gap_ns > 0.0).then(PacingError::new);
        let only_processor = sys::allowed_processors().nth(1).is_none();
        let start_ns = sys::now_ns();
        let limit_ns = match length {
            Length::Time(time) if shift_ns.is_some() => time.saturating_mul(MAX_SHIFTED_LENGTH),
            Length::Time(time) if gap_ns > 0.0 => {
                time.saturating_add((time / 10).clamp(CATCH_UP_NS.0, CATCH_UP_NS.1))
            }
            Length::Time(time) => time,
            Length::Packets(_) => Nanos::MAX,
        };
        let offset_ns = 0;
        let not_before_ns = 0;
        let stop = None;
        Pacer {
            start_ns,
            gap_ns,
            step,
            length,
            offset_ns,
            limit_ns,
            min_messages: 0,
            not_before_ns,
            pacing_error,
            shift_ns,
            stop,
            only_processor,
        }
    }

    /// The same, whose schedule begins later: the schedules of several threads alternate.
    pub(crate) fn offset_by(self, offset_ns: Nanos) -> Self {
        Pacer { offset_ns, ..self }
    }

    /// The same, which lasts longer than its length until it has this number of messages. It ends at the limit all
    /// the same.
    pub(crate) fn with_at_least(self, min_messages: u64, limit_ns: Nanos) -> Self {
        Pacer { min_messages, limit_ns: self.limit_ns.max(limit_ns), ..self }
    }

    pub(crate) fn within(self, limit_ns: Nanos) -> Self {
        Pacer { limit_ns: self.limit_ns.min(limit_ns), ..self }
    }

    pub(crate) fn ends_ns(&self) -> Nanos {
        self.start_ns.saturating_add(self.limit_ns)
    }

    /// When message `sequence` is due, or the phase ends before; `None` without a schedule.
    pub(crate) fn due(&self, sequence: u64) -> Option<Nanos> {
        let start_ns = self.start_ns + self.shift_ns.unwrap_or(0);
        let after_ns = self.step.map_or(sequence as f64 * self.gap_ns, |step| step.due_ns(sequence));
        let due = start_ns + self.offset_ns + after_ns as Nanos;
        let end = match self.length {
            Length::Time(time) => start_ns.saturating_add(time),
            Length::Packets(_) => Nanos::MAX,
        };
        (self.gap_ns > 0.0).then_some(due.min(end))
    }

    pub(crate) fn stopped_by(self, stop: Option<&'a AtomicBool>) -> Self {
        Pacer { stop, ..self }
    }

    fn should_stop(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// Waits until a message is due. Without a schedule, up to `most` may be sent at once. `None` when the phase is
    /// over.
    pub(crate) fn next_slot(&mut self, sequence: u64, most: usize) -> Option<SendSlot> {
        let mut now = sys::now_ns();
        let scheduled = self.gap_ns > 0.0;
        let due = self.due(sequence).unwrap_or(now);
        let left = match self.length {
            Length::Packets(packets) => packets.saturating_sub(sequence),
            Length::Time(time)
                if due.saturating_sub(self.start_ns + self.shift_ns.unwrap_or(0)) >= time
                    && sequence >= self.min_messages =>
            {
                0
            }
            Length::Time(_) => u64::MAX,
        };
        let is_late = now >= self.ends_ns();
        if scheduled && !is_late {
            // The phase lasts until its end, though nothing is due until then.
            let due = if left == 0 { due } else { due.max(self.not_before_ns) };
            // Who may be stopped sleeps no longer than it takes to notice, and does not spin for it.
            while self.stop.is_some() && now + 2 * STOP_LOOK_NS < due && !self.should_stop() {
                sys::sleep(Duration::from_nanos(STOP_LOOK_NS));
                now = sys::now_ns();
            }
            if !self.should_stop() && !matches!((self.length, left), (Length::Packets(_), 0)) {
                now = wait_until(due, now, self.only_processor);
            }
        }
        if left == 0 || is_late || self.should_stop() {
            return None;
        }
        let messages = if scheduled { 1 } else { most.min(usize::try_from(left).unwrap_or(usize::MAX)) };
        Some(SendSlot { due, now, messages })
    }

    /// Behind schedule, the next gaps shrink to no less than half, so the sender catches up without a burst; or the
    /// rest of a schedule that moves is later by the same time.
    pub(crate) fn record_send(&mut self, slot: SendSlot) {
        if let Some(pacing_error) = &mut self.pacing_error {
            let late = slot.now - slot.due;
            pacing_error.delays.record(late);
            pacing_error.most_ns = pacing_error.most_ns.max(late);
            let caught_up_ns =
                (MAX_CAUGHT_UP_GAPS * self.gap_ns).min(MAX_CAUGHT_UP_NS).max(self.gap_ns / 2.0);
            if let Some(shift_ns) = self.shift_ns.as_mut().filter(|_| late as f64 > caught_up_ns) {
                *shift_ns += late;
            }
            self.not_before_ns = slot.now + (self.gap_ns / 2.0) as Nanos;
        }
    }

    pub(crate) fn finish(self) -> Option<PacingError> {
        self.pacing_error
    }
}

/// Waits until `due`, and returns the time, which is not before it. On a single processor it yields: spinning would be
/// preempted for a whole time slice.
fn wait_until(due: Nanos, mut now: Nanos, only_processor: bool) -> Nanos {
    while now < due {
        match due - now {
            left @ MIN_SLEEP_NS.. => sys::sleep(Duration::from_nanos(left - MIN_SLEEP_NS / 2)),
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
    fn schedule_is_never_early_and_sends_the_right_number() {
        let mut pacer = Pacer::start(Pacing::Schedule(10_000.0), Length::Time(20_000_000));
        let start = pacer.start_ns;
        let mut sequence = 0;
        while let Some(slot) = pacer.next_slot(sequence, 64) {
            assert_eq!((slot.due, slot.messages), (start + sequence * 100_000, 1));
            assert!(slot.now >= slot.due);
            pacer.record_send(slot);
            sequence += 1;
        }
        assert_eq!(sequence, 200);
        assert_eq!(pacer.finish().unwrap().finish().unwrap().buckets.count(), 200);
    }

    #[test]
    fn a_schedule_may_change_its_gap() {
        let step = LoadStep { first_messages: 100, first: 10_000.0, second: 1000.0 };
        let mut pacer = Pacer::start(Pacing::Stepped(step), Length::Time(30_000_000));
        let mut sent = Vec::new();
        while let Some(slot) = pacer.next_slot(sent.len() as u64, 64) {
            let shift_ns = pacer.shift_ns.unwrap();
            sent.push(slot.due - pacer.start_ns - shift_ns);
            pacer.record_send(slot);
        }
        assert_eq!(sent.len(), 120);
        assert_eq!([0, 99, 100, 101, 119].map(|at| sent[at] / 1000), [0, 9900, 10_000, 11_000, 29_000]);
    }

    #[test]
    fn catches_up_with_a_late_schedule_without_a_burst() {
        let mut pacer = Pacer::start(Pacing::Schedule(1_000.0), Length::Packets(200));
        std::thread::sleep(Duration::from_millis(10));
        let mut last = 0;
        let mut sequence = 0;
        let mut overslept = Vec::new();
        let mut machine_overslept = Vec::new();
        while let Some(slot) = pacer.next_slot(sequence, 1) {
            // Due, but half a gap after the last one at the earliest.
            let earliest = slot.due.max(last + 500_000);
            assert!(slot.now >= earliest, "a gap of {} ns", slot.now - last);
            overslept.push(slot.now - earliest);
            last = slot.now;
            pacer.record_send(slot);
            sequence += 1;
            if sequence % 2 == 0 {
                let begins_ns = sys::now_ns();
                std::thread::sleep(Duration::from_micros(100));
                machine_overslept.push(sys::now_ns() - begins_ns - 100_000);
            }
        }
        // 10 ms late at first, and caught up with by half gaps.
        assert!(pacer.finish().unwrap().most_ns() >= 9_000_000);
        // It wakes as late as this machine wakes any thread at this time.
        overslept.sort_unstable();
        machine_overslept.sort_unstable();
        assert!(
            overslept[100] < 5_000_000 + 2 * machine_overslept[50],
            "{overslept:?} {machine_overslept:?}"
        );
    }

    #[test]
    fn a_schedule_that_moves_is_not_caught_up_with() {
        let mut pacer = Pacer::start(Pacing::Shifted(1000.0), Length::Time(50_000_000));
        let mut sent_ns = Vec::new();
        while let Some(slot) = pacer.next_slot(sent_ns.len() as u64, 1) {
            sent_ns.push(slot.now);
            pacer.record_send(slot);
            if sent_ns.len() == 10 {
                // A stop of the sender's thread.
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        let ended_ns = sys::now_ns();
        assert_eq!(sent_ns.len(), 50);
        assert!(ended_ns - pacer.start_ns >= 69_000_000, "{} ns", ended_ns - pacer.start_ns);
        // Twenty messages more would be there after a stop of twenty gaps.
        let after_stop_ns = sent_ns[10];
        let soon = sent_ns.iter().filter(|ns| (after_stop_ns..after_stop_ns + 10_000_000).contains(*ns));
        assert!(soon.count() <= 11);
        let mut stuck = Pacer::start(Pacing::Shifted(1000.0), Length::Time(10_000_000));
        stuck.start_ns -= 31_000_000;
        assert!(stuck.next_slot(1, 1).is_none(), "it ends though not all was sent");
    }

    #[test]
    fn a_schedule_moves_by_more_than_a_few_gaps() {
        let mut pacer = Pacer::start(Pacing::Shifted(100_000.0), Length::Time(50_000_000));
        let due = pacer.start_ns;
        pacer.record_send(SendSlot { due, now: due + 90_000, messages: 1 });
        assert_eq!(pacer.shift_ns, Some(0), "nine gaps are caught up with");
        assert_eq!(pacer.not_before_ns, due + 95_000, "by half gaps");
        pacer.record_send(SendSlot { due, now: due + 110_000, messages: 1 });
        assert_eq!(pacer.shift_ns, Some(110_000));
        // Of slow messages half a gap.
        let mut slow = Pacer::start(Pacing::Shifted(1000.0), Length::Time(50_000_000));
        slow.record_send(SendSlot { due, now: due + 499_000, messages: 1 });
        assert_eq!(slow.shift_ns, Some(0));
        slow.record_send(SendSlot { due, now: due + 501_000, messages: 1 });
        assert_eq!(slow.shift_ns, Some(501_000));
    }

    #[test]
    fn a_late_message_does_not_lengthen_a_schedule() {
        // The next message would be due a second later.
        let mut pacer = Pacer::start(Pacing::Schedule(1.0), Length::Time(50_000_000));
        assert!(pacer.next_slot(0, 1).is_some() && pacer.next_slot(1, 1).is_none());
        assert!(sys::now_ns() - pacer.start_ns >= 50_000_000);
        let mut late = Pacer { start_ns: sys::now_ns() - 60_000_000, ..start_schedule() };
        assert!(late.next_slot(3, 1).is_some(), "it is caught up with");
        let mut too_late = Pacer { start_ns: sys::now_ns() - 160_000_000, ..start_schedule() };
        assert!(too_late.next_slot(3, 1).is_none());
        // The schedule of another thread begins between two messages of this one's.
        let other = start_schedule().offset_by(500_000);
        assert_eq!(other.due(1), Some(other.start_ns + 1_500_000));
    }

    fn start_schedule() -> Pacer<'static> {
        Pacer::start(Pacing::Schedule(1_000.0), Length::Time(50_000_000))
    }

    #[test]
    fn waits_for_enough_messages_up_to_a_limit() {
        let mut pacer = start_lockstep();
        sys::sleep(Duration::from_millis(1));
        let sequence = (0..).find(|sequence| pacer.next_slot(*sequence, 1).is_none());
        assert_eq!(sequence, Some(3));
        let mut pacer = start_lockstep();
        sys::sleep(Duration::from_millis(20));
        assert!(pacer.next_slot(1, 1).is_none(), "the limit ends it");
    }

    fn start_lockstep() -> Pacer<'static> {
        Pacer::start(Pacing::Lockstep, Length::Time(1)).with_at_least(3, 20_000_000)
    }

    #[test]
    fn a_count_ends_a_flood() {
        let mut pacer = Pacer::start(Pacing::Flood, Length::Packets(3));
        let slots = [0, 2, 3].map(|sequence| pacer.next_slot(sequence, 2).map(|slot| slot.messages));
        assert_eq!(slots, [Some(2), Some(1), None]);
        assert!(pacer.finish().is_none());
    }
}
