//! Two records side by side, not paired.

pub(crate) mod between;
mod environment;
mod unpaired;
