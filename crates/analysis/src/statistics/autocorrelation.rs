//! Lag-1 autocorrelation of runs, and the factor by which it widens the interval of the mean.

use crate::statistics::moments::Moments;

/// Minimum number of figures for the test of autocorrelation; with fewer, chance would widen the interval of a third
/// of samples.
const LEAST: usize = 8;

/// The correlation with the maximum widening factor; beyond it, the figures are worth no more than one figure.
const MOST: f64 = 0.8;

/// The correlation of consecutive figures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Autocorrelation {
    /// The observed correlation at lag 1, from -1 to 1.
    pub lag1: f64,
    /// The same, corrected for the bias from estimating the mean: (n r + 1) / (n - 4).
    pub corrected: f64,
    /// Whether the test finds a correlation: `corrected` is above 1 / sqrt(n), its standard error without
    /// correlation.
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
    let alike = corrected > 1.0 / (n as f64).sqrt();
    let r = corrected.min(MOST);
    let widening = if alike { ((1.0 + r) / (1.0 - r)).sqrt() } else { 1.0 };
    Some(Autocorrelation { lag1, corrected, alike, widening })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_that_wander_widen_the_interval_and_those_that_alternate_do_not() {
        let wandering = [1.0, 1.2, 1.4, 1.3, 1.8, 2.0, 2.2, 2.1, 2.5, 2.4];
        let found = autocorrelation(&wandering).unwrap();
        assert!(found.alike && found.widening > 1.5, "{found:?}");
        let alternating = [1.0, 2.0, 1.1, 2.1, 0.9, 1.9, 1.0, 2.2];
        let found = autocorrelation(&alternating).unwrap();
        assert!(!found.alike && found.lag1 < -0.5 && found.widening == 1.0, "{found:?}");
    }

    #[test]
    fn few_or_equal_figures_say_nothing() {
        assert_eq!(autocorrelation(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]), None);
        assert_eq!(autocorrelation(&[1.0; 9]), None);
    }
}
