//! A station of a Wi-Fi network, before and after a trial.

use crate::factors::family::Family;
use serde::{Deserialize, Serialize};

/// A host's station during a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StationReport {
    /// The seed that the medium drew from.
    pub seed: u64,
    /// The station before the trial.
    pub before: Station,
    /// The station after it.
    pub after: Station,
}

/// A station at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Station {
    /// The network's name.
    pub ssid: String,
    /// The access point's address.
    pub bssid: String,
    /// The cipher of unicast frames: `CCMP`, or `NONE`.
    pub cipher: String,
    /// How keys are agreed on: `WPA2-PSK`, or `NONE`.
    pub key_management: String,
    /// Centre frequency of the primary channel, MHz.
    pub frequency: u32,
    /// Width of the channel, MHz.
    pub width: u32,
    /// Centre frequency of the whole channel, MHz.
    pub center: u32,
    /// The frame of a packet of each family between this station and the access point.
    pub frames: Vec<StationFrame>,
}

/// A frame that carried a packet to or from the access point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StationFrame {
    /// The packet's family.
    pub family: Family,
    /// The packet's length with its IP header, bytes.
    pub packet: u64,
    /// The frame's length without the frame check sequence, bytes.
    pub bytes: u64,
    /// Whether its content is encrypted.
    pub protected: bool,
}
