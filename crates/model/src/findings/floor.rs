//! What an arm differs from itself by.

use crate::factors::family::Transport;
use crate::findings::finding::Effect;
use crate::metrics::metric::Metric;
use crate::metrics::unit::Scale;
use serde::{Deserialize, Serialize};

/// Replica labels of the two arms by which an interleaved campaign measures a cell against itself, in every block.
pub const SELF_ARMS: [&str; 2] = ["self 1", "self 2"];

/// The difference of two arms of one cell, each with its own sockets: what the method itself adds to a difference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Floor {
    /// The metric.
    pub metric: Metric,
    /// The transport of the cell.
    pub transport: Transport,
    /// The difference, with its intervals.
    pub effect: Effect,
}

impl Floor {
    /// Whether an effect of the same metric and transport is no larger than the arm's difference from itself, either
    /// way.
    pub fn hides(&self, effect: &Effect) -> bool {
        let size = |effect: &Effect| match effect.scale {
            Scale::Ratio => effect.estimate.ln().abs(),
            Scale::Difference => effect.estimate.abs(),
        };
        size(effect) <= size(&self.effect)
    }
}
