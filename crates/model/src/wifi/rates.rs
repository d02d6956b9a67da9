//! Bands, widths, guard intervals and rates.

use crate::names::named;

/// A microsecond, in nanoseconds.
pub(super) const US: u64 = 1000;

named! {
    /// The frequency band of a channel, GHz.
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
    /// The width of a channel, MHz.
    pub enum Width("width") {
        /// 20 MHz: 52 data subcarriers.
        Mhz20 = "20",
        /// 40 MHz: 108 data subcarriers.
        Mhz40 = "40",
    }
}

impl Width {
    /// The width in MHz.
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
    /// The guard interval between symbols.
    pub enum Guard("guard interval") {
        /// 800 ns: a symbol takes 4 us.
        Long = "long",
        /// 400 ns: a symbol takes 3.6 us.
        Short = "short",
    }
}

impl Guard {
    /// The time of one symbol.
    pub(super) fn symbol_ns(self) -> u64 {
        match self {
            Guard::Long => 4000,
            Guard::Short => 3600,
        }
    }
}

named! {
    /// A rate of 802.11b (DSSS, CCK) or 802.11a and g (OFDM).
    pub enum LegacyRate("rate") {
        /// DSSS.
        Dsss1 = "1 Mbit/s",
        /// DSSS.
        Dsss2 = "2 Mbit/s",
        /// CCK.
        Cck5 = "5.5 Mbit/s",
        /// CCK.
        Cck11 = "11 Mbit/s",
        /// OFDM, mandatory.
        Ofdm6 = "6 Mbit/s",
        /// OFDM.
        Ofdm9 = "9 Mbit/s",
        /// OFDM, mandatory.
        Ofdm12 = "12 Mbit/s",
        /// OFDM.
        Ofdm18 = "18 Mbit/s",
        /// OFDM, mandatory.
        Ofdm24 = "24 Mbit/s",
        /// OFDM.
        Ofdm36 = "36 Mbit/s",
        /// OFDM.
        Ofdm48 = "48 Mbit/s",
        /// OFDM.
        Ofdm54 = "54 Mbit/s",
    }
}

impl LegacyRate {
    /// Thousands of bits per second.
    pub fn kbit_per_second(self) -> u64 {
        use LegacyRate::*;
        match self {
            Dsss1 => 1000,
            Dsss2 => 2000,
            Cck5 => 5500,
            Cck11 => 11_000,
            Ofdm6 => 6000,
            Ofdm9 => 9000,
            Ofdm12 => 12_000,
            Ofdm18 => 18_000,
            Ofdm24 => 24_000,
            Ofdm36 => 36_000,
            Ofdm48 => 48_000,
            Ofdm54 => 54_000,
        }
    }

    /// Whether it is a rate of 802.11b.
    pub fn is_dsss(self) -> bool {
        use LegacyRate::*;
        matches!(self, Dsss1 | Dsss2 | Cck5 | Cck11)
    }

    /// Whether every station has it.
    fn is_mandatory(self) -> bool {
        use LegacyRate::*;
        self.is_dsss() || matches!(self, Ofdm6 | Ofdm12 | Ofdm24)
    }

    /// The rate of the response to a frame at this rate: the highest basic rate of its modulation that is not above
    /// it, else the highest mandatory one (section 10.7.6.5.2).
    pub(super) fn response(self, basic: &[LegacyRate]) -> LegacyRate {
        let fits = |rate: &LegacyRate| rate.is_dsss() == self.is_dsss() && *rate <= self;
        let all = LegacyRate::ALL.iter().copied();
        let mandatory = || all.filter(|rate| rate.is_mandatory() && fits(rate)).max();
        basic
            .iter()
            .copied()
            .filter(fits)
            .max()
            .or_else(mandatory)
            .expect("the lowest rate of each modulation is mandatory")
    }
}
