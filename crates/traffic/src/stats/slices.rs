//! The slices of an arm of an interleaved trial, counted as messages arrive.

use crate::sys::{self, Nanos, RunDelay};
use stacklab_model::{Slice, TrialSpec};

/// Maximum number of slices of an arm.
pub(crate) const MOST_SLICES: usize = 100_000;
/// Delays of which a slice's median is computed; further delays of the slice are not in it.
const MOST_DELAYS: usize = 8192;

/// Counts arrivals by slice.
pub(crate) struct SliceCounter {
    rows: Vec<Slice>,
    /// Delays of the last row, in order of arrival.
    delays: Vec<u64>,
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
        spec.slicing.map(|_| SliceCounter {
            rows: Vec::with_capacity(1024),
            delays: Vec::with_capacity(MOST_DELAYS),
            cpu_began: None,
            run_delay: RunDelay::of_this_thread(),
            waited_began: None,
            parts: [None; 2],
        })
    }

    /// Counts a message of the slice with this number modulo 256, and its delay if known. Messages that are late
    /// count for their own slice.
    pub(crate) fn record(&mut self, slice: u8, arrived: Nanos, delay_ns: Option<u64>) {
        let round = self.round(slice);
        if round >= MOST_SLICES {
            return;
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
        let is_last = round + 1 == self.rows.len();
        let row = &mut self.rows[round];
        if row.messages == 0 {
            (row.first_ns, row.last_ns) = (arrived, arrived);
        }
        row.messages += 1;
        row.at_first += u64::from(arrived == row.first_ns);
        row.last_ns = row.last_ns.max(arrived);
        if let Some(delay) = delay_ns.filter(|_| is_last && self.delays.len() < MOST_DELAYS) {
            self.delays.push(delay);
        }
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
        let count = self.delays.len();
        if count > 1 {
            let sum: f64 = self.delays.windows(2).map(|pair| pair[0].abs_diff(pair[1]) as f64).sum();
            row.jitter_ns = Some(sum / (count - 1) as f64);
        }
        if count > 0 {
            row.delay_ns = Some(*self.delays.select_nth_unstable((count - 1) / 2).1);
            self.delays.clear();
        }
    }

    /// User and kernel time of the counting thread since the first slice began, if the system divides it.
    pub(crate) fn cpu_parts(&self) -> Option<(Nanos, Nanos)> {
        let (began, now) = self.parts[0].zip(self.parts[1])?;
        Some((now.0.saturating_sub(began.0), now.1.saturating_sub(began.1)))
    }

    /// Adds another thread's slices of the same arm. Medians stay those of the thread that has them.
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

    /// All slices, in order.
    pub(crate) fn finish(mut self) -> Vec<Slice> {
        self.close();
        self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::fixtures;
    use stacklab_model::{Family, Slicing, Transport};

    fn counter() -> SliceCounter {
        let spec = fixtures::spec(Family::Ipv4, Transport::Udp);
        SliceCounter::new(&TrialSpec { slicing: Some(Slicing::default()), ..spec }).unwrap()
    }

    #[test]
    fn late_messages_count_for_their_own_slice_and_missing_slices_are_empty() {
        let mut counter = counter();
        for (slice, arrived, delay) in
            [(0, 10, 5), (0, 20, 7), (0, 30, 9), (2, 100, 1), (0, 110, 90), (3, 200, 4)]
        {
            counter.record(slice, arrived, Some(delay));
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
            counter.record(round as u8, u64::from(round), None);
        }
        // A late one of a slice before the last.
        counter.record(998_u32 as u8, 2000, None);
        let rows = counter.finish();
        assert_eq!(rows.len(), 1000);
        assert!(rows.iter().all(|row| row.messages == 1 + u64::from(row.round == 998)));
    }

    #[test]
    fn slices_of_two_threads_are_added() {
        let (mut one, mut other) = (counter(), counter());
        one.record(0, 10, None);
        one.record(0, 20, None);
        other.record(0, 5, None);
        other.record(1, 50, None);
        one.record(2, 60, None);
        one.join(other);
        let rows = one.finish();
        assert_eq!((rows[0].messages, rows[0].at_first, rows[0].first_ns, rows[0].last_ns), (3, 1, 5, 20));
        // Of the second only one thread has messages: its CPU time is that of the slice.
        assert_eq!((rows.len(), rows[1].messages), (3, 1));
        assert_eq!(rows[1].cpu_ns.is_some(), sys::thread_cpu_ns().is_some());
    }
}
