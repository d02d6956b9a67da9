//! What RFC 8219 asks a report to state of each figure, and where the measurement departs from that RFC.

use crate::{Cell, Metric};
use serde::{Deserialize, Serialize};

/// Figures at the lower bounds of a campaign's searches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rfc8219 {
    pub rows: Vec<RunPercentiles>,
    /// One sentence each.
    pub departures: Vec<String>,
}

/// Percentiles of a figure over the runs of a cell, by nearest rank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunPercentiles {
    pub cell: Cell,
    pub metric: Metric,
    /// Valid runs with a figure.
    pub n: usize,
    pub median: f64,
    pub p1: f64,
    pub p99: f64,
}
