//! Testbeds: two hosts and one link, four hosts and three links with a mechanism between the routers, or a Wi-Fi
//! network.

pub(crate) mod batches;
pub(crate) mod direct;
pub(crate) mod guest_hosted;
pub(crate) mod mux;
pub(crate) mod network;
pub(crate) mod path_check;
pub(crate) mod placement;
pub(crate) mod routed;
pub(crate) mod spec;
pub(crate) mod wifi_hosted;
