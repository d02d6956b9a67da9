//! Facts, counters and capabilities of a host.

pub mod control_socket;
pub(crate) mod counters;
pub(crate) mod cpu;
pub(crate) mod cpu_watch;
pub mod facts;
pub mod listen_address;
pub(crate) mod noise;
#[cfg(target_os = "linux")]
pub mod ping;
pub mod route;
pub(crate) mod socket_memory;
pub mod unix_time;
pub mod zone;
