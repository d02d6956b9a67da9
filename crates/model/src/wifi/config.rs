//! The Wi-Fi network of a study's cells.

use crate::Cell;
use crate::wifi::cost::cycle;
use crate::wifi::{Saturation, Security, WifiClock, WifiLevels, WifiSettings};
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

impl WifiConfig {
    pub fn of(&self, cell: &Cell) -> Self {
        self.with(&cell.settings.wifi)
    }

    /// These settings, but for the levels that are set.
    pub fn with(&self, levels: &WifiLevels) -> Self {
        WifiConfig {
            settings: self.settings.with(levels),
            security: levels.security.unwrap_or(self.security),
        }
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
        self.settings.facts(self.security)
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
    use crate::wifi::network::tests::cell;

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
