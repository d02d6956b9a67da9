//! Frames of the kernel's simulated radios (mac80211_hwsim) over generic netlink. Messages are pure; only the socket
//! talks to the kernel.

pub(crate) mod command;
pub(crate) mod genl;
pub(crate) mod socket;
