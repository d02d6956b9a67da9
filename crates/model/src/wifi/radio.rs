//! The settings of a radio channel, and the time of each exchange on it.

use crate::wifi::aggregation::Aggregation;
use crate::wifi::mcs::Mcs;
use crate::wifi::ppdu::Ppdu;
use crate::wifi::rates::{Band, Guard, LegacyRate, US, Width};

pub(super) const ACK_BYTES: u32 = 14;
/// A compressed BlockAck: its bitmap has 8 bytes (section 9.3.1.9.3).
pub(super) const BLOCK_ACK_BYTES: u32 = 32;
/// aRxPHYStartDelay of OFDM in 20 MHz (section 17.4.4), in which responses are sent.
const RX_START_DELAY_NS: u64 = 20 * US;

/// Settings of a channel, as they are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RadioSettings {
    /// Frequency band.
    pub band: Band,
    /// Channel width.
    pub width: Width,
    /// Guard interval of HT frames.
    pub guard: Guard,
    /// MCS index of HT frames.
    pub mcs: u8,
    /// BSSBasicRateSet: responses have one of these rates.
    pub basic_rates: Vec<LegacyRate>,
    /// Rate of group frames and of management frames.
    pub group_rate: LegacyRate,
    /// Limits of A-MPDUs.
    pub aggregation: Aggregation,
}

impl Default for RadioSettings {
    /// The settings of the study kolahi2011wlan: MCS 15 at 40 MHz with the short guard interval, 300 Mbit/s. Basic
    /// rates are hostapd's for a BSS without 802.11b.
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
pub struct Exchange {
    /// The sender's PPDU.
    pub ppdu: Ppdu,
    /// SIFS and ACK or BlockAck; zero for group frames.
    pub response_ns: u64,
    /// Time for which the sender waits for the response (ACKTimeout, section 10.3.2.9); zero for group
    /// frames.
    pub timeout_ns: u64,
}

impl Exchange {
    /// Time on the channel when the response comes.
    pub fn total_ns(self) -> u64 {
        self.ppdu.total_ns() + self.response_ns
    }

    /// Time on the channel when no response comes.
    pub fn failed_ns(self) -> u64 {
        self.ppdu.total_ns() + self.timeout_ns
    }
}

impl Radio {
    /// Checks the settings.
    ///
    /// # Errors
    /// The first that is not possible.
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

    /// The settings.
    pub fn settings(&self) -> &RadioSettings {
        &self.settings
    }

    /// The MCS of HT frames.
    pub fn mcs(&self) -> Mcs {
        self.mcs
    }

    /// Data rate of HT frames, bits per second.
    pub fn data_rate(&self) -> f64 {
        let bits = self.mcs.bits_per_symbol(self.settings.width) as f64;
        bits * 1e9 / self.settings.guard.symbol_ns() as f64
    }

    /// The limits of A-MPDUs.
    pub(super) fn aggregation(&self) -> Aggregation {
        self.settings.aggregation
    }

    /// Bytes of the A-MPDU from the start of one frame to the start of the next, at least (section 10.13.3).
    pub(super) fn spacing_bytes(&self) -> u32 {
        let bits = self.mcs.bits_per_symbol(self.settings.width) * self.settings.aggregation.density_ns;
        let bytes = bits.div_ceil(8 * self.settings.guard.symbol_ns());
        // At most 16 us of 300 Mbit/s.
        bytes.next_multiple_of(4) as u32
    }

    /// An HT-mixed PPDU.
    pub(super) fn ht_ppdu(&self, psdu_bytes: u32) -> Ppdu {
        let RadioSettings { band, width, guard, .. } = self.settings;
        Ppdu::ht(band, width, guard, self.mcs, psdu_bytes)
    }

    /// One frame to one receiver at the rate of management frames, with an ACK.
    pub fn basic(&self, mpdu_bytes: u32) -> Exchange {
        let rate = self.settings.group_rate;
        self.answered(Ppdu::legacy(self.settings.band, rate, mpdu_bytes), rate, ACK_BYTES)
    }

    /// A BlockAckReq at the rate of management frames, with a BlockAck.
    pub fn block_ack_request(&self, mpdu_bytes: u32) -> Exchange {
        let rate = self.settings.group_rate;
        self.answered(Ppdu::legacy(self.settings.band, rate, mpdu_bytes), rate, BLOCK_ACK_BYTES)
    }

    /// A frame to a group, which nobody acknowledges.
    pub fn group(&self, mpdu_bytes: u32) -> Exchange {
        let ppdu = Ppdu::legacy(self.settings.band, self.settings.group_rate, mpdu_bytes);
        Exchange { ppdu, response_ns: 0, timeout_ns: 0 }
    }

    /// A frame to one receiver, and its response.
    pub(super) fn answered(&self, ppdu: Ppdu, rate: LegacyRate, response_bytes: u32) -> Exchange {
        let RadioSettings { band, basic_rates, .. } = &self.settings;
        let response = Ppdu::legacy(*band, rate.response(basic_rates), response_bytes);
        Exchange {
            ppdu,
            response_ns: band.sifs_ns() + response.total_ns(),
            timeout_ns: band.sifs_ns() + band.slot_ns() + RX_START_DELAY_NS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_do_not_exist_are_refused() {
        let settings = RadioSettings::default();
        let of = |settings| Radio::new(settings).unwrap_err();
        assert!(of(RadioSettings { mcs: 77, ..settings.clone() }).starts_with("there is no MCS 77"));
        assert!(of(RadioSettings { basic_rates: vec![], ..settings.clone() }).contains("no basic rate"));
        let five = RadioSettings { band: Band::Ghz5, ..settings.clone() };
        assert!(Radio::new(five.clone()).is_ok());
        for wrong in [
            RadioSettings { group_rate: LegacyRate::Cck11, ..five.clone() },
            RadioSettings { basic_rates: vec![LegacyRate::Ofdm6, LegacyRate::Cck11], ..five.clone() },
        ] {
            assert!(of(wrong).starts_with("11 Mbit/s is a rate of 802.11b"));
        }
        let aggregation = Aggregation { frames: 0, ..Aggregation::default() };
        let error = of(RadioSettings { aggregation, ..settings });
        assert_eq!(error.to_string(), "an A-MPDU of 0 frames is not possible: expected 1 to 64");
    }
}
