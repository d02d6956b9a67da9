//! Random numbers that a seed repeats.

use stacklab_model::SplitMix64;

/// A small random generator, with its seed.
pub(crate) struct Random(pub SplitMix64);

impl Random {
    /// A number below the limit.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0.next_u64() % limit
    }

    /// One of several.
    pub(crate) fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}
