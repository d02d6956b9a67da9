//! The settings of a Wi-Fi network: a station, an access point, and a station or a wired host.

use crate::names::named;
use crate::wifi::{Aggregation, Band, Guard, LegacyRate, Radio, RadioSettings, Width};
use serde::{Deserialize, Serialize};

named! {
    pub enum WifiClock("clock") {
        /// Simulated time: it passes while all processes of the network wait, and at no other time. The reference.
        Virtual = "virtual",
        /// The machine's time: what takes long on the machine is late on the network.
        Real = "real",
    }
}

named! {
    /// How a host is connected to an access point.
    #[derive(Default)]
    pub enum Attachment("receiver") {
        #[default]
        Station = "station",
        /// It is on a wire, which the access point bridges to the network. The wire has no rate limit.
        Wired = "wired",
    }
}

/// The most stations beside sender and receiver.
pub const MAX_STATIONS: u8 = 8;

/// Settings of a network, as they are written. Security is each host's own, and not part of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WifiSettings {
    /// The primary channel of the 2.4 GHz band, 1 to 11.
    pub channel: u8,
    pub width: Width,
    pub guard: Guard,
    /// MCS index of HT frames, 0 to 15.
    pub mcs: u8,
    pub aggregation: Aggregation,
    /// The lowest basic rate, which group frames and management frames have.
    pub basic_rate: LegacyRate,
    /// DTIM period: beacons from one delivery of group frames to the next, while a station sleeps. 1 to 255.
    pub dtim: u8,
    pub multicast_to_unicast: bool,
    /// How long sender and receiver remember each other's link-layer address in trials. None: for ever.
    #[serde(default)]
    pub neighbour_lifetime_ns: Option<u64>,
    /// Whether idle stations sleep, and the access point keeps their frames until they wake up, or the next DTIM
    /// beacon.
    #[serde(default)]
    pub power_save: bool,
    #[serde(default)]
    pub receiver: Attachment,
    /// Stations beside sender and receiver. During trials each always has a message for the access point to send.
    #[serde(default)]
    pub stations: u8,
    /// Signal to noise ratio of all links, dB: frames are then lost at random. None: by collisions only.
    pub snr_db: Option<f64>,
    pub mtu: u32,
    pub clock: WifiClock,
    pub seed: u64,
}

impl Default for WifiSettings {
    /// Those of [`RadioSettings`] on channel 1, with an MTU of 1500 bytes, in virtual time. hostapd's DTIM period.
    fn default() -> Self {
        let RadioSettings { width, guard, mcs, aggregation, group_rate, .. } = RadioSettings::default();
        WifiSettings {
            channel: 1,
            width,
            guard,
            mcs,
            aggregation,
            basic_rate: group_rate,
            dtim: 2,
            multicast_to_unicast: false,
            neighbour_lifetime_ns: None,
            power_save: false,
            receiver: Attachment::Station,
            stations: 0,
            snr_db: None,
            mtu: 1500,
            clock: WifiClock::Virtual,
            seed: 1,
        }
    }
}

/// IPv6 needs 1280 bytes (RFC 8200). A frame has 2304 bytes at most, of which 50 are QoS header, CCMP, LLC and SNAP.
const MTUS: std::ops::RangeInclusive<u32> = 1280..=2254;

impl WifiSettings {
    /// The channel, if the settings are possible.
    pub fn radio(&self) -> Result<Radio, String> {
        match self {
            Self { channel, .. } if !(1..=11).contains(channel) => {
                Err(format!("there is no channel {channel} in 2.4 GHz everywhere: expected 1 to 11"))
            }
            Self { dtim: 0, .. } => Err("a DTIM period of 0 is not possible: expected 1 to 255".to_owned()),
            Self { mtu, .. } if !MTUS.contains(mtu) => {
                Err(format!("an MTU of {mtu} bytes is not possible: expected 1280 to 2254"))
            }
            Self { stations, .. } if *stations > MAX_STATIONS => {
                Err(format!("{stations} other stations are not possible: expected up to 8"))
            }
            Self { snr_db: Some(snr), .. } if !snr.is_finite() => {
                Err("the signal to noise ratio is not a finite number of dB".to_owned())
            }
            _ => Ok(()),
        }?;
        Radio::new(RadioSettings {
            band: Band::Ghz2,
            width: self.width,
            guard: self.guard,
            mcs: self.mcs,
            basic_rates: self.basic_rates(),
            group_rate: self.basic_rate,
            aggregation: self.aggregation,
        })
    }

    /// BSSBasicRateSet: the lowest basic rate, and the mandatory OFDM rates above it.
    pub fn basic_rates(&self) -> Vec<LegacyRate> {
        let above = [LegacyRate::Ofdm6, LegacyRate::Ofdm12, LegacyRate::Ofdm24];
        let above = above.into_iter().filter(|rate| *rate > self.basic_rate);
        std::iter::once(self.basic_rate).chain(above).collect()
    }

    /// The primary channel's centre frequency, MHz (IEEE 802.11-2020, 19.3.15.3).
    pub fn frequency(&self) -> u32 {
        2407 + 5 * u32::from(self.channel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use LegacyRate::*;

    #[test]
    fn the_default_is_the_radio_of_the_study() {
        let radio = WifiSettings::default().radio().unwrap();
        assert_eq!(radio.settings(), &RadioSettings::default());
        let text = serde_json::to_string(&WifiSettings::default()).unwrap();
        assert_eq!(serde_json::from_str::<WifiSettings>(&text).unwrap(), WifiSettings::default());
        // As records of earlier versions have it.
        let mut earlier: serde_json::Value = serde_json::from_str(&text).unwrap();
        for key in ["neighbour_lifetime_ns", "power_save", "receiver", "stations"] {
            assert!(earlier.as_object_mut().unwrap().remove(key).is_some(), "{key}");
        }
        assert_eq!(serde_json::from_value::<WifiSettings>(earlier).unwrap(), WifiSettings::default());
    }

    #[test]
    fn basic_rates_begin_at_the_lowest() {
        assert_eq!(list_rates(Dsss1), [Dsss1, Ofdm6, Ofdm12, Ofdm24]);
        assert_eq!(list_rates(Ofdm12), [Ofdm12, Ofdm24]);
        assert_eq!(list_rates(Ofdm54), [Ofdm54]);
    }

    fn list_rates(basic_rate: LegacyRate) -> Vec<LegacyRate> {
        WifiSettings { basic_rate, ..WifiSettings::default() }.basic_rates()
    }

    #[test]
    fn channels_have_their_frequencies() {
        for (channel, frequency) in [(1, 2412), (11, 2462)] {
            let settings = WifiSettings { channel, ..WifiSettings::default() };
            assert_eq!(settings.frequency(), frequency);
        }
    }

    #[test]
    fn impossible_settings_are_refused_with_possible_ones() {
        let good = WifiSettings::default();
        assert_eq!(
            radio_error(&WifiSettings { mcs: 16, ..good.clone() }),
            "there is no MCS 16: expected 0 to 15"
        );
        for channel in [0, 12] {
            let expected = format!("there is no channel {channel} in 2.4 GHz everywhere: expected 1 to 11");
            assert_eq!(radio_error(&WifiSettings { channel, ..good.clone() }), expected);
        }
        for mtu in [1279, 2255] {
            let expected = format!("an MTU of {mtu} bytes is not possible: expected 1280 to 2254");
            assert_eq!(radio_error(&WifiSettings { mtu, ..good.clone() }), expected);
        }
        assert_eq!(
            radio_error(&WifiSettings { stations: 9, ..good.clone() }),
            "9 other stations are not possible: expected up to 8"
        );
        assert!(radio_error(&WifiSettings { dtim: 0, ..good.clone() }).contains("expected 1 to 255"));
        assert!(radio_error(&WifiSettings { snr_db: Some(f64::NAN), ..good.clone() }).contains("finite"));
        let aggregation = Aggregation { bytes: 65_536, ..good.aggregation };
        assert!(radio_error(&WifiSettings { aggregation, ..good }).contains("expected 1 to 65535"));
    }

    fn radio_error(settings: &WifiSettings) -> String {
        settings.radio().unwrap_err().to_string()
    }
}
