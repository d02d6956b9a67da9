//! Welch's t test of two unpaired samples.

use super::mean::{quantile, two_sided, upper_tail};
use crate::statistics::moments::Moments;
use stacklab_model::Interval;

/// The test's result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Welch {
    /// Mean of the second sample minus that of the first, in the unit of the figures.
    pub difference: f64,
    /// Its standard error, in the same unit.
    pub error: f64,
    /// Welch and Satterthwaite's degrees of freedom.
    pub degrees_of_freedom: f64,
    /// Two-sided p that the means are equal.
    pub p: f64,
}

impl Welch {
    /// The interval that covers the difference with the given confidence (0.95 is 95 %).
    pub fn interval(&self, confidence: f64) -> Interval {
        let half = if self.error > 0.0 {
            quantile(0.5 + confidence / 2.0, self.degrees_of_freedom) * self.error
        } else {
            0.0
        };
        Interval { low: self.difference - half, high: self.difference + half }
    }

    /// p of a difference at the ends of a margin (in the unit of the figures) or beyond: the larger of two one-sided
    /// tests.
    ///
    /// Source: Schuirmann (1987), with Welch's error.
    pub fn equivalence_p(&self, margin: &Interval) -> f64 {
        let beyond = |distance: f64| match (self.error > 0.0, distance >= 0.0) {
            (true, _) => upper_tail(distance / self.error, self.degrees_of_freedom),
            (false, true) => 0.0,
            (false, false) => 1.0,
        };
        beyond(self.difference - margin.low).max(beyond(margin.high - self.difference))
    }
}

/// Compares the means of two samples with possibly different variances. `None` if either has fewer than two figures.
///
/// Source: Welch (1947).
pub fn welch(first: &[f64], second: &[f64]) -> Option<Welch> {
    let (first, second) = (Moments::of(first)?, Moments::of(second)?);
    let (a, b) = (first.error().powi(2), second.error().powi(2));
    let error = (a + b).sqrt();
    let difference = second.mean - first.mean;
    let degrees_of_freedom = if error > 0.0 {
        (a + b).powi(2) / (a * a / (first.n - 1) as f64 + b * b / (second.n - 1) as f64)
    } else {
        (first.n + second.n - 2) as f64
    };
    Some(Welch { difference, error, degrees_of_freedom, p: two_sided(difference, error, degrees_of_freedom) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_without_spread_are_equal_or_not() {
        assert_eq!(welch(&[1.0; 3], &[1.0; 4]).unwrap().p, 1.0);
        let apart = welch(&[1.0; 3], &[2.0; 4]).unwrap();
        assert_eq!((apart.p, apart.interval(0.95)), (0.0, Interval { low: 1.0, high: 1.0 }));
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
