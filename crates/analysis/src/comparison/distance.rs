//! The scale on which figures are averaged and tested, and the conversion to the printed scale.
//!
//! On the ratio scale a distance is a logarithm: swapping the arms changes only its sign.

use stacklab_model::{Interval, Scale};

/// Converts a distance to the printed scale; the result stays finite, because extreme figures can overflow.
pub(crate) fn back(scale: Scale, distance: f64) -> f64 {
    match scale {
        Scale::Ratio => distance.exp().min(f64::MAX),
        Scale::Difference => distance,
    }
}

/// Converts a value on the printed scale to a distance.
pub(crate) fn to_distance(scale: Scale, printed: f64) -> f64 {
    match scale {
        Scale::Ratio => printed.ln(),
        Scale::Difference => printed,
    }
}

/// Converts both ends of an interval.
pub(crate) fn interval_back(scale: Scale, interval: Interval) -> Interval {
    Interval { low: back(scale, interval.low), high: back(scale, interval.high) }
}

/// The distances that count as none.
pub(crate) fn margin_distance(scale: Scale, of: f64) -> Interval {
    let margin = Interval::of_margin(scale, of);
    match scale {
        Scale::Ratio => Interval { low: margin.low.ln(), high: margin.high.ln() },
        Scale::Difference => margin,
    }
}
