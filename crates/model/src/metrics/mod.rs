//! Metrics and histograms.

mod definition;
pub(crate) mod histogram;
pub(crate) mod metric;
pub(crate) mod unit;
