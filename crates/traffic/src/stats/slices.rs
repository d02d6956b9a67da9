//! The slices of an arm of an interleaved trial, counted as messages arrive.

use crate::sys::{self, Nanos, RunDelay};
use stacklab_model::{Slice, TrialSpec};

pub(crate) const MAX_SLICES: usize = 100_000;
/// Delays of which a slice's median is computed; further delays of the slice are not in it.
const MAX_DELAYS: usize = 8192;
/// The delay of a message without an answer: longer than any.
const UNANSWERED: u64 = u64::MAX;

pub(crate) struct SliceCounter {
    rows: Vec<Slice>,
    /// Delays of the last row; [`UNANSWERED`] for a message without an answer.
    delays: Vec<u64>,
    /// For each flow, the last row with a delay of it, and that delay.
    previous: Vec<Option<(usize, u64)>>,
    /// Sum and number of the differences of consecutive delays within a flow in the last row.
    variation: (u64, u64),
    /// CPU time of this thread when the last row began.
    cpu_began: Option<Nanos>,
    run_delay: RunDelay,
    /// How long this thread had waited for a processor when the last row began.
    waited_began: Option<Nanos>,
    /// User and kernel time of this thread when the first row began, and when a row was last completed.
    parts: [Option<(Nanos, Nanos)>; 2],
}

impl SliceCounter {
    /// Counts nothing yet, for the calling thread. `None` for a trial that is not interleaved.
    pub(crate) fn new(spec: &TrialSpec) -> Option<Self> {
        (!spec.schedule.is_alone()).then(|| SliceCounter {
            rows: Vec::with_capacity(1024),
            delays: Vec::with_capacity(MAX_DELAYS),
            previous: vec![None; spec.flows as usize],
            variation: (0, 0),
            cpu_began: None,
            run_delay: RunDelay::of_this_thread(),
            waited_began: None,
            parts: [None; 2],
        })
    }

    /// Counts a message of the slice with this number modulo 256. Late messages count for their own slice.
    pub(crate) fn record(&mut self, slice: u8, flow: usize, arrived: Nanos, delay_ns: Option<u64>) {
        let round = self.round(slice);
        if !self.open(round) {
            return;
        }
        let is_last = round + 1 == self.rows.len();
        let row = &mut self.rows[round];
        if row.messages == 0 {
            (row.first_ns, row.last_ns) = (arrived, arrived);
        }
        row.messages += 1;
        row.at_first += u64::from(arrived == row.first_ns);
        row.last_ns = row.last_ns.max(arrived);
        let Some(delay) = delay_ns.filter(|_| is_last) else { return };
        if let Some(previous) = self.previous.get_mut(flow) {
            if let Some((_, before)) = previous.filter(|(of, _)| *of == round) {
                self.variation.0 = self.variation.0.saturating_add(before.abs_diff(delay));
                self.variation.1 += 1;
            }
            *previous = Some((round, delay));
        }
        self.delay(delay);
    }

    /// Counts a message of the slice with this number whose answer never came.
    pub(crate) fn count_unanswered_message(&mut self, round: u32) {
        let round = round as usize;
        if self.open(round) && round + 1 == self.rows.len() {
            self.delay(UNANSWERED);
        }
    }

    fn delay(&mut self, delay: u64) {
        if self.delays.len() < MAX_DELAYS {
            self.delays.push(delay);
        }
    }

    /// Gives the round a row, which completes the rows before it. Returns whether it has one.
    fn open(&mut self, round: usize) -> bool {
        if round >= MAX_SLICES {
            return false;
        }
        if round >= self.rows.len() {
            self.close();
            while self.rows.len() <= round {
                let round = self.rows.len() as u32;
                self.rows.push(Slice { round, ..Slice::default() });
            }
            self.waited_began = self.run_delay.read();
            self.cpu_began = sys::thread_cpu_ns();
            self.parts[0] = self.parts[0].or_else(sys::thread_cpu_parts);
        }
        true
    }

    /// The number of the slice: the one nearest to the last.
    fn round(&self, slice: u8) -> usize {
        let last = self.rows.len().saturating_sub(1);
        let ahead = slice.wrapping_sub(last as u8);
        match ahead {
            0..128 => last + usize::from(ahead),
            _ => last.checked_sub(256 - usize::from(ahead)).unwrap_or(last + usize::from(ahead)),
        }
    }

    /// Completes the last row: its CPU time, waiting time and delays are known.
    pub(crate) fn close(&mut self) {
        let Some(row) = self.rows.last_mut() else { return };
        if let (Some(began), Some(now)) = (self.cpu_began.take(), sys::thread_cpu_ns()) {
            row.cpu_ns = Some(now.saturating_sub(began));
            self.parts[1] = sys::thread_cpu_parts();
        }
        if let (Some(began), Some(now)) = (self.waited_began.take(), self.run_delay.read()) {
            row.waited_ns = Some(now.saturating_sub(began));
        }
        let (sum, count) = std::mem::take(&mut self.variation);
        let jitter = (count > 0).then(|| sum as f64 / count as f64);
        // A message that arrives after the end marker changes neither.
        row.jitter_ns = row.jitter_ns.or(jitter);
        row.delay_ns = row.delay_ns.or_else(|| median(&mut self.delays));
        self.delays.clear();
    }

    /// User and kernel time of the counting thread since the first slice began, if the system divides it.
    pub(crate) fn cpu_parts(&self) -> Option<(Nanos, Nanos)> {
        let (began, now) = self.parts[0].zip(self.parts[1])?;
        Some((now.0.saturating_sub(began.0), now.1.saturating_sub(began.1)))
    }

    /// Adds another thread's slices of the same arm. Medians and jitter stay those of the thread that has them.
    pub(crate) fn join(&mut self, mut other: SliceCounter) {
        self.close();
        other.close();
        for (round, theirs) in other.rows.into_iter().enumerate() {
            let Some(row) = self.rows.get_mut(round) else {
                self.rows.push(theirs);
                continue;
            };
            if theirs.messages == 0 {
                continue;
            }
            if row.messages == 0 {
                *row = theirs;
                continue;
            }
            if theirs.first_ns < row.first_ns {
                (row.first_ns, row.at_first) = (theirs.first_ns, theirs.at_first);
            }
            row.messages += theirs.messages;
            row.last_ns = row.last_ns.max(theirs.last_ns);
            row.cpu_ns = row.cpu_ns.zip(theirs.cpu_ns).map(|(one, two)| one + two);
            row.waited_ns = row.waited_ns.zip(theirs.waited_ns).map(|(one, two)| one + two);
            row.delay_ns = row.delay_ns.or(theirs.delay_ns);
            row.jitter_ns = row.jitter_ns.or(theirs.jitter_ns);
        }
    }

    pub(crate) fn finish(mut self) -> Vec<Slice> {
        self.close();
        self.rows
    }
}

/// The median; `None` if half of the messages or more have no answer, and without any.
fn median(delays: &mut [u64]) -> Option<u64> {
    let middle = delays.len().checked_sub(1)? / 2;
    let unanswered = delays.iter().filter(|delay| **delay == UNANSWERED).count();
    (2 * unanswered < delays.len()).then(|| *delays.select_nth_unstable(middle).1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use stacklab_model::{ArmSchedule, Family, Transport};

    fn counter() -> SliceCounter {
        let spec = fixtures::spec(Family::Ipv4, Transport::Udp);
        SliceCounter::new(&TrialSpec { schedule: ArmSchedule::TokenPassing(None), flows: 2, ..spec }).unwrap()
    }

    #[test]
    fn an_unanswered_message_took_longer_than_any() {
        let mut counter = counter();
        let slices: [(&[u64], usize); 5] =
            [(&[30, 10, 20], 0), (&[30, 10, 20], 2), (&[30, 10, 20], 3), (&[], 1), (&[30, 10, 20, 40], 1)];
        for (round, (delays, unanswered)) in (0..).zip(slices) {
            for (place, delay) in delays.iter().enumerate() {
                counter.record(round as u8, 0, 1000 * u64::from(round) + place as u64, Some(*delay));
            }
            for _ in 0..unanswered {
                counter.count_unanswered_message(round);
            }
        }
        // Too late for a row of its own: nothing of it is known any more.
        counter.count_unanswered_message(2);
        let rows = counter.finish();
        let medians: Vec<_> = rows.iter().map(|row| row.delay_ns).collect();
        assert_eq!(medians, [Some(20), Some(30), None, None, Some(30)]);
        assert_eq!(rows.iter().map(|row| row.messages).collect::<Vec<_>>(), [3, 3, 3, 0, 4]);
        assert_eq!(rows[1].jitter_ns, Some(15.0));
        assert_eq!(median(&mut []), None);
        assert_eq!(median(&mut [7, 9]), Some(7));
        assert_eq!(median(&mut [7, UNANSWERED]), None);
    }

    #[test]
    fn jitter_is_of_consecutive_delays_within_a_flow() {
        let mut counter = counter();
        // The delays of the test in stats/flow.rs: 5.0 by flow, 483 in order of arrival.
        for (slice, flow, delay) in [(0, 0, 10), (0, 1, 500), (0, 0, 20), (0, 1, 500), (1, 0, 90), (1, 1, 7)]
        {
            counter.record(slice, flow, 1, Some(delay));
        }
        let jitter: Vec<_> = counter.finish().iter().map(|row| row.jitter_ns).collect();
        // The first delays of a slice follow none.
        assert_eq!(jitter, [Some(5.0), None]);
    }

    #[test]
    fn late_messages_count_for_their_own_slice() {
        let mut counter = counter();
        for (slice, arrived, delay) in
            [(0, 10, 5), (0, 20, 7), (0, 30, 9), (2, 100, 1), (0, 110, 90), (3, 200, 4)]
        {
            counter.record(slice, 0, arrived, Some(delay));
        }
        let rows = counter.finish();
        let counts: Vec<_> =
            rows.iter().map(|row| (row.round, row.messages, row.first_ns, row.last_ns)).collect();
        assert_eq!(counts, [(0, 4, 10, 110), (1, 0, 0, 0), (2, 1, 100, 100), (3, 1, 200, 200)]);
        assert_eq!((rows[0].delay_ns, rows[0].jitter_ns), (Some(7), Some(2.0)));
        assert_eq!((rows[2].delay_ns, rows[2].jitter_ns), (Some(1), None));
    }

    #[test]
    fn slice_numbers_go_on_beyond_256() {
        let mut counter = counter();
        for round in 0..1000_u32 {
            counter.record(round as u8, 0, u64::from(round), None);
        }
        // A late one of a slice before the last.
        counter.record(998_u32 as u8, 0, 2000, None);
        let rows = counter.finish();
        assert_eq!(rows.len(), 1000);
        assert!(rows.iter().all(|row| row.messages == 1 + u64::from(row.round == 998)));
    }

    #[test]
    fn slices_of_two_threads_are_added() {
        let mut one = counter();
        let mut other = counter();
        one.record(0, 0, 10, None);
        one.record(0, 0, 20, None);
        other.record(0, 0, 5, None);
        other.record(1, 0, 50, None);
        one.record(2, 0, 60, None);
        one.join(other);
        let rows = one.finish();
        assert_eq!((rows[0].messages, rows[0].at_first, rows[0].first_ns, rows[0].last_ns), (3, 1, 5, 20));
        // Of the second only one thread has messages: its CPU time is that of the slice.
        assert_eq!((rows.len(), rows[1].messages), (3, 1));
        assert_eq!(rows[1].cpu_ns.is_some(), sys::thread_cpu_ns().is_some());
    }
}
