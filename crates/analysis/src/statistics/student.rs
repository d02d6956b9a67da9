//! Student's t: intervals and tests of an estimate with a standard error.

use crate::statistics::Moments;
use stacklab_model::Interval;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// An estimate that follows Student's t distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Student {
    /// The estimate, in the unit of the figures.
    pub estimate: f64,
    /// Its standard error, in the same unit.
    pub error: f64,
    /// Degrees of freedom, above zero.
    pub degrees_of_freedom: f64,
}

impl Student {
    /// The interval that covers the true value with the given confidence (0.95 is 95 %).
    pub fn interval(&self, confidence: f64) -> Interval {
        let Student { estimate, error, degrees_of_freedom } = *self;
        let half =
            if error > 0.0 { t_quantile(0.5 + confidence / 2.0, degrees_of_freedom) * error } else { 0.0 };
        Interval { low: estimate - half, high: estimate + half }
    }

    /// Two-sided p that the true value is 0. Without an error it is 0, or 1 for an estimate of 0.
    pub fn p(&self) -> f64 {
        match (self.estimate == 0.0, self.error > 0.0) {
            (true, _) => 1.0,
            (false, false) => 0.0,
            (false, true) => 2.0 * self.above(self.estimate.abs()),
        }
    }

    /// p that the true value is outside a margin: the larger of two one-sided tests.
    ///
    /// Source: Schuirmann (1987).
    pub fn equivalence_p(&self, margin: &Interval) -> f64 {
        let beyond = |distance: f64| match (self.error > 0.0, distance >= 0.0) {
            (true, _) => self.above(distance),
            (false, true) => 0.0,
            (false, false) => 1.0,
        };
        beyond(self.estimate - margin.low).max(beyond(margin.high - self.estimate))
    }

    /// The chance of an estimate that is further from the true value on one side.
    fn above(&self, distance: f64) -> f64 {
        student(self.degrees_of_freedom).sf(distance / self.error)
    }
}

/// The point with a share `p` of Student's t distribution below it.
pub fn t_quantile(p: f64, degrees_of_freedom: f64) -> f64 {
    student(degrees_of_freedom).inverse_cdf(p)
}

fn student(degrees_of_freedom: f64) -> StudentsT {
    StudentsT::new(0.0, 1.0, degrees_of_freedom).expect("degrees of freedom are above zero")
}

/// The mean of the second sample minus that of the first, with possibly different variances; the degrees of freedom
/// are Welch and Satterthwaite's. `None` if either has fewer than two figures.
///
/// Source: Welch (1947).
pub fn welch(first: &[f64], second: &[f64]) -> Option<Student> {
    let (first, second) = (Moments::of(first)?, Moments::of(second)?);
    let (a, b) = (first.error().powi(2), second.error().powi(2));
    let error = (a + b).sqrt();
    let degrees_of_freedom = if error > 0.0 {
        (a + b).powi(2) / (a * a / (first.n - 1.0) + b * b / (second.n - 1.0))
    } else {
        first.n + second.n - 2.0
    };
    Some(Student { estimate: second.mean - first.mean, error, degrees_of_freedom })
}

/// Half the width of the 95 % interval of the mean of `n` runs with a standard deviation; `None` below two runs.
pub fn half_width_of(sd: f64, n: usize) -> Option<f64> {
    (n >= 2).then(|| Moments { n: n as f64, mean: 0.0, sd }.interval(0.95).half_width())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_width_is_students() {
        // 2.776445 * 1.5811388 / sqrt(5), and 2.022691 / sqrt(40).
        assert!((half_width_of(1.581_138_8, 5).unwrap() - 1.963_243_2).abs() < 1e-6);
        assert!((half_width_of(1.0, 40).unwrap() - 0.319_816_4).abs() < 1e-6);
        assert_eq!(half_width_of(1.0, 1), None);
    }

    #[test]
    fn equal_figures_have_an_interval_of_no_width() {
        let of = |figures: &[f64]| Moments::of(figures).unwrap().student();
        assert_eq!(of(&[3.0; 5]).interval(0.95), Interval { low: 3.0, high: 3.0 });
        assert_eq!((of(&[3.0; 5]).p(), of(&[0.0; 5]).p()), (0.0, 1.0));
        let margin = Interval { low: -1.0, high: 1.0 };
        assert_eq!((of(&[0.5; 3]).equivalence_p(&margin), of(&[1.5; 3]).equivalence_p(&margin)), (0.0, 1.0));
    }

    #[test]
    fn samples_without_spread_are_equal_or_not() {
        assert_eq!(welch(&[1.0; 3], &[1.0; 4]).unwrap().p(), 1.0);
        let apart = welch(&[1.0; 3], &[2.0; 4]).unwrap();
        assert_eq!((apart.p(), apart.interval(0.95)), (0.0, Interval { low: 1.0, high: 1.0 }));
        assert_eq!(welch(&[1.0], &[2.0, 3.0]), None);
        let margin = Interval { low: -0.5, high: 0.5 };
        assert_eq!(
            (apart.equivalence_p(&margin), welch(&[1.0; 3], &[1.2; 4]).unwrap().equivalence_p(&margin)),
            (1.0, 0.0)
        );
    }

    #[test]
    fn equivalence_is_where_the_90_per_cent_interval_is_inside_the_margin() {
        let found = welch(&[1.0, 2.0, 3.0, 4.0], &[1.5, 2.5, 3.5, 4.0]).unwrap();
        let interval = found.interval(0.90);
        for (end, expected) in [(interval.high * 1.01, true), (interval.high * 0.99, false)] {
            let margin = Interval { low: -100.0, high: end };
            assert_eq!(found.equivalence_p(&margin) < 0.05, expected, "{end}");
        }
    }
}
