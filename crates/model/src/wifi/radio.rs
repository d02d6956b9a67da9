//! The settings of a radio channel, and the time of each frame and exchange on it.

use crate::wifi::rates::US;
use crate::wifi::{Aggregation, Band, Guard, LegacyRate, Mcs, Width};

pub(super) const ACK_BYTES: u32 = 14;
/// A compressed BlockAck: its bitmap has 8 bytes (section 9.3.1.9.3).
pub(super) const BLOCK_ACK_BYTES: u32 = 32;
/// aRxPHYStartDelay of OFDM in 20 MHz (section 17.4.4), in which responses are sent.
const RX_START_DELAY_NS: u64 = 20 * US;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RadioSettings {
    pub band: Band,
    pub width: Width,
    pub guard: Guard,
    pub mcs: u8,
    /// BSSBasicRateSet: responses have one of these rates.
    pub basic_rates: Vec<LegacyRate>,
    /// Rate of group frames and of management frames.
    pub group_rate: LegacyRate,
    pub aggregation: Aggregation,
}

impl Default for RadioSettings {
    /// Those of the study kolahi2011wlan, 300 Mbit/s. Basic rates are hostapd's for a BSS without 802.11b.
    fn default() -> Self {
        RadioSettings {
            band: Band::Ghz2,
            width: Width::Mhz40,
            guard: Guard::Short,
            mcs: 15,
            basic_rates: vec![LegacyRate::Ofdm6, LegacyRate::Ofdm12, LegacyRate::Ofdm24],
            group_rate: LegacyRate::Ofdm6,
            aggregation: Aggregation::default(),
        }
    }
}

/// A channel whose settings are checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Radio {
    settings: RadioSettings,
    mcs: Mcs,
}

/// An exchange: a PPDU, and the response to it. Contention is not part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameExchange {
    pub ppdu: Ppdu,
    /// SIFS and ACK or BlockAck; zero for group frames.
    pub response_ns: u64,
    /// How long the sender waits for the response (ACKTimeout, section 10.3.2.9); zero for group frames.
    pub timeout_ns: u64,
}

impl FrameExchange {
    pub fn total_ns(self) -> u64 {
        self.ppdu.total_ns() + self.response_ns
    }

    pub fn failed_ns(self) -> u64 {
        self.ppdu.total_ns() + self.timeout_ns
    }
}

impl Radio {
    pub fn new(settings: RadioSettings) -> Result<Self, String> {
        let mcs = Mcs::new(settings.mcs)?;
        settings.aggregation.check()?;
        if settings.basic_rates.is_empty() {
            return Err("there is no basic rate: expected at least one".to_owned());
        }
        let rates = [&settings.basic_rates[..], &[settings.group_rate]].concat();
        match rates.into_iter().find(|rate| rate.is_dsss()) {
            Some(rate) if settings.band == Band::Ghz5 => {
                Err(format!("{rate} is a rate of 802.11b, which 5 GHz lacks: expected 6 Mbit/s or more"))
            }
            _ => Ok(Radio { settings, mcs }),
        }
    }

    pub fn settings(&self) -> &RadioSettings {
        &self.settings
    }

    pub fn mcs(&self) -> Mcs {
        self.mcs
    }

    pub fn data_rate(&self) -> f64 {
        let bits = self.mcs.bits_per_symbol(self.settings.width) as f64;
        bits * 1e9 / self.settings.guard.symbol_ns() as f64
    }

    /// Bytes of the A-MPDU from the start of one frame to the start of the next, at least (section 10.13.3).
    pub(super) fn spacing_bytes(&self) -> u32 {
        let bits = self.mcs.bits_per_symbol(self.settings.width) * self.settings.aggregation.density_ns;
        let bytes = bits.div_ceil(8 * self.settings.guard.symbol_ns());
        // At most 16 us of 300 Mbit/s.
        bytes.next_multiple_of(4) as u32
    }

    pub(super) fn ht_ppdu(&self, psdu_bytes: u32) -> Ppdu {
        let RadioSettings { band, width, guard, .. } = self.settings;
        Ppdu::ht(band, width, guard, self.mcs, psdu_bytes)
    }

    /// One frame to one receiver at the rate of management frames, with an ACK.
    pub fn basic(&self, mpdu_bytes: u32) -> FrameExchange {
        let rate = self.settings.group_rate;
        self.build_exchange(Ppdu::legacy(self.settings.band, rate, mpdu_bytes), rate, ACK_BYTES)
    }

    /// A BlockAckReq at the rate of management frames, with a BlockAck.
    pub fn block_ack_request(&self, mpdu_bytes: u32) -> FrameExchange {
        let rate = self.settings.group_rate;
        self.build_exchange(Ppdu::legacy(self.settings.band, rate, mpdu_bytes), rate, BLOCK_ACK_BYTES)
    }

    /// A frame to a group, which nobody acknowledges.
    pub fn group(&self, mpdu_bytes: u32) -> FrameExchange {
        let ppdu = Ppdu::legacy(self.settings.band, self.settings.group_rate, mpdu_bytes);
        FrameExchange { ppdu, response_ns: 0, timeout_ns: 0 }
    }

    pub(super) fn build_exchange(&self, ppdu: Ppdu, rate: LegacyRate, response_bytes: u32) -> FrameExchange {
        let RadioSettings { band, basic_rates, .. } = &self.settings;
        let response = Ppdu::legacy(*band, rate.response(basic_rates), response_bytes);
        FrameExchange {
            ppdu,
            response_ns: band.sifs_ns() + response.total_ns(),
            timeout_ns: band.sifs_ns() + band.slot_ns() + RX_START_DELAY_NS,
        }
    }
}

/// Bits before and after the PSDU: SERVICE and tail. One encoder serves all rates up to 300 Mbit/s (N_ES = 1).
const SERVICE_AND_TAIL_BITS: u64 = 16 + 6;
/// Training and SIGNAL of an OFDM frame (section 17.3.2.2).
const OFDM_PREAMBLE_NS: u64 = 20 * US;
/// L-STF, L-LTF, L-SIG, HT-SIG and HT-STF of an HT-mixed frame (section 19.3.9.2). An HT-LTF for each stream follows.
const HT_PREAMBLE_NS: u64 = 32 * US;
const HT_LTF_NS: u64 = 4 * US;
/// Long preamble and header (section 16.2.2).
const DSSS_PREAMBLE_NS: u64 = 192 * US;
const SYMBOL_NS: u64 = 4 * US;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Ppdu {
    /// Preamble, PHY headers and signal extension.
    pub preamble_ns: u64,
    pub data_ns: u64,
}

impl Ppdu {
    pub fn total_ns(self) -> u64 {
        self.preamble_ns + self.data_ns
    }

    /// An HT-mixed PPDU of `bytes` (TXTIME, section 19.4.3).
    pub(super) fn ht(band: Band, width: Width, guard: Guard, mcs: Mcs, bytes: u32) -> Self {
        let symbols = (SERVICE_AND_TAIL_BITS + 8 * u64::from(bytes)).div_ceil(mcs.bits_per_symbol(width));
        Ppdu {
            preamble_ns: HT_PREAMBLE_NS + HT_LTF_NS * mcs.streams() + band.signal_extension_ns(),
            data_ns: (symbols * guard.symbol_ns()).next_multiple_of(SYMBOL_NS),
        }
    }

    /// A PPDU at a legacy rate: OFDM (sections 17.4.3, 18.5.3.2), or DSSS with the long preamble (section 16.3.4).
    pub(super) fn legacy(band: Band, rate: LegacyRate, bytes: u32) -> Self {
        let bits = 8 * u64::from(bytes);
        if rate.is_dsss() {
            let data_ns = (bits * US).div_ceil(rate.kbit_per_second()) * US;
            return Ppdu { preamble_ns: DSSS_PREAMBLE_NS, data_ns };
        }
        let bits_per_symbol = rate.kbit_per_second() * SYMBOL_NS / 1_000_000;
        Ppdu {
            preamble_ns: OFDM_PREAMBLE_NS + band.signal_extension_ns(),
            data_ns: (SERVICE_AND_TAIL_BITS + bits).div_ceil(bits_per_symbol) * SYMBOL_NS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wifi::{Security, group_mpdu_bytes};

    #[test]
    fn settings_that_do_not_exist_are_refused() {
        let settings = RadioSettings::default();
        assert!(refuse(RadioSettings { mcs: 77, ..settings.clone() }).starts_with("there is no MCS 77"));
        assert!(refuse(RadioSettings { basic_rates: vec![], ..settings.clone() }).contains("no basic rate"));
        let five = RadioSettings { band: Band::Ghz5, ..settings.clone() };
        assert!(Radio::new(five.clone()).is_ok());
        for wrong in [
            RadioSettings { group_rate: LegacyRate::Cck11, ..five.clone() },
            RadioSettings { basic_rates: vec![LegacyRate::Ofdm6, LegacyRate::Cck11], ..five.clone() },
        ] {
            assert!(refuse(wrong).starts_with("11 Mbit/s is a rate of 802.11b"));
        }
        let aggregation = Aggregation { frames: 0, ..Aggregation::default() };
        let error = refuse(RadioSettings { aggregation, ..settings });
        assert_eq!(error, "an A-MPDU of 0 frames is not possible: expected 1 to 64");
    }

    fn refuse(settings: RadioSettings) -> String {
        Radio::new(settings).unwrap_err()
    }

    #[test]
    fn control_frames_take_the_usual_time() {
        // ACK and compressed BlockAck, microseconds.
        for (bytes, expected) in [(14, [44, 32, 28, 24]), (32, [68, 44, 32, 28])] {
            let times = [6, 12, 24, 54].map(|mbit| Ppdu::legacy(Band::Ghz5, of(mbit), bytes).total_ns() / US);
            assert_eq!(times, expected);
        }
        assert_eq!(Ppdu::legacy(Band::Ghz2, of(24), 14).total_ns(), 34 * US);
    }

    fn of(mbit: u64) -> LegacyRate {
        let mut all = LegacyRate::ALL.iter().copied().filter(|rate| !rate.is_dsss());
        all.find(|rate| rate.kbit_per_second() == mbit * 1000).unwrap()
    }

    #[test]
    fn data_frames_take_the_time_of_the_worked_examples() {
        let mcs = Mcs::new(15).unwrap();
        // 89 symbols of 1080 bits: 320.4 us, in whole symbols of 4 us.
        let ppdu = Ppdu::ht(Band::Ghz2, Width::Mhz40, Guard::Short, mcs, 11_966);
        assert_eq!((ppdu.preamble_ns, ppdu.data_ns), (46 * US, 324 * US));
        let ppdu = Ppdu::ht(Band::Ghz2, Width::Mhz40, Guard::Long, mcs, 11_966);
        assert_eq!(ppdu.data_ns, 356 * US);
        // 462 symbols of 26 bits, one stream.
        let ppdu = Ppdu::ht(Band::Ghz2, Width::Mhz20, Guard::Long, Mcs::new(0).unwrap(), 1498);
        assert_eq!((ppdu.preamble_ns, ppdu.data_ns), (42 * US, 462 * 4 * US));
    }

    #[test]
    fn group_frames_at_1_mbit_have_the_long_preamble() {
        // ARP; a neighbour solicitation with its source link-layer address; a router advertisement with that, an MTU
        // and a prefix.
        let packets = [28, 40 + 24 + 8, 40 + 16 + 8 + 8 + 32];
        for (security, rate, expected) in [
            (Security::Wpa2, LegacyRate::Dsss1, [832, 1184, 1440]),
            (Security::Open, LegacyRate::Dsss1, [704, 1056, 1312]),
            (Security::Wpa2, LegacyRate::Ofdm6, [138, 198, 238]),
        ] {
            assert_eq!(packets.map(|packet| measure_group(security, rate, packet)), expected);
        }
        // 124 bytes: 180.4 us at 5.5 Mbit/s, 90.2 us at 11 Mbit/s.
        assert_eq!(measure_group(Security::Wpa2, LegacyRate::Cck5, packets[1]), 192 + 181);
        assert_eq!(measure_group(Security::Wpa2, LegacyRate::Cck11, packets[1]), 192 + 91);
    }

    /// Microseconds of a packet to a group.
    fn measure_group(security: Security, rate: LegacyRate, packet: u32) -> u64 {
        Ppdu::legacy(Band::Ghz2, rate, group_mpdu_bytes(security, packet)).total_ns() / US
    }
}
