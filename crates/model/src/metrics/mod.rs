//! Metrics and histograms.

pub(crate) mod histogram;
mod label;
pub(crate) mod metric;
pub(crate) mod unit;
