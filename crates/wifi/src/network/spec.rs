//! The settings of a Wi-Fi network, its state as read back, and what its medium has counted.

use crate::Channel;
use serde::{Deserialize, Serialize};
use stacklab_model::Family;
use stacklab_model::wifi::{Airtime, NodeAirtime, WifiSettings};
use std::fmt;

pub(crate) const SSID: &str = "stacklab";

/// A Wi-Fi network in the 2.4 GHz band (802.11n): a station, an access point, and a station or a wired host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WifiSpec {
    /// The settings that all hosts share.
    pub settings: WifiSettings,
    /// The access point's security.
    pub access_point: Security,
    /// The security that each station expects, and the passphrase that it tries; the sender's first.
    pub stations: [Security; 2],
    /// Whether a capture of what is on air is written.
    pub captured: bool,
}

impl WifiSpec {
    /// A network with these settings, which are checked.
    pub fn new(
        settings: WifiSettings,
        access_point: Security,
        stations: [Security; 2],
    ) -> Result<Self, String> {
        settings.radio()?;
        Ok(WifiSpec { settings, access_point, stations, captured: false })
    }

    /// A network with the default settings. All have the same security.
    pub fn with_security(security: Security) -> Self {
        let stations = [security.clone(), security.clone()];
        WifiSpec { settings: WifiSettings::default(), access_point: security, stations, captured: false }
    }

    /// The same network, of which a capture is written.
    pub fn with_capture(self) -> Self {
        WifiSpec { captured: true, ..self }
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
    /// WPA3: SAE with a passphrase, CCMP as the cipher, and protected management frames.
    Wpa3(Passphrase),
}

impl Security {
    /// The passphrase, the key management by the names of configurations and of wpa_supplicant's status, and whether
    /// management frames are protected (`ieee80211w`).
    pub(crate) fn keys(&self) -> Option<(&Passphrase, &'static str, &'static str, u8)> {
        match self {
            Security::Open => None,
            Security::Wpa2(passphrase) => Some((passphrase, "WPA-PSK", "WPA2-PSK", 0)),
            Security::Wpa3(passphrase) => Some((passphrase, "SAE", "SAE", 2)),
        }
    }

    /// Bytes that the cipher adds to a frame: CCMP a header of 8 and a MIC of 8 (IEEE 802.11-2020, 12.5.3.2).
    pub(crate) fn overhead(&self) -> usize {
        self.keys().map_or(0, |_| 16)
    }
}

impl fmt::Display for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Security::Open => "open",
            Security::Wpa2(_) => "WPA2",
            Security::Wpa3(_) => "WPA3",
        })
    }
}

/// A passphrase of WPA2 or WPA3: 8 to 63 printable ASCII characters (IEEE 802.11-2020, J.4.1).
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

/// A text that is not a passphrase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a passphrase of Wi-Fi has 8 to 63 printable ASCII characters")]
pub struct BadPassphrase;

/// The state of a built network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WifiState {
    /// The association of each end, the sender's first; `None` of a receiver on a wire.
    pub stations: [Option<Association>; 2],
    /// The associations of the other stations.
    pub others: Vec<Association>,
    /// A packet of each family on the medium.
    pub checks: Vec<MediumCheck>,
    /// What the medium had counted by then.
    pub medium: MediumReport,
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
    /// How keys are agreed on: `WPA2-PSK`, `SAE`, or `NONE`.
    pub key_management: String,
    /// The cipher of group management frames (`BIP`), if management frames must be protected.
    pub management_cipher: Option<String>,
    /// Whether the kernel lets it sleep while it is idle.
    pub power_save: bool,
}

/// A packet on the medium.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediumCheck {
    /// Its family.
    pub family: Family,
    /// Its length with the IP header, bytes.
    pub packet: usize,
    /// The frames that carried it, without the frame check sequence: from the sender to the access point, and from
    /// there to the receiver, unless that is on a wire.
    pub hops: [Option<CarriedFrame>; 2],
}

/// A frame that carried a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedFrame {
    /// Its length without the frame check sequence, bytes.
    pub bytes: usize,
    /// Whether its content is encrypted, as its header says.
    pub protected: bool,
}

/// Counts of a medium since its beginning.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediumReport {
    /// The time since then by the network's clock.
    pub elapsed_ns: u64,
    /// Where it went. It may reach into the exchange in progress.
    pub airtime: Airtime,
    /// Sender, access point, receiver, other stations. A receiver on a wire has nothing.
    pub nodes: Vec<NodeAirtime>,
    /// Frames and the kernel.
    pub frames: FrameCounts,
    /// Whether exchanges were reported in time.
    pub lateness: Lateness,
    /// A hash of all events with their times and frames. Two equal courses have the same.
    pub digest: u64,
}

/// Numbers of frames between the kernel and the medium.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameCounts {
    /// Frames that radios sent.
    pub sent: u64,
    /// Frames for which the medium had no room.
    pub dropped: u64,
    /// Receptions: a group's frame has several.
    pub delivered: u64,
    /// Receptions and statuses that the kernel refused: of a radio that listens elsewhere, or of a frame that it gave
    /// up.
    pub refused: u64,
    /// How often the kernel dropped frames before the medium took them.
    pub overruns: u64,
}

/// How late the kernel got exchanges whose frames were received.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lateness {
    /// Such exchanges.
    pub exchanges: u64,
    /// Part of these that were late by more than a tenth of their time.
    pub late: u64,
    /// The sum of all delays.
    pub total_ns: u64,
    /// The longest delay.
    pub longest_ns: u64,
}

impl Lateness {
    /// Notes an exchange of this length, and by how much it was late.
    pub(crate) fn note(&mut self, exchange_ns: u64, delay_ns: u64) {
        self.exchanges += 1;
        self.late += u64::from(delay_ns > exchange_ns / 10);
        self.total_ns += delay_ns;
        self.longest_ns = self.longest_ns.max(delay_ns);
    }

    /// What was counted since then. The longest delay is that of all of the time.
    pub fn since(&self, before: &Self) -> Self {
        Lateness {
            exchanges: self.exchanges.saturating_sub(before.exchanges),
            late: self.late.saturating_sub(before.late),
            total_ns: self.total_ns.saturating_sub(before.total_ns),
            longest_ns: self.longest_ns,
        }
    }

    /// The share of late exchanges; `None` without any exchange.
    pub fn share(&self) -> Option<f64> {
        (self.exchanges > 0).then(|| self.late as f64 / self.exchanges as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passphrase_is_printable_long_enough_and_hidden() {
        let good = Passphrase::try_from("sixteen bytes ok".to_owned()).unwrap();
        assert_eq!(good.text(), "sixteen bytes ok");
        assert_eq!(format!("{good:?}"), "Passphrase(..)");
        for bad in ["short", &"x".repeat(64), "two\nlines of it", "na\u{ef}ve, naive"] {
            assert_eq!(Passphrase::try_from(bad.to_owned()), Err(BadPassphrase), "{bad}");
        }
        assert!(serde_json::from_str::<Security>(r#"{"wpa2":"a\nb=c ....."}"#).is_err());
        let read: Security = serde_json::from_str(r#"{"wpa2":"sixteen bytes ok"}"#).unwrap();
        assert_eq!(read, Security::Wpa2(good));
    }

    #[test]
    fn a_network_has_possible_settings() {
        let stations = [Security::Open, Security::Open];
        let usual = WifiSpec::new(WifiSettings::default(), Security::Open, stations.clone());
        assert_eq!(usual, Ok(WifiSpec::with_security(Security::Open)));
        let settings = WifiSettings { mcs: 16, ..WifiSettings::default() };
        let error = WifiSpec::new(settings, Security::Open, stations).unwrap_err();
        assert!(error.starts_with("there is no MCS 16"), "{error}");
    }

    #[test]
    fn an_exchange_is_late_after_a_tenth_of_its_time() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.share(), None);
        for delay_ns in [0, 40_000, 40_001, 900_000] {
            lateness.note(400_000, delay_ns);
        }
        assert_eq!((lateness.share(), lateness.longest_ns), (Some(0.5), 900_000));
        assert_eq!(lateness.total_ns, 980_001);
        let before = Lateness { exchanges: 2, late: 0, total_ns: 40_000, longest_ns: 40_000 };
        assert_eq!(lateness.since(&before).share(), Some(1.0));
    }
}
