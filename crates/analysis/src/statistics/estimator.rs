//! A point estimate.

use stacklab_model::Interval;

/// A point estimate and its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PointEstimate {
    /// The estimate, in the unit of the figures.
    pub estimate: f64,
    /// Its interval; `None` where there are too few figures for the confidence asked.
    pub interval: Option<Interval>,
}
