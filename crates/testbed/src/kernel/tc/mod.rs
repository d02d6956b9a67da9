//! Queueing disciplines (`tc`).

pub mod htb;
pub(crate) mod netem;
pub(crate) mod queue;
pub(crate) mod request;
pub(crate) mod tbf;
