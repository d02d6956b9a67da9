//! Random numbers that a seed repeats, in every version of every library.

/// The increment of the state: 2^64 divided by the golden ratio.
const INCREMENT: u64 = 0x9e37_79b9_7f4a_7c15;

/// Steele, Lea and Flood's generator SplitMix64 (2014), with its seed. Records depend on it: the order of trials
/// follows from a campaign's seed.
pub struct SplitMix64(pub u64);

impl SplitMix64 {
    /// The next number, 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let drawn = SplitMix64::mix(self.0);
        self.0 = self.0.wrapping_add(INCREMENT);
        drawn
    }

    /// The first number of a seed. It is another one for each seed.
    pub fn mix(seed: u64) -> u64 {
        let mixed = seed.wrapping_add(INCREMENT);
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_authors_c_code() {
        for (seed, expected) in [
            (1_234_567, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]),
            (0, [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]),
        ] {
            let mut generator = SplitMix64(seed);
            assert_eq!([generator.next_u64(), generator.next_u64()], expected);
        }
    }
}
