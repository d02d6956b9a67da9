//! The scale on which figures are averaged and tested, and the way back to the one that is printed.
//!
//! On the ratio scale a distance is a logarithm, so that swapping the arms changes its sign and nothing else.

use crate::comparison::verdict::margin_interval;
use stacklab_model::{Interval, Scale};

/// From a distance to the printed scale; kept finite, because extreme figures can overflow.
pub(crate) fn back(scale: Scale, distance: f64) -> f64 {
    match scale {
        Scale::Ratio => distance.exp().min(f64::MAX),
        Scale::Difference => distance,
    }
}

/// The same of both ends of an interval.
pub(crate) fn interval_back(scale: Scale, interval: Interval) -> Interval {
    Interval { low: back(scale, interval.low), high: back(scale, interval.high) }
}

/// The distances that count as none.
pub(crate) fn margin_distance(scale: Scale, of: f64) -> Interval {
    let margin = margin_interval(scale, of);
    match scale {
        Scale::Ratio => Interval { low: margin.low.ln(), high: margin.high.ln() },
        Scale::Difference => margin,
    }
}

/// Median of the candidate's figures over the baseline's; `None` where that is no finite number.
pub(crate) fn ratio_of_medians(candidate: &[f64], baseline: &[f64]) -> Option<f64> {
    use crate::statistics::median;
    Some(median(candidate)? / median(baseline)?).filter(|ratio| ratio.is_finite())
}
