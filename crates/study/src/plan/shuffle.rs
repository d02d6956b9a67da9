//! A shuffle that gives the same result for the same seed, on every machine and with every library version.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;
use stacklab_model::SplitMix64;

/// A generator for one block of one campaign. Seed and block are mixed first (SplitMix64), because the streams of
/// neighbouring seeds would else resemble each other.
pub(crate) fn generator(seed: u64, block: u32) -> Pcg64 {
    let high = SplitMix64::mix(seed);
    let low = SplitMix64::mix(high ^ u64::from(block));
    Pcg64::new(u128::from(high) << 64 | u128::from(low), u128::from(low))
}

/// Fisher and Yates's shuffle: every order is equally likely.
pub(crate) fn shuffle<T>(items: &mut [T], generator: &mut Pcg64) {
    for last in (1..items.len()).rev() {
        items.swap(last, below(last as u64 + 1, generator) as usize);
    }
}

/// A number below the bound, all equally likely: draws that would favour small numbers are repeated.
fn below(bound: u64, generator: &mut Pcg64) -> u64 {
    let fair = u64::MAX - u64::MAX % bound;
    loop {
        let drawn = generator.next_u64();
        if drawn < fair {
            return drawn % bound;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Campaigns are resumed by their seed alone: if this order ever changes, no old campaign can be resumed.
    #[test]
    fn the_order_of_a_seed_never_changes() {
        let mut items: Vec<u32> = (0..12).collect();
        shuffle(&mut items, &mut generator(42, 0));
        assert_eq!(items, [2, 9, 5, 10, 11, 7, 3, 1, 6, 4, 0, 8]);
    }

    #[test]
    fn every_order_of_three_is_about_equally_frequent() {
        let mut seen = std::collections::BTreeMap::new();
        for block in 0..6000 {
            let mut items = [0, 1, 2];
            shuffle(&mut items, &mut generator(7, block));
            *seen.entry(items).or_insert(0) += 1;
        }
        assert_eq!(seen.len(), 6);
        // Six standard deviations of a binomial with n = 6000 and p = 1/6.
        assert!(seen.values().all(|count| (827..=1173).contains(count)), "{seen:?}");
    }
}
