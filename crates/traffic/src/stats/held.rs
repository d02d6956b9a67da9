//! Data behind a lost segment: it has arrived, and TCP delivers it when the gap is filled.

use crate::stats::series::Series;
use crate::sys::{Nanos, RECEIVE_TICK};
use std::collections::VecDeque;

/// Largest number of arrivals kept; further ones extend the last.
const MOST_ARRIVALS: usize = 1024;

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
        HeldBack(VecDeque::with_capacity(MOST_ARRIVALS))
    }

    /// Forgets what arrived before the measured time.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Bytes that arrived in the receive tick that ends now.
    pub(crate) fn arrive(&mut self, bytes: u64, now: Nanos) {
        let is_full = self.0.len() == MOST_ARRIVALS;
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
        for tick in 1..=2 * MOST_ARRIVALS as u64 {
            held.arrive(1, tick * TICK_NS);
        }
        assert_eq!(held.0.len(), MOST_ARRIVALS);
        let bytes: u64 = held.0.iter().map(|held| held.bytes).sum();
        assert_eq!(bytes, 2 * MOST_ARRIVALS as u64);
    }
}
