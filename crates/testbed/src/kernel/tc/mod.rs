//! Queueing disciplines at an end of a link.

pub mod htb;
pub(crate) mod queue;
pub(crate) mod tbf;
