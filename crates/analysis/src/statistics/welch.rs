//! Welch's t test of two samples that are not paired.

use super::mean::{quantile, two_sided};
use crate::moments::Moments;
use stacklab_model::Interval;

/// The test's answer.
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
}

/// Compares the means of two samples whose spreads may differ. `None` where either has fewer than two figures.
///
/// Source: Welch (1947).
pub fn welch(first: &[f64], second: &[f64]) -> Option<Welch> {
    let (first, second) = (Moments::of(first)?, Moments::of(second)?);
    let part = |moments: &Moments| moments.sd.powi(2) / moments.n as f64;
    let (a, b) = (part(&first), part(&second));
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
    }
}
