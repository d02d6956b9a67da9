//! Statistics of a flow in bounded memory: delays and jitter; loss, duplicates and reordering.

use hdrhistogram::Histogram;
use stacklab_model::{Buckets, Delays};

/// Maximum recorded delay, nanoseconds; longer delays count as this long.
pub const MAX_DELAY_NS: u64 = 100_000_000_000;

pub(crate) struct DelayRecorder {
    histogram: Histogram<u64>,
    sum_ns: u128,
    variations: u64,
    variation_sum_ns: u128,
}

/// Jitter state of one flow: its last delay, and its smoothed jitter so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Variation {
    previous_ns: Option<u64>,
    rfc3550_ns: f64,
}

impl DelayRecorder {
    pub(crate) fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, MAX_DELAY_NS, 3).expect("constant bounds are valid");
        DelayRecorder { histogram, sum_ns: 0, variations: 0, variation_sum_ns: 0 }
    }

    /// Records the delay of the next arrival of a flow.
    pub(crate) fn record(&mut self, delay_ns: u64, flow: &mut Variation) {
        self.histogram.saturating_record(delay_ns);
        self.sum_ns += u128::from(delay_ns);
        if let Some(previous) = flow.previous_ns {
            let variation = previous.abs_diff(delay_ns);
            self.variations += 1;
            self.variation_sum_ns += u128::from(variation);
            flow.rfc3550_ns += (variation as f64 - flow.rfc3550_ns) / 16.0;
        }
        flow.previous_ns = Some(delay_ns);
    }

    pub(crate) fn join(&mut self, other: &DelayRecorder) {
        self.histogram.add(&other.histogram).expect("both have the same bounds");
        self.sum_ns += other.sum_ns;
        self.variations += other.variations;
        self.variation_sum_ns += other.variation_sum_ns;
    }

    /// The recorded delays of these flows; `None` without any.
    pub(crate) fn finish<'a>(self, flows: impl Iterator<Item = &'a Variation>) -> Option<Delays> {
        let count = self.histogram.len();
        if count == 0 {
            return None;
        }
        let buckets = self
            .histogram
            .iter_recorded()
            .map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()));
        let mut sum = 0.0;
        let mut counted = 0;
        for flow in flows.filter(|flow| flow.previous_ns.is_some()) {
            sum += flow.rfc3550_ns;
            counted += 1;
        }
        let varied = self.variations > 0;
        Some(Delays {
            buckets: Buckets(buckets.collect()),
            mean_ns: self.sum_ns as f64 / count as f64,
            jitter_ns: varied.then(|| self.variation_sum_ns as f64 / self.variations as f64),
            jitter_rfc3550_ns: varied.then(|| sum / f64::from(counted)),
        })
    }
}

/// Delays of one flow.
pub(crate) struct FlowDelays {
    pub all: DelayRecorder,
    flow: Variation,
}

impl FlowDelays {
    pub(crate) fn new() -> Self {
        FlowDelays { all: DelayRecorder::new(), flow: Variation::default() }
    }

    pub(crate) fn record(&mut self, delay_ns: u64) {
        self.all.record(delay_ns, &mut self.flow);
    }

    /// `None` without any.
    pub(crate) fn finish(self) -> Option<Delays> {
        self.all.finish(std::iter::once(&self.flow))
    }
}

/// Delays of one flow, in the order of arrival; `None` without any.
pub fn delays(of: impl Iterator<Item = u64>) -> Option<Delays> {
    let mut delays = FlowDelays::new();
    of.for_each(|delay| delays.record(delay));
    delays.finish()
}

/// Window of sequence numbers below the highest that are still distinguished, in one flow. 2^20 bits take 128 KiB. At
/// a million messages per second, a message outside the window is a second late.
const WINDOW: u64 = 1 << 20;
/// Minimum window with many flows: each flow then sends less.
const MIN_WINDOW: u64 = 1 << 12;

/// Classification of an arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// The first copy, in order.
    First,
    /// The first copy, its sequence number below the next expected one: reordered (RFC 4737).
    Reordered,
    /// A further copy.
    Duplicate,
    /// Too old to distinguish a first copy from a further one.
    BeyondWindow,
}

/// A sliding bitmap of arrivals.
pub struct SequenceWindow {
    /// The next expected sequence number: the highest seen plus one.
    next: u64,
    bits: Box<[u64]>,
}

impl SequenceWindow {
    /// Nothing has arrived; 0 is expected. The trial has this many flows, each with its own window.
    pub fn new(flows: u32) -> Self {
        let window = (WINDOW / u64::from(flows.max(1)).next_power_of_two()).max(MIN_WINDOW);
        SequenceWindow { next: 0, bits: vec![0; (window / 64) as usize].into_boxed_slice() }
    }

    fn window(&self) -> u64 {
        self.bits.len() as u64 * 64
    }

    /// Records and classifies an arrival.
    pub fn arrive(&mut self, sequence: u64) -> Arrival {
        // No trial sends this many: nothing follows the last number.
        if sequence == u64::MAX {
            return Arrival::BeyondWindow;
        }
        if sequence >= self.next {
            self.forget(self.next, sequence);
            self.next = sequence + 1;
            self.set(sequence);
            return Arrival::First;
        }
        if self.next - sequence > self.window() {
            return Arrival::BeyondWindow;
        }
        if self.set(sequence) { Arrival::Duplicate } else { Arrival::Reordered }
    }

    /// The highest number that has not arrived of those below `sent`, as far as the window goes back.
    pub fn last_missing(&self, sent: u64) -> Option<u64> {
        if sent > self.next {
            return Some(sent - 1);
        }
        let oldest = self.next.saturating_sub(self.window());
        (oldest..self.next).rev().find(|sequence| !self.has(*sequence))
    }

    fn has(&self, sequence: u64) -> bool {
        let place = sequence % self.window();
        self.bits[(place / 64) as usize] & (1 << (place % 64)) != 0
    }

    /// Sets a bit and returns whether it was set.
    fn set(&mut self, sequence: u64) -> bool {
        let place = sequence % self.window();
        let word = &mut self.bits[(place / 64) as usize];
        let mask = 1 << (place % 64);
        let was = *word & mask != 0;
        *word |= mask;
        was
    }

    /// Clears the bits of the skipped numbers `from..to`, which older numbers used before, and the bit of `to`.
    fn forget(&mut self, from: u64, to: u64) {
        if to - from >= self.window() {
            self.bits.fill(0);
            return;
        }
        let mut sequence = from;
        while sequence <= to {
            // As many as one word has: a gap may be as long as the window.
            let place = sequence % self.window();
            let count = (64 - place % 64).min(to - sequence + 1);
            self.bits[(place / 64) as usize] &= !(u64::MAX >> (64 - count) << (place % 64));
            sequence += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn last_missing_is_what_did_not_come_late() {
        let mut window = SequenceWindow::new(1);
        assert_eq!((window.last_missing(0), window.last_missing(5)), (None, Some(4)));
        for sequence in [0, 1, 4, 5] {
            window.arrive(sequence);
        }
        assert_eq!((window.last_missing(6), window.last_missing(7)), (Some(3), Some(6)));
        window.arrive(3);
        assert_eq!(window.last_missing(6), Some(2));
        window.arrive(2);
        assert_eq!(window.last_missing(6), None);
        // Of what is older than the window, nothing is known.
        for sequence in 7..=8 + WINDOW {
            window.arrive(sequence);
        }
        assert_eq!(window.last_missing(9 + WINDOW), None);
    }

    fn record_delays(delays: &[u64]) -> Option<Delays> {
        let mut recorder = DelayRecorder::new();
        let mut flow = Variation::default();
        delays.iter().for_each(|delay| recorder.record(*delay, &mut flow));
        recorder.finish([&flow].into_iter())
    }

    #[test]
    fn jitter_is_mean_absolute_variation_as_in_rfc_5481() {
        // Delays 20 10 20 25 20 (lossless): variations 10 10 5 5.
        let delays = record_delays(&[20, 10, 20, 25, 20]).unwrap();
        assert_eq!(delays.jitter_ns, Some(7.5));
        assert_eq!(delays.mean_ns, 19.0);
        assert_eq!(delays.buckets.0, [(10, 1), (20, 3), (25, 1)]);
        let minimum = delays.buckets.percentile(0.0).unwrap();
        assert_eq!(delays.buckets.percentile(1.0).unwrap() - minimum, 15);
    }

    #[test]
    fn rfc_3550_jitter_moves_by_a_sixteenth() {
        let delays = record_delays(&[0, 160, 160]).unwrap();
        assert_eq!(delays.jitter_rfc3550_ns, Some(10.0 - 10.0 / 16.0));
    }

    #[test]
    fn one_delay_has_no_jitter_and_none_has_no_delays() {
        assert_eq!(record_delays(&[5]).unwrap().jitter_ns, None);
        assert_eq!(record_delays(&[]), None);
    }

    #[test]
    fn jitter_is_of_consecutive_delays_within_a_flow() {
        let mut flows = [Variation::default(); 2];
        let mut threads = [DelayRecorder::new(), DelayRecorder::new()];
        for (flow, delay) in [(0, 10), (1, 500), (0, 20), (1, 500)] {
            threads[flow].record(delay, &mut flows[flow]);
        }
        let [mut all, other] = threads;
        all.join(&other);
        let delays = all.finish(flows.iter()).unwrap();
        assert_eq!(delays.jitter_ns, Some(5.0));
        assert_eq!((delays.buckets.count(), delays.mean_ns), (4, 257.5));
    }

    #[test]
    fn values_keep_three_significant_digits() {
        let delays = record_delays(&[1_234_567]).unwrap();
        let value = delays.buckets.0[0].0;
        assert!(value.abs_diff(1_234_567) <= 1_235, "{value}");
    }

    #[test]
    fn reordering_agrees_with_the_example_of_rfc_4737() {
        let mut window = SequenceWindow::new(1);
        let reordered: Vec<u64> = [1, 2, 3, 7, 8, 9, 4, 5, 6]
            .into_iter()
            .filter(|sequence| window.arrive(*sequence) == Arrival::Reordered)
            .collect();
        assert_eq!(reordered, [4, 5, 6]);
    }

    #[test]
    fn what_the_window_has_passed_is_not_guessed_at() {
        let mut window = SequenceWindow::new(1);
        window.arrive(0);
        assert_eq!(window.arrive(WINDOW), Arrival::First);
        assert_eq!(window.arrive(0), Arrival::BeyondWindow);
        assert_eq!(window.arrive(1), Arrival::Reordered);
        assert_eq!(window.arrive(5 * WINDOW), Arrival::First);
        assert_eq!(window.arrive(4 * WINDOW + 1), Arrival::Reordered);
    }

    #[test]
    fn the_last_number_of_all_ends_nothing() {
        let mut window = SequenceWindow::new(1);
        assert_eq!(window.arrive(u64::MAX), Arrival::BeyondWindow);
        assert_eq!(window.arrive(u64::MAX - 1), Arrival::First);
        assert_eq!(window.arrive(0), Arrival::BeyondWindow);
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_set_of_everything_seen(
            arrivals in prop_oneof![
                prop::collection::vec(0u64..300, 0..600),
                prop::collection::vec(0..3 * MIN_WINDOW, 0..100),
            ],
        ) {
            // Many flows: the least window.
            let mut window = SequenceWindow::new(10_000);
            let mut seen = HashSet::new();
            let mut next = 0;
            for sequence in arrivals {
                let expected = match (seen.insert(sequence), sequence < next) {
                    _ if sequence + MIN_WINDOW < next => Arrival::BeyondWindow,
                    (false, _) => Arrival::Duplicate,
                    (true, true) => Arrival::Reordered,
                    (true, false) => Arrival::First,
                };
                next = next.max(sequence + 1);
                prop_assert_eq!(window.arrive(sequence), expected);
            }
        }
    }
}
