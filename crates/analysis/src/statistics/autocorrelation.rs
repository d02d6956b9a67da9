//! Lag-1 autocorrelation of runs, and the factor by which it widens the interval of the mean.

use crate::statistics::bootstrap::SplitMix64;
use crate::statistics::moments::Moments;

/// Minimum number of figures for a correlation to be told.
const LEAST: usize = 8;
/// Minimum number of figures for the test whose result widens intervals.
const LEAST_TESTED: usize = 20;
/// Level of the test, and the number of permutations that its p is taken from.
const LEVEL: f64 = 0.05;
const PERMUTATIONS: usize = 999;

/// The correlation with the maximum widening factor; beyond it, the figures are worth no more than one figure.
const MOST: f64 = 0.8;

/// The correlation of consecutive figures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Autocorrelation {
    /// The observed correlation at lag 1, from -1 to 1.
    pub lag1: f64,
    /// The same, corrected for the bias from estimating the mean: (n r + 1) / (n - 4).
    pub corrected: f64,
    /// Whether the test finds a correlation: of 20 figures or more, at most 5 % of all orders have one as large.
    pub alike: bool,
    /// The factor by which to widen the interval of the mean: sqrt((1 + r) / (1 - r)) of `corrected` if runs are
    /// correlated, which makes n runs count as n (1 - r) / (1 + r); otherwise 1.
    pub widening: f64,
}

/// The correlation of each figure with the previous one. `None` with fewer than 8 figures, or if all are equal.
///
/// Source: Box and Jenkins, Time Series Analysis, section 2.1; bias by Kendall (1954): E r = rho - (1 + 4 rho) / n;
/// effective number by Bartlett (1935) for a first-order autoregression.
pub fn autocorrelation(figures: &[f64]) -> Option<Autocorrelation> {
    let n = figures.len();
    let moments = Moments::of(figures).filter(|moments| n >= LEAST && moments.sd > 0.0)?;
    let product: f64 =
        figures.windows(2).map(|pair| (pair[0] - moments.mean) * (pair[1] - moments.mean)).sum();
    let lag1 = product / (moments.sd.powi(2) * (n - 1) as f64);
    let corrected = (n as f64 * lag1 + 1.0) / (n - 4) as f64;
    let alike = n >= LEAST_TESTED && permutation_p(figures, moments.mean, product) <= LEVEL;
    let r = corrected.min(MOST);
    let widening = if alike { ((1.0 + r) / (1.0 - r)).sqrt() } else { 1.0 };
    Some(Autocorrelation { lag1, corrected, alike, widening })
}

/// One-sided p of a sum of products of neighbours as large as this one in a random order of the figures. Sampled, with
/// the same permutations each time.
fn permutation_p(figures: &[f64], mean: f64, observed: f64) -> f64 {
    let mut distances: Vec<f64> = figures.iter().map(|figure| figure - mean).collect();
    let mut generator = SplitMix64(figures.len() as u64);
    let mut as_large = 1;
    for _ in 0..PERMUTATIONS {
        for last in (1..distances.len()).rev() {
            distances.swap(last, generator.below(last + 1));
        }
        let product: f64 = distances.windows(2).map(|pair| pair[0] * pair[1]).sum();
        as_large += usize::from(product >= observed);
    }
    as_large as f64 / (PERMUTATIONS + 1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_that_wander_widen_the_interval_and_those_that_alternate_do_not() {
        let wandering = [1.0, 1.2, 1.4, 1.3, 1.8, 2.0, 2.2, 2.1, 2.5, 2.4].repeat(2);
        let found = autocorrelation(&wandering).unwrap();
        assert!(found.alike && found.widening > 1.5, "{found:?}");
        let few = autocorrelation(&wandering[..10]).unwrap();
        assert!(few.corrected > 0.5 && few.widening == 1.0, "{few:?}");
        let alternating = [1.0, 2.0, 1.1, 2.1, 0.9, 1.9, 1.0, 2.2];
        let found = autocorrelation(&alternating).unwrap();
        assert!(!found.alike && found.lag1 < -0.5 && found.widening == 1.0, "{found:?}");
    }

    #[test]
    fn independent_figures_are_widened_in_one_of_twenty_samples() {
        let mut generator = SplitMix64(11);
        let mut figure = || generator.below(1 << 20) as f64;
        let widened = (0..1000)
            .filter(|_| {
                let sample: Vec<f64> = (0..20).map(|_| figure()).collect();
                autocorrelation(&sample).unwrap().alike
            })
            .count();
        // Five standard deviations of a binomial with n = 1000 and p = 0.05.
        assert!((15..=85).contains(&widened), "{widened} of 1000");
    }

    #[test]
    fn few_or_equal_figures_say_nothing() {
        assert_eq!(autocorrelation(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]), None);
        assert_eq!(autocorrelation(&[1.0; 9]), None);
    }
}
