//! The settings of a Wi-Fi network: a station, an access point, and a station or a wired host.

use crate::names::named;
use crate::wifi::{Aggregation, Band, Guard, LegacyRate, Radio, RadioSettings, Security, Width};
use crate::{AsWritten, Nanoseconds};
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

/// Levels of a cell's Wi-Fi factors. `None` keeps the study's setting.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct WifiLevels {
    pub channel_width: Option<Width>,
    pub mcs: Option<u8>,
    pub guard_interval: Option<Guard>,
    pub channel: Option<u8>,
    pub security: Option<Security>,
    pub aggregation_frames: Option<u32>,
    pub aggregation_bytes: Option<u32>,
    pub aggregation_time: Option<AsWritten<Nanoseconds>>,
    pub dtim_period: Option<u8>,
    pub basic_rate: Option<LegacyRate>,
    pub multicast_to_unicast: Option<bool>,
    pub neighbour_lifetime: Option<AsWritten<Nanoseconds>>,
    pub power_save: Option<bool>,
    pub receiver: Option<Attachment>,
    pub stations: Option<u8>,
    pub snr: Option<u8>,
    pub clock: Option<WifiClock>,
}

/// IPv6 needs 1280 bytes (RFC 8200). A frame has 2304 bytes at most, of which 50 are QoS header, CCMP, LLC and SNAP.
const MTUS: std::ops::RangeInclusive<u32> = 1280..=2254;

impl WifiSettings {
    /// The most stations beside sender and receiver.
    pub const MAX_STATIONS: u8 = 8;

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
            Self { stations, .. } if *stations > Self::MAX_STATIONS => {
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

    /// These settings, but for the levels that are set; security is not part of them.
    pub fn with(&self, levels: &WifiLevels) -> Self {
        let mut settings = self.clone();
        let limits = &mut settings.aggregation;
        replace(&mut limits.frames, levels.aggregation_frames);
        replace(&mut limits.bytes, levels.aggregation_bytes);
        replace(&mut limits.time_ns, levels.aggregation_time.as_deref().map(|time| time.0));
        replace(&mut settings.channel, levels.channel);
        replace(&mut settings.width, levels.channel_width);
        replace(&mut settings.guard, levels.guard_interval);
        replace(&mut settings.mcs, levels.mcs);
        replace(&mut settings.basic_rate, levels.basic_rate);
        replace(&mut settings.dtim, levels.dtim_period);
        replace(&mut settings.multicast_to_unicast, levels.multicast_to_unicast);
        let lifetime = levels.neighbour_lifetime.as_deref().map(|lifetime| Some(lifetime.0));
        replace(&mut settings.neighbour_lifetime_ns, lifetime);
        replace(&mut settings.power_save, levels.power_save);
        replace(&mut settings.receiver, levels.receiver);
        replace(&mut settings.stations, levels.stations);
        replace(&mut settings.snr_db, levels.snr.map(|snr| Some(snr.into())));
        replace(&mut settings.clock, levels.clock);
        settings
    }

    /// The settings in words, with the hosts' security: `802.11n`, `channel 1 (2412 MHz)`, `40 MHz`, ..
    pub fn facts(&self, security: Security) -> Vec<String> {
        let WifiSettings { channel, width, guard, mcs, basic_rate, dtim, .. } = self;
        let Aggregation { frames, bytes, time_ns, .. } = self.aggregation;
        let rate = self.radio().map(|radio| format!(" ({:.1} Mbit/s)", radio.data_rate() / 1e6));
        let mut facts = vec![
            "802.11n".to_owned(),
            format!("channel {channel} ({} MHz)", self.frequency()),
            format!("{width} MHz"),
            format!("MCS {mcs}{}", rate.unwrap_or_default()),
            format!("{guard} guard interval"),
            format!("security {security}"),
            match frames {
                1 => "no aggregation".to_owned(),
                _ => {
                    format!("A-MPDUs of up to {frames} frames, {bytes} bytes and {} us", time_ns as f64 / 1e3)
                }
            },
            format!("basic rate {basic_rate}"),
            format!("DTIM period {dtim}"),
        ];
        if self.multicast_to_unicast {
            facts.push("group frames to each station alone".to_owned());
        }
        if let Some(lifetime_ns) = self.neighbour_lifetime_ns {
            facts.push(format!("neighbour entries live for {} ms", lifetime_ns as f64 / 1e6));
        }
        if self.power_save {
            facts.push("idle stations sleep".to_owned());
        }
        if self.receiver == Attachment::Wired {
            facts.push("receiver on a wire".to_owned());
        }
        match self.stations {
            0 => {}
            1 => facts.push("1 other station that always sends".to_owned()),
            others => facts.push(format!("{others} other stations that always send")),
        }
        facts.extend(self.snr_db.map(|snr| format!("signal to noise ratio {snr} dB")));
        facts.push(format!("{} time", self.clock));
        facts
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

fn replace<T>(setting: &mut T, level: Option<T>) {
    if let Some(level) = level {
        *setting = level;
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::wifi::WifiConfig;
    use crate::{Cell, Factor, Family, SizeOf, Transport};
    use LegacyRate::*;

    /// A level of each Wi-Fi factor that is not the default.
    pub(crate) const LEVELS: [(&str, &str); 17] = [
        ("wifi.channel_width", "20"),
        ("wifi.mcs", "7"),
        ("wifi.guard_interval", "long"),
        ("wifi.channel", "6"),
        ("wifi.security", "open"),
        ("wifi.aggregation.frames", "8"),
        ("wifi.aggregation.bytes", "8191"),
        ("wifi.aggregation.time", "4000us"),
        ("wifi.dtim_period", "3"),
        ("wifi.basic_rate", "1 Mbit/s"),
        ("wifi.multicast_to_unicast", "true"),
        ("wifi.neighbour_lifetime", "10ms"),
        ("wifi.power_save", "true"),
        ("wifi.receiver", "wired"),
        ("wifi.stations", "2"),
        ("wifi.snr", "20"),
        ("wifi.clock", "real"),
    ];

    pub(crate) fn cell(levels: &[(&str, &str)]) -> Cell {
        let mut cell = Cell::new(Family::Ipv4, Transport::Udp, SizeOf::Payload, 1408);
        for (factor, level) in levels {
            cell.set(factor.parse().unwrap(), level).unwrap();
        }
        cell
    }

    #[test]
    fn a_cell_has_the_studys_network_but_for_what_it_sets() {
        let study = WifiConfig::default();
        assert_eq!(study.of(&cell(&[("dscp", "46")])), study);
        let of_wifi = Factor::ALL.iter().filter(|factor| factor.is_of_wifi());
        assert!(of_wifi.map(|factor| factor.name()).eq(LEVELS.iter().map(|(factor, _)| *factor)));
        for level in LEVELS {
            assert_ne!(study.of(&cell(&[level])), study, "{level:?}");
        }
        assert_eq!(
            study.of(&cell(&LEVELS)).to_string(),
            "802.11n, channel 6 (2437 MHz), 20 MHz, MCS 7 (65.0 Mbit/s), long guard interval, security open, \
             A-MPDUs of up to 8 frames, 8191 bytes and 4000 us, basic rate 1 Mbit/s, DTIM period 3, \
             group frames to each station alone, neighbour entries live for 10 ms, idle stations sleep, receiver on a wire, \
             2 other stations that always send, signal to noise ratio 20 dB, real time"
        );
        let single = study.of(&cell(&[("wifi.aggregation.frames", "1")]));
        assert!(
            single
                .to_string()
                .contains("300.0 Mbit/s), short guard interval, security wpa2, no aggregation,")
        );
    }

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
