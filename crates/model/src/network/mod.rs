//! Addresses, links, the topology that they form, and the headers of the packets on them.

pub(crate) mod address;
pub(crate) mod headers;
pub(crate) mod link_bucket;
pub(crate) mod link_config;
pub(crate) mod topology;
pub(crate) mod wire_cost;
