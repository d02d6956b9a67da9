//! The interval series of a run in bounded memory, and data behind a lost segment: it has arrived, and TCP delivers it
//! when the gap is filled.

use crate::sys::{Nanos, RECEIVE_TICK};
use stacklab_model::IntervalRow;
use std::collections::VecDeque;

/// Maximum number of rows. When it is reached, neighbouring rows are merged and rows become twice as long.
const MAX_ROWS: usize = 4096;

#[derive(Clone, Copy, Default)]
struct IntervalSample {
    messages: u64,
    bytes: u64,
    /// Number of messages with a known delay; the sum and the minimum of these delays.
    timed: u64,
    delay_sum_ns: u128,
    delay_min_ns: u64,
}

impl IntervalSample {
    fn join(&mut self, other: IntervalSample) {
        self.delay_min_ns = match (self.timed, other.timed) {
            (_, 0) => self.delay_min_ns,
            (0, _) => other.delay_min_ns,
            _ => self.delay_min_ns.min(other.delay_min_ns),
        };
        self.messages += other.messages;
        self.bytes += other.bytes;
        self.timed += other.timed;
        self.delay_sum_ns += other.delay_sum_ns;
    }
}

pub(crate) struct Series {
    interval_ns: u64,
    rows: Vec<IntervalSample>,
    /// The row of the last message, and where it begins: the next one is mostly of the same row, known without a
    /// division.
    row: usize,
    row_start_ns: u64,
}

impl Series {
    pub(crate) fn new(interval_ns: u64) -> Self {
        Series {
            interval_ns: interval_ns.max(1),
            rows: Vec::with_capacity(MAX_ROWS),
            row: 0,
            row_start_ns: 0,
        }
    }

    /// Counts a message by its arrival time since the first, and those of its bytes that were not counted before.
    pub(crate) fn record(&mut self, since_first_ns: u64, bytes: u64, delay_ns: Option<u64>) {
        self.add(since_first_ns, 1, bytes, delay_ns);
    }

    /// Counts bytes of a message that has not arrived whole.
    pub(crate) fn record_bytes(&mut self, since_first_ns: u64, bytes: u64) {
        self.add(since_first_ns, 0, bytes, None);
    }

    /// Counts bytes that arrived evenly between two times.
    pub(crate) fn record_evenly(&mut self, from_ns: u64, to_ns: u64, bytes: u64) {
        // First the last row: it decides how long rows are.
        self.record_bytes(to_ns, 0);
        let mut at = from_ns;
        let mut left = bytes;
        while at < to_ns {
            let end = ((at / self.interval_ns + 1) * self.interval_ns).min(to_ns);
            let share = u128::from(bytes) * u128::from(end - at) / u128::from(to_ns - from_ns);
            self.record_bytes(at, share as u64);
            (at, left) = (end, left - share as u64);
        }
        self.record_bytes(to_ns, left);
    }

    fn add(&mut self, since_first_ns: u64, messages: u64, bytes: u64, delay_ns: Option<u64>) {
        let is_same_row = since_first_ns.wrapping_sub(self.row_start_ns) < self.interval_ns;
        if !is_same_row || self.row >= self.rows.len() {
            self.enter(since_first_ns);
        }
        let timed = u64::from(delay_ns.is_some());
        let delay_ns = delay_ns.unwrap_or(0);
        let message =
            IntervalSample { messages, bytes, timed, delay_sum_ns: delay_ns.into(), delay_min_ns: delay_ns };
        self.rows[self.row].join(message);
    }

    fn enter(&mut self, since_first_ns: u64) {
        while since_first_ns / self.interval_ns >= MAX_ROWS as u64 {
            self.double();
        }
        self.row = (since_first_ns / self.interval_ns) as usize;
        self.row_start_ns = self.row as u64 * self.interval_ns;
        if self.row >= self.rows.len() {
            self.rows.resize(self.row + 1, IntervalSample::default());
        }
    }

    fn double(&mut self) {
        self.interval_ns *= 2;
        for place in 0..self.rows.len() {
            let row = std::mem::take(&mut self.rows[place]);
            self.rows[place / 2].join(row);
        }
        self.rows.truncate(self.rows.len().div_ceil(2));
        (self.row, self.row_start_ns) = (usize::MAX, 0);
    }

    pub(crate) fn join(&mut self, mut other: Series) {
        while self.interval_ns < other.interval_ns {
            self.double();
        }
        while other.interval_ns < self.interval_ns {
            other.double();
        }
        if self.rows.len() < other.rows.len() {
            self.rows.resize(other.rows.len(), IntervalSample::default());
        }
        for (row, more) in self.rows.iter_mut().zip(&other.rows) {
            row.join(*more);
        }
    }

    /// The minimum delay of each row that has any, with the row's mid time.
    pub(crate) fn minima(&self) -> Vec<(u64, u64)> {
        let mut minima = Vec::new();
        for (place, row) in self.rows.iter().enumerate() {
            if row.timed > 0 {
                let middle_ns = place as u64 * self.interval_ns + self.interval_ns / 2;
                minima.push((middle_ns, row.delay_min_ns));
            }
        }
        minima
    }

    pub(crate) fn finish(&self) -> Vec<IntervalRow> {
        let rows = self.rows.iter().enumerate().map(|(place, row)| IntervalRow {
            start_ns: place as u64 * self.interval_ns,
            messages: row.messages,
            bytes: row.bytes,
            delay_mean_ns: (row.timed > 0).then(|| row.delay_sum_ns as f64 / row.timed as f64),
        });
        rows.collect()
    }
}

/// Largest number of arrivals kept; further ones extend the last.
const MAX_ARRIVALS: usize = 1024;

const TICK_NS: Nanos = RECEIVE_TICK.as_nanos() as Nanos;

/// Bytes that arrived within an interval of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct HeldBytes {
    from: Nanos,
    to: Nanos,
    bytes: u64,
}

/// The arrivals that the kernel holds back, oldest first. Copies of segments count too: few bytes are left over.
pub(crate) struct HeldBack(VecDeque<HeldBytes>);

impl HeldBack {
    pub(crate) fn new() -> Self {
        HeldBack(VecDeque::with_capacity(MAX_ARRIVALS))
    }

    /// Forgets what arrived before the measured time.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Bytes that arrived in the receive tick that ends now.
    pub(crate) fn arrive(&mut self, bytes: u64, now: Nanos) {
        let is_full = self.0.len() == MAX_ARRIVALS;
        match self.0.back_mut() {
            Some(last) if is_full => {
                last.to = now;
                last.bytes += bytes;
            }
            _ => self.0.push_back(HeldBytes { from: now.saturating_sub(TICK_NS), to: now, bytes }),
        }
    }

    /// Counts bytes delivered now in the rows in which they arrived, if they were held back. Returns the others.
    pub(crate) fn record(&mut self, series: &mut Series, first_ns: Nanos, mut bytes: u64) -> u64 {
        while bytes > 0
            && let Some(held) = self.deliver(bytes)
        {
            let [from, to] = [held.from, held.to].map(|at| at.saturating_sub(first_ns));
            series.record_evenly(from, to, held.bytes);
            bytes -= held.bytes;
        }
        bytes
    }

    /// The oldest arrival held back, of at most as many bytes as are delivered now.
    fn deliver(&mut self, bytes: u64) -> Option<HeldBytes> {
        let held = self.0.front_mut()?;
        let delivered = HeldBytes { bytes: held.bytes.min(bytes), ..*held };
        held.bytes -= delivered.bytes;
        if held.bytes == 0 {
            self.0.pop_front();
        }
        Some(delivered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_fall_into_their_intervals() {
        let mut series = Series::new(10);
        for (at, delay) in [(0, 4), (9, 6), (25, 1)] {
            series.record(at, 100, Some(delay));
        }
        let rows = series.finish();
        assert_eq!(rows.iter().map(|row| row.messages).collect::<Vec<_>>(), [2, 0, 1]);
        assert_eq!(rows[0].delay_mean_ns, Some(5.0));
        assert_eq!(rows[1].delay_mean_ns, None);
        assert_eq!(rows[2].start_ns, 20);
        assert_eq!(series.minima(), [(5, 4), (25, 1)]);
    }

    #[test]
    fn two_series_add_up_whatever_their_rows() {
        let mut short = Series::new(1);
        let mut long = Series::new(1);
        short.record(3, 10, None);
        for at in 0..=MAX_ROWS as u64 {
            long.record(at, 1, Some(1));
        }
        short.join(long);
        let rows = short.finish();
        assert_eq!(rows[1].start_ns, 2);
        assert_eq!((rows[1].messages, rows[1].bytes), (3, 12));
        assert_eq!(rows.iter().map(|row| row.messages).sum::<u64>(), MAX_ROWS as u64 + 2);
    }

    #[test]
    fn bytes_of_an_interval_are_spread_over_its_rows() {
        let mut series = Series::new(10);
        series.record_evenly(5, 35, 3_001);
        let bytes: Vec<u64> = series.finish().iter().map(|row| row.bytes).collect();
        assert_eq!(bytes, [500, 1_000, 1_000, 501]);
        series.record_evenly(35, 35, 7);
        assert_eq!(series.finish()[3].bytes, 508);
    }

    #[test]
    fn a_long_run_has_longer_rows_instead_of_more() {
        let mut series = Series::new(1);
        for at in 0..100_000 {
            series.record(at, 2, Some(0));
        }
        let rows = series.finish();
        assert!(rows.len() <= MAX_ROWS);
        assert_eq!(rows.iter().map(|row| row.messages).sum::<u64>(), 100_000);
        assert_eq!(rows.iter().map(|row| row.bytes).sum::<u64>(), 200_000);
        assert!(rows[..rows.len() - 1].iter().all(|row| row.messages == rows[1].start_ns));
    }

    const MS: Nanos = 1_000_000;

    #[test]
    fn delivered_bytes_have_the_time_of_their_arrival() {
        let mut held = HeldBack::new();
        assert_eq!(held.deliver(10), None);
        held.arrive(100, 20 * MS);
        held.arrive(50, 40 * MS);
        let first = HeldBytes { from: 0, to: 20 * MS, bytes: 70 };
        assert_eq!(held.deliver(70), Some(first));
        assert_eq!(held.deliver(70), Some(HeldBytes { bytes: 30, ..first }));
        assert_eq!(held.deliver(70), Some(HeldBytes { from: 20 * MS, to: 40 * MS, bytes: 50 }));
        assert_eq!(held.deliver(70), None);
    }

    #[test]
    fn memory_is_bounded() {
        let mut held = HeldBack::new();
        for tick in 1..=2 * MAX_ARRIVALS as u64 {
            held.arrive(1, tick * TICK_NS);
        }
        assert_eq!(held.0.len(), MAX_ARRIVALS);
        let bytes: u64 = held.0.iter().map(|held| held.bytes).sum();
        assert_eq!(bytes, 2 * MAX_ARRIVALS as u64);
    }
}
