//! Wilcoxon's signed-rank test, and the corresponding estimate.

use super::counting::{left_out, signed_sums, two_sided};
use super::estimator::PointEstimate;
use super::median::{median, sorted};
use super::ranks::{doubled, tie_term};
use stacklab_model::Interval;
use statrs::distribution::{ContinuousCDF, Normal};

/// Maximum number of figures for the exact distribution; above it the normal approximation is accurate.
const EXACT: usize = 50;

/// The test's result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SignedRank {
    /// Sum of the ranks of the positive figures.
    pub positive: f64,
    /// Two-sided p that the figures are symmetric about 0.
    pub p: f64,
    /// The number of figures other than 0.
    pub n: usize,
}

/// Tests whether figures (differences of pairs) are symmetric about 0. Zeros are omitted, as by Wilcoxon; ties have
/// midranks. With up to 50 figures the distribution is exact, ties included; above, it is normal with the variance
/// corrected for ties. `None` if no figure differs from 0.
///
/// Source: Wilcoxon (1945); Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, section 3.1.
pub fn signed_rank(figures: &[f64]) -> Option<SignedRank> {
    let figures: Vec<f64> = figures.iter().copied().filter(|figure| *figure != 0.0).collect();
    let n = figures.len();
    if n == 0 {
        return None;
    }
    let sizes: Vec<f64> = figures.iter().map(|figure| figure.abs()).collect();
    let ranks = doubled(&sizes);
    let positive: usize =
        ranks.iter().zip(&figures).filter(|(_, figure)| **figure > 0.0).map(|(rank, _)| rank).sum();
    let p = if n <= EXACT {
        two_sided(&signed_sums(&ranks), positive)
    } else {
        let size = n as f64;
        let variance = size * (size + 1.0) * (2.0 * size + 1.0) / 24.0 - tie_term(&sizes) / 48.0;
        let z = (positive as f64 / 2.0 - size * (size + 1.0) / 4.0) / variance.sqrt();
        2.0 * Normal::standard().sf(z.abs())
    };
    Some(SignedRank { positive: positive as f64 / 2.0, p, n })
}

/// Hodges and Lehmann's estimate of the middle, the median of the means of all pairs of figures (each with itself too),
/// with the interval that belongs to [`signed_rank`], in the unit of the figures. `None` without figures; the interval
/// takes 6 figures for 95 %.
///
/// Source: Hollander, Wolfe and Chicken, sections 3.2 and 3.3.
pub fn hodges_lehmann(figures: &[f64], confidence: f64) -> Option<PointEstimate> {
    let n = figures.len();
    let mut means = Vec::with_capacity(n * (n + 1) / 2);
    for (place, one) in figures.iter().enumerate() {
        means.extend(figures[place..].iter().map(|other| one.midpoint(*other)));
    }
    let means = sorted(&means);
    let beyond = (1.0 - confidence) / 2.0;
    let out = if n <= EXACT {
        left_out(&signed_sums(&(1..=n).collect::<Vec<_>>()), beyond)
    } else {
        let size = n as f64;
        let sd = (size * (size + 1.0) * (2.0 * size + 1.0) / 24.0).sqrt();
        (size * (size + 1.0) / 4.0 + Normal::standard().inverse_cdf(beyond) * sd).floor().max(0.0) as usize
    };
    Some(PointEstimate { estimate: median(&means)?, interval: ends(&means, out) })
}

/// The interval from the `out`-th figure to the `out`-th from the end, counted from 1.
pub(super) fn ends(sorted: &[f64], out: usize) -> Option<Interval> {
    let low = *sorted.get(out.checked_sub(1)?)?;
    Some(Interval { low, high: sorted[sorted.len() - out] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_all_on_one_side_have_the_least_p_there_is() {
        let found = signed_rank(&[0.3, 0.1, 0.2, 0.5, 0.7, 0.6]).unwrap();
        assert_eq!((found.positive, found.n), (21.0, 6));
        assert!((found.p - 2.0 / 64.0).abs() < 1e-15);
    }

    #[test]
    fn zeros_say_nothing() {
        assert_eq!(signed_rank(&[0.0, 0.0]), None);
        assert_eq!(signed_rank(&[0.0, 1.0, -2.0]), signed_rank(&[1.0, -2.0]));
    }

    #[test]
    fn six_figures_have_an_interval_and_five_have_none() {
        let figures = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
        // Six figures: only the two extreme sums may be left out, 2/64 in all.
        let six = hodges_lehmann(&figures, 0.95).unwrap();
        assert_eq!(six.interval, Some(Interval { low: 1.0, high: 32.0 }));
        assert_eq!(hodges_lehmann(&figures[..5], 0.95).unwrap().interval, None);
        assert_eq!(hodges_lehmann(&[], 0.95), None);
    }
}
