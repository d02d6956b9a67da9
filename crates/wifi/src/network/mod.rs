//! Wi-Fi: a station, an access point and a station, with radios that the kernel simulates and the project's
//! medium between them. It is built inside a guest: radios belong to a whole system.
//!
//! ```text
//! hostapd, wpa_supplicant ── nl80211 ── mac80211 ── mac80211_hwsim ── netlink ── carrier ── medium
//! ```

mod access_point;
mod background;
pub(crate) mod build;
mod check;
pub(crate) mod control;
pub(crate) mod daemon;
mod neighbours;
pub(crate) mod spec;
pub(crate) mod station;
