//! Sequence numbers: loss, duplicates and reordering in bounded memory.

/// Window of sequence numbers below the highest that are still distinguished, in one flow. 2^20 bits take 128 KiB. At
/// a million messages per second, a message outside the window is a second late.
const WINDOW: u64 = 1 << 20;
/// Minimum window with many flows: each flow then sends less.
const LEAST_WINDOW: u64 = 1 << 12;

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
        let window = (WINDOW / u64::from(flows.max(1)).next_power_of_two()).max(LEAST_WINDOW);
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
                prop::collection::vec(0..3 * LEAST_WINDOW, 0..100),
            ],
        ) {
            // Many flows: the least window.
            let mut window = SequenceWindow::new(10_000);
            let mut seen = HashSet::new();
            let mut next = 0;
            for sequence in arrivals {
                let expected = match (seen.insert(sequence), sequence < next) {
                    _ if sequence + LEAST_WINDOW < next => Arrival::BeyondWindow,
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
