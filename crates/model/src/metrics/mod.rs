//! Metrics and histograms.

pub(crate) mod histogram;
pub(crate) mod metric;
