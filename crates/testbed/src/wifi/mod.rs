//! Wi-Fi: a station, an access point and a station, with radios that the kernel simulates and the project's
//! medium between them. It is built inside a guest: radios belong to a whole system.
//!
//! ```text
//! hostapd, wpa_supplicant ── nl80211 ── mac80211 ── mac80211_hwsim ── netlink ── carrier ── stacklab_medium::Medium
//! ```

mod access_point;
mod background;
mod capture;
pub(crate) mod carrier;
mod check;
mod control;
mod daemon;
mod header;
pub(crate) mod hwsim;
mod neighbours;
pub(crate) mod network;
pub(crate) mod nl80211;
pub(crate) mod report;
pub(crate) mod spec;
pub(crate) mod station;
