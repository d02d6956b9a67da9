//! Facts, counters and capabilities of a host.

pub(crate) mod abilities;
pub(crate) mod counters;
pub(crate) mod cpu;
pub(crate) mod facts;
pub(crate) mod noise;
pub mod route;
pub(crate) mod socket_memory;
