//! A point estimate.

use stacklab_model::Interval;

/// A point estimate and its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PointEstimate {
    /// The estimate, in the unit of the figures.
    pub estimate: f64,
    /// Its interval; `None` if there are too few figures for the requested confidence.
    pub interval: Option<Interval>,
}
