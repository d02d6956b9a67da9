//! What is lost at which share of the highest load (RFC 2544, section 26.3; RFC 8219, section 7.4).

use crate::Cell;
use serde::{Deserialize, Serialize};

/// The frame loss rates of a campaign's arms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FrameLoss {
    pub arms: Vec<FrameLossArm>,
    /// Where the measurement departs from the RFCs, one sentence each.
    pub departures: Vec<String>,
}

/// The trials of one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FrameLossArm {
    pub cell: Cell,
    /// Arms with the same number were measured together, at the same loads.
    #[serde(default)]
    pub group: usize,
    /// From the highest load down.
    pub points: Vec<FrameLossPoint>,
}

/// The valid trials at one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FrameLossPoint {
    /// The load in per cent of the highest one, which arms that are measured together have in common.
    pub percent: u32,
    /// The median of the loads, messages per second.
    pub load: f64,
    pub n: usize,
    /// Percentiles of the share that was lost, by nearest rank.
    pub median: f64,
    pub p1: f64,
    pub p99: f64,
}
