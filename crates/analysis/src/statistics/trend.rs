//! Mann and Kendall's test for drift: do figures rise or fall in their order?

use super::ranks::tie_term;
use statrs::distribution::{ContinuousCDF, Normal};

/// Minimum number of figures for the test of drift.
const LEAST: usize = 6;

/// The test's result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// Pairs that rise minus pairs that fall, divided by all pairs: 1 if every figure is above all earlier ones.
    pub tau: f64,
    /// Two-sided p of no trend (normal approximation, corrected for ties).
    pub p: f64,
}

/// Tests whether figures rise or fall over time. `None` with fewer than 6 figures, or if all are equal.
///
/// Source: Mann (1945), Kendall (1975).
pub fn trend(figures: &[f64]) -> Option<Trend> {
    let n = figures.len();
    if n < LEAST {
        return None;
    }
    let mut score = 0_i64;
    for (place, later) in figures.iter().enumerate() {
        for earlier in &figures[..place] {
            score += i64::from(later > earlier) - i64::from(later < earlier);
        }
    }
    let size = n as f64;
    // Over ties of t figures: t (t - 1) (2 t + 5) = 2 (t^3 - t) + 3 t (t - 1).
    let ties = 2.0 * tie_term(figures) + 3.0 * pairs_tied(figures);
    let variance = (size * (size - 1.0) * (2.0 * size + 5.0) - ties) / 18.0;
    (variance > 0.0).then(|| Trend {
        tau: score as f64 / (size * (size - 1.0) / 2.0),
        p: 2.0 * Normal::standard().sf(score.abs() as f64 / variance.sqrt()),
    })
}

/// The sum of t (t - 1) over ties of t figures.
fn pairs_tied(figures: &[f64]) -> f64 {
    super::ranks::ties(figures).iter().map(|tie| (tie.len() * (tie.len() - 1)) as f64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rise_is_a_trend_and_a_constant_is_none() {
        let rising: Vec<f64> = (0..10).map(f64::from).collect();
        let found = trend(&rising).unwrap();
        assert_eq!(found.tau, 1.0);
        assert!(found.p < 0.001);
        assert_eq!(trend(&[5.0; 10]), None);
        assert_eq!(trend(&rising[..5]), None);
    }
}
