//! What the slices of a search say together: which share of the messages a path loses at which load.

use crate::{Cell, Estimate};
use serde::{Deserialize, Serialize};

/// The slices of one cell's searches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LossByLoad {
    pub cell: Cell,
    /// Slices that say something of the path.
    pub valid: u32,
    /// Slices that the tester disturbed.
    pub disturbed: u32,
    /// By classes of the load, which are the same for all cells of a campaign; from the lowest to the highest.
    pub points: Vec<LossPoint>,
}

/// The slices with about the same load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LossPoint {
    /// The middle of the class, messages per second.
    pub load: f64,
    /// Slices of which more was lost or late than may be.
    pub bad: u32,
    /// The share of a slice's messages that was lost or late, over these slices.
    pub loss: Estimate,
}
