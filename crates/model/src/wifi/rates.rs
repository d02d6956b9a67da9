//! Bands, widths, guard intervals, legacy rates, and the modulation and coding schemes of HT frames.

use crate::names::named;

pub(super) const US: u64 = 1000;

named! {
    pub enum Band("band") {
        /// 2.4 GHz: ERP, with 802.11b rates.
        Ghz2 = "2.4",
        /// 5 GHz: OFDM only.
        Ghz5 = "5",
    }
}

impl Band {
    /// aSlotTime. In 2.4 GHz the short slot, which a BSS without 802.11b stations uses (section 18.5.4).
    pub fn slot_ns(self) -> u64 {
        9 * US
    }

    /// aSIFSTime (sections 17.4.4, 18.5.4).
    pub fn sifs_ns(self) -> u64 {
        match self {
            Band::Ghz2 => 10 * US,
            Band::Ghz5 => 16 * US,
        }
    }

    /// The silence after each OFDM frame of the 2.4 GHz band (signal extension, section 18.3.2.4, 19.3.2).
    pub(super) fn signal_extension_ns(self) -> u64 {
        match self {
            Band::Ghz2 => 6 * US,
            Band::Ghz5 => 0,
        }
    }
}

named! {
    pub enum Width("width") {
        /// 20 MHz: 52 data subcarriers.
        Mhz20 = "20",
        /// 40 MHz: 108 data subcarriers.
        Mhz40 = "40",
    }
}

impl Width {
    pub fn mhz(self) -> u32 {
        match self {
            Width::Mhz20 => 20,
            Width::Mhz40 => 40,
        }
    }

    pub(super) fn data_subcarriers(self) -> u64 {
        match self {
            Width::Mhz20 => 52,
            Width::Mhz40 => 108,
        }
    }
}

named! {
    pub enum Guard("guard interval") {
        /// 800 ns: a symbol takes 4 us.
        Long = "long",
        /// 400 ns: a symbol takes 3.6 us.
        Short = "short",
    }
}

impl Guard {
    pub(super) fn symbol_ns(self) -> u64 {
        match self {
            Guard::Long => 4000,
            Guard::Short => 3600,
        }
    }
}

named! {
    /// A rate of 802.11b (DSSS, CCK) or 802.11a and g (OFDM), by modulation.
    pub enum LegacyRate("rate") {
        Dsss1 = "1 Mbit/s",
        Dsss2 = "2 Mbit/s",
        Cck5 = "5.5 Mbit/s",
        Cck11 = "11 Mbit/s",
        Ofdm6 = "6 Mbit/s",
        Ofdm9 = "9 Mbit/s",
        Ofdm12 = "12 Mbit/s",
        Ofdm18 = "18 Mbit/s",
        Ofdm24 = "24 Mbit/s",
        Ofdm36 = "36 Mbit/s",
        Ofdm48 = "48 Mbit/s",
        Ofdm54 = "54 Mbit/s",
    }
}

impl LegacyRate {
    pub fn kbit_per_second(self) -> u64 {
        const IN_ORDER: [u64; LegacyRate::ALL.len()] =
            [1000, 2000, 5500, 11_000, 6000, 9000, 12_000, 18_000, 24_000, 36_000, 48_000, 54_000];
        IN_ORDER[self as usize]
    }

    pub fn is_dsss(self) -> bool {
        self <= LegacyRate::Cck11
    }

    fn is_mandatory(self) -> bool {
        use LegacyRate::*;
        self.is_dsss() || matches!(self, Ofdm6 | Ofdm12 | Ofdm24)
    }

    /// The rate of the response to a frame at this rate: the highest basic rate of its modulation that is not above
    /// it, else the highest mandatory one (section 10.7.6.5.2).
    pub(super) fn response(self, basic: &[LegacyRate]) -> LegacyRate {
        let fits = |rate: &LegacyRate| rate.is_dsss() == self.is_dsss() && *rate <= self;
        let mandatory = LegacyRate::ALL.iter().copied().filter(|rate| rate.is_mandatory() && fits(rate));
        let highest = basic.iter().copied().filter(fits).max().or_else(|| mandatory.max());
        highest.expect("the lowest rate of each modulation is mandatory")
    }
}

/// A modulation and coding scheme with equal modulation, 0 to 15: one stream below 8, two from there on (section 19.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mcs(u8);

impl Mcs {
    /// The scheme with an index.
    pub fn new(index: u8) -> Result<Self, String> {
        match index {
            0..=15 => Ok(Mcs(index)),
            // A duplicate of 6 Mbit/s in both halves of 40 MHz.
            32 => Err("MCS 32 exists at 40 MHz only and is not supported: expected 0 to 15".to_owned()),
            _ => Err(format!("there is no MCS {index}: expected 0 to 15")),
        }
    }

    pub fn index(self) -> u8 {
        self.0
    }

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
    fn response_has_highest_basic_rate_up_to_the_frame() {
        let basic = [Ofdm6, Ofdm12, Ofdm24];
        for (mcs, basic, expected) in [
            (15, &basic[..], Ofdm24),
            (8, &basic, Ofdm6),
            (9, &basic, Ofdm12),
            // Basic rates of another modulation, or above the frame, do not serve.
            (15, &[Dsss1, Cck11], Ofdm24),
            (1, &[Ofdm54], Ofdm12),
        ] {
            let frame = Mcs::new(mcs).unwrap().reference_rate();
            assert_eq!(frame.response(basic), expected);
        }
        assert_eq!(Dsss1.response(&basic), Dsss1);
        assert_eq!(Cck11.response(&[Dsss1, Dsss2, Ofdm6]), Dsss2);
    }
}
