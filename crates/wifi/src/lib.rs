//! Wi-Fi: the shared medium, simulated radios, and a network of access point and stations.
//!
//! A network is a station, an access point and a station, with radios that the kernel simulates and the project's
//! medium between them. It is built inside a guest: radios belong to a whole system.
//!
//! ```text
//! hostapd, wpa_supplicant ── nl80211 ── mac80211 ── mac80211_hwsim ── netlink ── carrier ── medium
//! ```

pub mod fuzzing;
mod medium;
mod network {
    mod access_point;
    mod background;
    pub(crate) mod build;
    mod check;
    pub(crate) mod daemon;
    pub(crate) mod spec;
    pub(crate) mod station;
}
mod radios {
    mod capture;
    pub(crate) mod carrier;
    mod header;
    pub(crate) mod netlink;
}

pub use network::build::WifiNetwork;
use network::daemon::{ControlSocket, Daemon};
pub use network::daemon::{FOLDER, VERSIONS};
use network::spec::SSID;
pub use network::spec::{
    Association, BadPassphrase, CarriedFrame, FrameCounts, Lateness, MediumCheck, MediumReport, Passphrase,
    Security, WifiSpec, WifiState,
};
pub use radios::carrier::Watch;
pub use radios::netlink::Channel;
