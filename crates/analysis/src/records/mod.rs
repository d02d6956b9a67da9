//! The unpaired comparison of two records.

pub(crate) mod between;
mod environment;
pub(crate) mod unpaired;
