//! The settings of a Wi-Fi network, and its state as read back.

use super::nl80211::Channel;
use serde::{Deserialize, Serialize};
use stacklab_model::Family;
use std::fmt;

/// The name of the network.
pub const SSID: &str = "stacklab";

/// A Wi-Fi network in the 2.4 GHz band (802.11n): a station, an access point, a station.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WifiSpec {
    /// The primary channel, 1 to 11.
    pub channel: u8,
    /// The channel's width.
    pub width: Width,
    /// The access point's security.
    pub access_point: Security,
    /// The security that each station expects and has the passphrase of, the sender's first.
    pub stations: [Security; 2],
    /// MTU of each interface, bytes.
    pub mtu: u32,
}

impl WifiSpec {
    /// A network on channel 1 of 40 MHz with an MTU of 1500 bytes. All have the same security.
    pub fn with_security(security: Security) -> Self {
        let stations = [security.clone(), security.clone()];
        WifiSpec { channel: 1, width: Width::Mhz40, access_point: security, stations, mtu: 1500 }
    }

    /// The primary channel's centre frequency, MHz (IEEE 802.11-2020, 19.3.15.3).
    pub fn frequency(&self) -> u32 {
        2407 + 5 * u32::from(self.channel)
    }
}

/// A channel's width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Width {
    /// 20 MHz.
    Mhz20,
    /// 40 MHz.
    Mhz40,
}

impl Width {
    /// The width in MHz.
    pub fn mhz(self) -> u32 {
        match self {
            Width::Mhz20 => 20,
            Width::Mhz40 => 40,
        }
    }
}

/// How frames are protected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Security {
    /// Not at all.
    Open,
    /// WPA2 with a passphrase, and CCMP as the cipher.
    Wpa2(Passphrase),
}

impl Security {
    /// The cipher of unicast frames, as wpa_supplicant names it.
    pub fn cipher(&self) -> &'static str {
        match self {
            Security::Open => "NONE",
            Security::Wpa2(_) => "CCMP",
        }
    }

    /// Bytes that the cipher adds to a frame: CCMP a header of 8 and a MIC of 8 (IEEE 802.11-2020, 12.5.3.2).
    pub fn overhead(&self) -> usize {
        match self {
            Security::Open => 0,
            Security::Wpa2(_) => 16,
        }
    }
}

impl fmt::Display for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Security::Open => "open",
            Security::Wpa2(_) => "WPA2",
        })
    }
}

/// A passphrase of WPA2: 8 to 63 printable ASCII characters (IEEE 802.11-2020, J.4.1).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Passphrase(String);

impl Passphrase {
    /// The text.
    pub fn text(&self) -> &str {
        &self.0
    }
}

/// It is not shown: it protects others' networks where it is used again.
impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passphrase(..)")
    }
}

impl TryFrom<String> for Passphrase {
    type Error = BadPassphrase;

    fn try_from(text: String) -> Result<Self, BadPassphrase> {
        let printable = text.bytes().all(|byte| (0x20..=0x7e).contains(&byte));
        if printable && (8..=63).contains(&text.len()) { Ok(Passphrase(text)) } else { Err(BadPassphrase) }
    }
}

impl From<Passphrase> for String {
    fn from(passphrase: Passphrase) -> String {
        passphrase.0
    }
}

/// A text that is no passphrase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a WPA2 passphrase has 8 to 63 printable ASCII characters")]
pub struct BadPassphrase;

/// The state of a built network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WifiState {
    /// Each station's association, the sender's first.
    pub stations: [Association; 2],
    /// A packet of each family on the medium.
    pub checks: Vec<MediumCheck>,
    /// The packages of the programs, and their versions.
    pub programs: String,
}

/// A station's association, as its kernel and wpa_supplicant report it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Association {
    /// The channel, as the kernel reports it.
    pub channel: Channel,
    /// The network's name.
    pub ssid: String,
    /// The access point's address.
    pub bssid: String,
    /// The cipher of unicast frames: `CCMP`, or `NONE`.
    pub cipher: String,
    /// How keys are agreed on: `WPA2-PSK`, or `NONE`.
    pub key_management: String,
}

/// A packet on the medium.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediumCheck {
    /// Its family.
    pub family: Family,
    /// Its length with the IP header, bytes.
    pub packet: usize,
    /// The frames that carried it, without the frame check sequence: from the sender to the access point, and from
    /// there to the receiver.
    pub hops: [CarriedFrame; 2],
}

/// A frame that carried a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedFrame {
    /// Its length without the frame check sequence, bytes.
    pub bytes: usize,
    /// Whether its content is encrypted, as its header says.
    pub protected: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passphrase_is_printable_and_long_enough_and_not_shown() {
        let text = |text: &str| Passphrase::try_from(text.to_owned());
        let good = text("sixteen bytes ok").unwrap();
        assert_eq!(good.text(), "sixteen bytes ok");
        assert_eq!(format!("{good:?}"), "Passphrase(..)");
        for bad in ["short", &"x".repeat(64), "two\nlines of it", "na\u{ef}ve, naive"] {
            assert_eq!(text(bad), Err(BadPassphrase), "{bad}");
        }
        assert!(serde_json::from_str::<Security>(r#"{"wpa2":"a\nb=c ....."}"#).is_err());
        let read: Security = serde_json::from_str(r#"{"wpa2":"sixteen bytes ok"}"#).unwrap();
        assert_eq!(read, Security::Wpa2(good));
    }

    #[test]
    fn channels_have_their_frequencies() {
        let spec = WifiSpec::with_security(Security::Open);
        assert_eq!((spec.frequency(), spec.width.mhz()), (2412, 40));
        assert_eq!(WifiSpec { channel: 11, ..spec }.frequency(), 2462);
    }
}
