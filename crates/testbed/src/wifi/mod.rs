//! Wi-Fi: a station, an access point and a station, with radios that the kernel simulates and the project's
//! medium between them. It is built inside a guest: radios belong to a whole system.
//!
//! ```text
//! hostapd, wpa_supplicant ── nl80211 ── mac80211 ── mac80211_hwsim ── netlink ── carrier ── stacklab_medium::Medium
//! ```

mod access_point;
mod background;
mod capture;
pub mod carrier;
mod check;
mod control;
pub mod daemon;
mod header;
pub mod hwsim;
mod neighbours;
pub mod network;
pub mod nl80211;
pub mod report;
pub mod spec;
pub(crate) mod station;
