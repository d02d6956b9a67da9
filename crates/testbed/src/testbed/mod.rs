//! Testbeds: two hosts and one link, four hosts and three links with a mechanism between the routers, or a Wi-Fi
//! network.

pub(crate) mod direct;
pub(crate) mod network;
pub(crate) mod path_check;
pub mod routed;
pub mod spec;
