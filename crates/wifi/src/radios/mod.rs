//! The kernel's simulated radios (mac80211_hwsim), and the [medium](crate::medium) between them.

pub(crate) mod capture;
pub mod carrier;
pub(crate) mod header;
pub(crate) mod hwsim;
pub(crate) mod nl80211;
pub(crate) mod report;
