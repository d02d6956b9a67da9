//! A station of a Wi-Fi network, before and after a trial: a simulated one, or a real adapter.

use crate::factors::family::Family;
use serde::{Deserialize, Serialize};

/// A host's station during a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StationReport {
    /// The seed that the medium drew from; `None` for a real adapter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
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
    /// The cipher of unicast frames: `CCMP`, or `NONE`; `unknown` if a real adapter's daemon does not say.
    pub cipher: String,
    /// How keys are agreed on: `WPA2-PSK`, `SAE`, or `NONE`; `unknown` as for the cipher.
    pub key_management: String,
    /// The cipher of group management frames (`BIP`), where management frames are protected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub management_cipher: Option<String>,
    /// Whether it sleeps while it is idle, as its kernel says; `None` if it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_save: Option<bool>,
    /// Centre frequency of the primary channel, MHz.
    pub frequency: u32,
    /// Width of the channel, MHz.
    pub width: u32,
    /// Centre frequency of the whole channel, MHz.
    pub center: u32,
    /// Signal of the last frame from the access point, dBm, as a real adapter reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal_dbm: Option<i32>,
    /// The bit rate of the last frame to the access point, as a real adapter reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tx_bitrate: Option<String>,
    /// The frame of a packet of each family between this station and the access point, of a simulated one.
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
