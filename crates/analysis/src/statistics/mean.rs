//! Student's t: the interval of a mean, and the test of a mean against 0.

use crate::statistics::moments::Moments;
use stacklab_model::Interval;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// The interval that covers the mean with the given confidence (0.95 is 95 %), in the unit of the figures. `None` with
/// fewer than two figures.
pub fn mean_interval(figures: &[f64], confidence: f64) -> Option<Interval> {
    Some(Moments::of(figures)?.interval(confidence))
}

/// Two-sided p of Student's one-sample t test that the mean is 0. `None` with fewer than two figures. Figures
/// without spread have p 0, or 1 where they are 0.
pub fn mean_p(figures: &[f64]) -> Option<f64> {
    let moments = Moments::of(figures)?;
    let error = moments.sd / (moments.n as f64).sqrt();
    Some(two_sided(moments.mean, error, (moments.n - 1) as f64))
}

/// Two-sided p of an estimate with its standard error, against 0.
pub fn two_sided(estimate: f64, error: f64, degrees_of_freedom: f64) -> f64 {
    match (estimate == 0.0, error > 0.0) {
        (true, _) => 1.0,
        (false, false) => 0.0,
        (false, true) => 2.0 * upper_tail((estimate / error).abs(), degrees_of_freedom),
    }
}

/// The share of Student's t distribution above a point.
pub(crate) fn upper_tail(t: f64, degrees_of_freedom: f64) -> f64 {
    student(degrees_of_freedom).sf(t)
}

/// The point with a share `p` of Student's t distribution below it.
pub fn quantile(p: f64, degrees_of_freedom: f64) -> f64 {
    student(degrees_of_freedom).inverse_cdf(p)
}

fn student(degrees_of_freedom: f64) -> StudentsT {
    StudentsT::new(0.0, 1.0, degrees_of_freedom).expect("degrees of freedom are above zero")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_figure_has_no_interval_and_equal_ones_have_no_width() {
        assert_eq!(mean_interval(&[3.0], 0.95), None);
        assert_eq!(mean_p(&[]), None);
        assert_eq!(mean_interval(&[3.0; 5], 0.95), Some(Interval { low: 3.0, high: 3.0 }));
        assert_eq!((mean_p(&[3.0; 5]), mean_p(&[0.0; 5])), (Some(0.0), Some(1.0)));
    }
}
