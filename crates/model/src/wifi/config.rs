//! The Wi-Fi network of a study's cells.

use crate::wifi::cost::cycle;
use crate::wifi::{
    Aggregation, Attachment, Guard, LegacyRate, Saturation, Security, Width, WifiClock, WifiSettings,
};
use crate::{AsWritten, Cell, Nanoseconds};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A Wi-Fi network whose hosts have one security.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WifiConfig {
    /// The settings that all hosts share. The seed is each trial's own.
    pub settings: WifiSettings,
    pub security: Security,
}

impl Default for WifiConfig {
    fn default() -> Self {
        WifiConfig { settings: WifiSettings::default(), security: Security::Wpa2 }
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

impl WifiConfig {
    pub fn of(&self, cell: &Cell) -> Self {
        self.with(&cell.settings.wifi)
    }

    /// These settings, but for the levels that are set.
    pub fn with(&self, levels: &WifiLevels) -> Self {
        let WifiConfig { mut settings, security } = self.clone();
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
        WifiConfig { settings, security: levels.security.unwrap_or(security) }
    }

    pub fn is_virtual(&self) -> bool {
        self.settings.clock == WifiClock::Virtual
    }

    /// What one saturated station carries in UDP messages of a cell; `None` if they do not fit a frame.
    pub fn saturation(&self, cell: &Cell) -> Option<Saturation> {
        let packet = cell.payload_bytes() + cell.family.header_bytes() + cell.transport.header_bytes();
        let radio = self.settings.radio().ok().filter(|_| packet <= self.settings.mtu)?;
        Some(cycle(&radio, self, packet, u32::MAX))
    }

    /// The settings in words: `802.11n`, `channel 1 (2412 MHz)`, `40 MHz`, ..
    pub fn facts(&self) -> Vec<String> {
        let WifiSettings { channel, width, guard, mcs, basic_rate, dtim, .. } = &self.settings;
        let Aggregation { frames, bytes, time_ns, .. } = self.settings.aggregation;
        let rate = self.settings.radio().map(|radio| format!(" ({:.1} Mbit/s)", radio.data_rate() / 1e6));
        let mut facts = vec![
            "802.11n".to_owned(),
            format!("channel {channel} ({} MHz)", self.settings.frequency()),
            format!("{width} MHz"),
            format!("MCS {mcs}{}", rate.unwrap_or_default()),
            format!("{guard} guard interval"),
            format!("security {}", self.security),
            match frames {
                1 => "no aggregation".to_owned(),
                _ => {
                    format!("A-MPDUs of up to {frames} frames, {bytes} bytes and {} us", time_ns as f64 / 1e3)
                }
            },
            format!("basic rate {basic_rate}"),
            format!("DTIM period {dtim}"),
        ];
        if self.settings.multicast_to_unicast {
            facts.push("group frames to each station alone".to_owned());
        }
        if let Some(lifetime_ns) = self.settings.neighbour_lifetime_ns {
            facts.push(format!("neighbour entries live for {} ms", lifetime_ns as f64 / 1e6));
        }
        if self.settings.power_save {
            facts.push("idle stations sleep".to_owned());
        }
        if self.settings.receiver == Attachment::Wired {
            facts.push("receiver on a wire".to_owned());
        }
        match self.settings.stations {
            0 => {}
            1 => facts.push("1 other station that always sends".to_owned()),
            others => facts.push(format!("{others} other stations that always send")),
        }
        facts.extend(self.settings.snr_db.map(|snr| format!("signal to noise ratio {snr} dB")));
        facts.push(format!("{} time", self.settings.clock));
        facts
    }
}

fn replace<T>(setting: &mut T, level: Option<T>) {
    if let Some(level) = level {
        *setting = level;
    }
}

impl fmt::Display for WifiConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.facts().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Factor, Family, SizeOf, Transport};

    fn cell(levels: &[(&str, &str)]) -> Cell {
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
        let levels = [
            ("wifi.channel_width", "20"),
            ("wifi.mcs", "7"),
            ("wifi.guard_interval", "long"),
            ("wifi.channel", "6"),
            ("wifi.security", "open"),
            ("wifi.aggregation.frames", "8"),
            ("wifi.aggregation.bytes", "8191"),
            ("wifi.aggregation.time", "4ms"),
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
        let of_wifi = Factor::ALL.iter().filter(|factor| factor.is_of_wifi());
        assert!(of_wifi.map(|factor| factor.name()).eq(levels.iter().map(|(factor, _)| *factor)));
        for level in levels {
            assert_ne!(study.of(&cell(&[level])), study, "{level:?}");
        }
        assert_eq!(
            study.of(&cell(&levels)).to_string(),
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
    fn a_cells_frames_say_what_one_station_carries() {
        // The table of docs/wifi.md.
        assert_eq!(compute_goodput(&[("wifi.aggregation.frames", "8")]).unwrap(), "172.46");
        let open = [("wifi.aggregation.frames", "1"), ("wifi.security", "open")];
        assert_eq!(compute_goodput(&open).unwrap(), "48.03");
        assert_eq!(compute_goodput(&[("size", "1473")]), None);
    }

    fn compute_goodput(levels: &[(&str, &str)]) -> Option<String> {
        let cell = cell(levels);
        let found = WifiConfig::default().of(&cell).saturation(&cell)?;
        Some(format!("{:.2}", found.goodput(cell.payload_bytes())))
    }
}
