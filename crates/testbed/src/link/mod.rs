//! Links: veth pairs, addresses and routes, offloads, bridges.

pub mod addressing;
pub mod bridge;
pub mod configure;
pub mod interface;
pub mod offload;
pub mod quiescence;
pub mod veth;
