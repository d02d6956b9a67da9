//! A difference over all cells in which it was asked.

use crate::factors::factor::Factor;
use crate::factors::family::Transport;
use crate::findings::finding::{Effect, Interval, Verdict};
use crate::metrics::metric::Metric;
use serde::{Deserialize, Serialize};

/// Two levels of a factor compared by one metric, over all sizes and other factors. One transport at a time, unless it
/// is the factor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Headline {
    /// The factor that differs.
    pub factor: Factor,
    /// Its baseline level.
    pub baseline: String,
    /// Its candidate level.
    pub candidate: String,
    /// The metric.
    pub metric: Metric,
    /// The transport; `None` if it is the factor.
    pub transport: Option<Transport>,
    /// Number of comparisons.
    pub comparisons: usize,
    /// Number of comparisons that say which arm is better, or that they are equivalent.
    pub answered: usize,
    /// Mean of the comparisons' effects (of their logarithms, for ratios) with equal weights, and its
    /// interval. `None` if a comparison has no effect.
    pub effect: Option<Effect>,
    /// The smallest and the largest estimate of the comparisons.
    #[serde(default)]
    pub range: Option<[f64; 2]>,
    /// The verdict that holds for each comparison; `inconclusive` if they differ.
    pub verdict: Verdict,
    /// The range of the claimed differences where one arm is better in each comparison: from the lowest to the highest
    /// end of the comparisons' ranges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_range: Option<Interval>,
    /// The equivalence margin.
    pub margin: f64,
}
