//! The scale on which figures are averaged and tested, and the conversion to the printed scale.
//!
//! On the ratio scale a distance is a logarithm: swapping the arms changes only its sign.

use crate::statistics::Student;
use stacklab_model::{Effect, Interval, Scale};

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

pub(crate) fn interval_back(scale: Scale, interval: Interval) -> Interval {
    Interval { low: back(scale, interval.low), high: back(scale, interval.high) }
}

/// The distances that count as none.
pub(crate) fn margin_distance(scale: Scale, of: f64) -> Interval {
    let Interval { low, high } = Interval::of_margin(scale, of);
    Interval { low: to_distance(scale, low), high: to_distance(scale, high) }
}

pub(crate) fn effect_of(scale: Scale, pairs: usize, distance: &Student) -> Effect {
    Effect {
        scale,
        pairs,
        estimate: back(scale, distance.estimate),
        error: distance.error,
        degrees_of_freedom: distance.degrees_of_freedom,
        interval90: interval_back(scale, distance.interval(0.90)),
        interval95: interval_back(scale, distance.interval(0.95)),
    }
}
