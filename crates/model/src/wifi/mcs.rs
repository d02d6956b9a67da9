//! Modulation and coding schemes of HT frames.

use crate::wifi::rates::{LegacyRate, Width};

/// A modulation and coding scheme with equal modulation, 0 to 15: one stream below 8, two from there on (section 19.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mcs(u8);

impl Mcs {
    /// The scheme with an index.
    ///
    /// # Errors
    /// There is none with one or two streams.
    pub fn new(index: u8) -> Result<Self, String> {
        match index {
            0..=15 => Ok(Mcs(index)),
            // A duplicate of 6 Mbit/s in both halves of 40 MHz.
            32 => Err("MCS 32 exists at 40 MHz only and is not supported: expected 0 to 15".to_owned()),
            _ => Err(format!("there is no MCS {index}: expected 0 to 15")),
        }
    }

    /// Its index.
    pub fn index(self) -> u8 {
        self.0
    }

    /// Spatial streams.
    pub fn streams(self) -> u64 {
        u64::from(self.0 / 8 + 1)
    }

    /// Coded bits of a subcarrier and symbol, and the code rate as a fraction.
    pub fn modulation(self) -> (u64, u64, u64) {
        [(1, 1, 2), (2, 1, 2), (2, 3, 4), (4, 1, 2), (4, 3, 4), (6, 2, 3), (6, 3, 4), (6, 5, 6)]
            [usize::from(self.0 % 8)]
    }

    /// N_DBPS: data bits of a symbol.
    pub fn bits_per_symbol(self, width: Width) -> u64 {
        let (bits, numerator, denominator) = self.modulation();
        width.data_subcarriers() * self.streams() * bits * numerator / denominator
    }

    /// The non-HT reference rate, which bounds the rate of the response (section 10.7.10, table 10-7).
    pub(super) fn reference_rate(self) -> LegacyRate {
        use LegacyRate::*;
        [Ofdm6, Ofdm12, Ofdm18, Ofdm24, Ofdm36, Ofdm48, Ofdm54, Ofdm54][usize::from(self.0 % 8)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wifi::rates::Guard;
    use LegacyRate::*;

    #[test]
    fn data_rates_are_those_of_the_standards_tables() {
        // Mbit/s at 20 MHz long, 20 MHz short, 40 MHz long, 40 MHz short (sections 19.5.2 to 19.5.5).
        let table = [
            (0, [6.5, 7.2, 13.5, 15.0]),
            (1, [13.0, 14.4, 27.0, 30.0]),
            (2, [19.5, 21.7, 40.5, 45.0]),
            (3, [26.0, 28.9, 54.0, 60.0]),
            (4, [39.0, 43.3, 81.0, 90.0]),
            (5, [52.0, 57.8, 108.0, 120.0]),
            (6, [58.5, 65.0, 121.5, 135.0]),
            (7, [65.0, 72.2, 135.0, 150.0]),
            (8, [13.0, 14.4, 27.0, 30.0]),
            (11, [52.0, 57.8, 108.0, 120.0]),
            (15, [130.0, 144.4, 270.0, 300.0]),
        ];
        for (mcs, row) in table {
            let columns = [Width::Mhz20, Width::Mhz40].into_iter().flat_map(|width| {
                [Guard::Long, Guard::Short].map(|guard| {
                    let bits = Mcs::new(mcs).unwrap().bits_per_symbol(width) as f64;
                    (bits * 1e4 / guard.symbol_ns() as f64).round() / 10.0
                })
            });
            assert_eq!(columns.collect::<Vec<_>>(), row, "MCS {mcs}");
        }
    }

    #[test]
    fn only_schemes_of_one_or_two_streams_exist() {
        assert_eq!(Mcs::new(16), Err("there is no MCS 16: expected 0 to 15".to_owned()));
        assert!(Mcs::new(32).unwrap_err().starts_with("MCS 32 exists at 40 MHz only"));
        assert_eq!(Mcs::new(7).unwrap().streams(), 1);
        assert_eq!(Mcs::new(8).unwrap().streams(), 2);
    }

    #[test]
    fn a_response_has_the_highest_basic_rate_not_above_the_frame() {
        let basic = [Ofdm6, Ofdm12, Ofdm24];
        let of = |mcs, basic: &[_]| Mcs::new(mcs).unwrap().reference_rate().response(basic);
        assert_eq!(of(15, &basic), Ofdm24);
        assert_eq!(of(8, &basic), Ofdm6);
        assert_eq!(of(9, &basic), Ofdm12);
        // Basic rates of another modulation, or above the frame, do not serve.
        assert_eq!(of(15, &[Dsss1, Cck11]), Ofdm24);
        assert_eq!(of(1, &[Ofdm54]), Ofdm12);
        assert_eq!(Dsss1.response(&basic), Dsss1);
        assert_eq!(Cck11.response(&[Dsss1, Dsss2, Ofdm6]), Dsss2);
    }
}
