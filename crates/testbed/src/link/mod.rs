//! Links: veth pairs, addresses and routes, offloads, bridges.

pub(crate) mod addressing;
pub(crate) mod bridge;
pub(crate) mod configure;
pub(crate) mod interface;
pub(crate) mod offload;
pub(crate) mod quiescence;
pub(crate) mod veth;
