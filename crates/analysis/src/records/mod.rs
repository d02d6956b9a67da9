//! The unpaired comparison of two records.

pub(crate) mod between;
mod environment;
mod unpaired;
