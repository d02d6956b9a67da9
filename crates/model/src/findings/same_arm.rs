//! The A/A check: an arm measured against itself.

use crate::factors::family::Transport;
use crate::findings::finding::Effect;
use crate::metrics::metric::Metric;
use serde::{Deserialize, Serialize};

/// Replica labels of the two arms by which an interleaved campaign measures a cell against itself, in every block.
pub const SELF_ARMS: [&str; 2] = ["self 1", "self 2"];

/// Two arms of one cell compared, each with its own sockets. By a sound method they differ by chance alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SameArm {
    /// The metric.
    pub metric: Metric,
    /// The transport of the cell.
    pub transport: Transport,
    /// The difference.
    pub effect: Effect,
    /// Two-sided p of no difference. Of many checks one in twenty is below 0.05.
    pub p: f64,
}

/// The arms of one cell compared by their order: the arm whose sockets were opened second against the first. The order
/// is drawn in each block. By a sound method it makes no difference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArmOrder {
    /// The metric.
    pub metric: Metric,
    /// The transport.
    pub transport: Transport,
    /// Number of pairs. Those of a block count as one, by their mean.
    pub pairs: usize,
    /// The difference: of the second arm from the first.
    pub effect: Effect,
    /// Two-sided p of no difference.
    pub p: f64,
}
