//! Mann and Whitney's test of two unpaired samples, and the shift between them.

use super::counting::{chosen_sums, left_out, two_sided};
use super::estimator::PointEstimate;
use super::median::{median, sorted};
use super::ranks::{doubled, tie_term};
use super::wilcoxon::ends;
use statrs::distribution::{ContinuousCDF, Normal};

/// Maximum total figures of both samples for the exact distribution.
const EXACT: usize = 40;

/// The test's result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MannWhitney {
    /// The number of pairs, one figure of each sample, with the second sample's figure larger; ties count one half.
    pub u: f64,
    /// Two-sided p that both samples come from one distribution.
    pub p: f64,
}

/// Tests whether two samples come from one distribution. With up to 40 figures in total, the distribution is exact,
/// ties included; above, it is normal with corrections for ties and continuity. `None` if a sample is empty.
///
/// Source: Mann and Whitney (1947); Hollander, Wolfe and Chicken, section 4.1.
pub fn mann_whitney(first: &[f64], second: &[f64]) -> Option<MannWhitney> {
    let (n1, n2) = (first.len(), second.len());
    if n1 == 0 || n2 == 0 {
        return None;
    }
    let all: Vec<f64> = second.iter().chain(first).copied().collect();
    let ranks = doubled(&all);
    let sum: usize = ranks[..n2].iter().sum();
    let u = (sum as f64 - (n2 * (n2 + 1)) as f64) / 2.0;
    let p = if all.len() <= EXACT {
        two_sided(&chosen_sums(&ranks, n2), sum)
    } else {
        let (pairs, n) = ((n1 * n2) as f64, (n1 + n2) as f64);
        let variance = pairs / 12.0 * (n + 1.0 - tie_term(&all) / (n * (n - 1.0)));
        let distance = ((u - pairs / 2.0).abs() - 0.5).max(0.0);
        // Equal figures have no variance.
        if variance > 0.0 { (2.0 * Normal::standard().sf(distance / variance.sqrt())).min(1.0) } else { 1.0 }
    };
    Some(MannWhitney { u, p })
}

/// The shift of the second sample against the first: the median of the differences of all pairs (Hodges and Lehmann),
/// with the interval that corresponds to [`mann_whitney`], in the unit of the figures. `None` if a sample is empty.
///
/// Source: Hollander, Wolfe and Chicken, sections 4.2 and 4.3.
pub fn shift(first: &[f64], second: &[f64], confidence: f64) -> Option<PointEstimate> {
    let (n1, n2) = (first.len(), second.len());
    let differences: Vec<f64> = second.iter().flat_map(|b| first.iter().map(move |a| b - a)).collect();
    let differences = sorted(&differences);
    let estimate = median(&differences)?;
    let beyond = (1.0 - confidence) / 2.0;
    let out = if n1 + n2 <= EXACT {
        let likely = chosen_sums(&(1..=n1 + n2).collect::<Vec<_>>(), n2);
        left_out(&likely[n2 * (n2 + 1) / 2..], beyond)
    } else {
        let pairs = (n1 * n2) as f64;
        let sd = (pairs * (n1 + n2 + 1) as f64 / 12.0).sqrt();
        (pairs / 2.0 + Normal::standard().inverse_cdf(beyond) * sd).floor().max(0.0) as usize
    };
    Some(PointEstimate { estimate, interval: ends(&differences, out) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_apart_have_the_least_p_there_is() {
        let found = mann_whitney(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]).unwrap();
        assert_eq!(found.u, 9.0);
        assert!((found.p - 0.1).abs() < 1e-12);
        assert_eq!(mann_whitney(&[], &[1.0]), None);
    }

    #[test]
    fn equal_figures_are_no_evidence() {
        assert!((mann_whitney(&[2.0; 5], &[2.0; 6]).unwrap().p - 1.0).abs() < 1e-12);
        assert_eq!(mann_whitney(&[2.0; 50], &[2.0; 60]).unwrap().p, 1.0);
    }

    #[test]
    fn the_shift_is_in_the_unit_of_the_figures() {
        let first = [1.0, 2.0, 3.0, 4.0, 5.0];
        let second = first.map(|figure| figure + 10.0);
        let found = shift(&first, &second, 0.95).unwrap();
        assert_eq!(found.estimate, 10.0);
        let interval = found.interval.unwrap();
        assert!(interval.low < 10.0 && interval.high > 10.0);
        assert_eq!(shift(&[1.0], &[2.0], 0.95).unwrap().interval, None);
    }
}
