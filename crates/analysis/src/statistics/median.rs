//! The median and its interval, without an assumption about the distribution.

use stacklab_model::Interval;
use statrs::distribution::{Binomial, DiscreteCDF};

/// The median: the mean of the two middle figures if their number is even (RFC 2330 section 11.3). `None` without
/// figures.
pub fn median(figures: &[f64]) -> Option<f64> {
    let sorted = sorted(figures);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some(sorted[middle - 1].midpoint(sorted[middle])),
    }
}

/// Two order statistics that enclose the median.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MedianInterval {
    /// The interval, in the unit of the figures.
    pub interval: Interval,
    /// Ranks of its ends, from 1.
    pub ranks: (usize, usize),
    /// The coverage of such an interval: at least the requested confidence (0.95 is 95 %).
    pub confidence: f64,
}

/// The narrowest symmetric pair of order statistics that covers the median with at least the given confidence. 20
/// figures take ranks 6 and 15 for 95 %. `None` if even the smallest and the largest figure do not cover it (fewer
/// than 6 figures for 95 %).
///
/// The number of figures below the median is binomial with one half (Conover, Practical Nonparametric Statistics,
/// section 3.2).
pub fn median_interval(figures: &[f64], confidence: f64) -> Option<MedianInterval> {
    let n = figures.len();
    let below = Binomial::new(0.5, n as u64).expect("one half is a probability");
    // The interval from rank r to n + 1 - r misses with probability 2 P(X < r).
    let missed = |rank: usize| 2.0 * below.cdf(rank as u64 - 1);
    let rank = (1..=n / 2).take_while(|rank| missed(*rank) <= 1.0 - confidence).last()?;
    let sorted = sorted(figures);
    Some(MedianInterval {
        interval: Interval { low: sorted[rank - 1], high: sorted[n - rank] },
        ranks: (rank, n + 1 - rank),
        confidence: 1.0 - missed(rank),
    })
}

fn sorted(figures: &[f64]) -> Vec<f64> {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_rfc_2330_is_between_the_two_in_the_middle() {
        assert_eq!(median(&[-2.0, 7.0, 7.0, 4.0, 18.0, -5.0]), Some(5.5));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn twenty_figures_take_ranks_6_and_15() {
        let figures: Vec<f64> = (1..=20).rev().map(f64::from).collect();
        let found = median_interval(&figures, 0.95).unwrap();
        assert_eq!((found.ranks, found.interval), ((6, 15), Interval { low: 6.0, high: 15.0 }));
        assert!((found.confidence - 0.9586105346679688).abs() < 1e-12);
    }

    #[test]
    fn five_figures_cannot_tell_at_95_per_cent() {
        assert_eq!(median_interval(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.95), None);
        let six = median_interval(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 0.95).unwrap();
        assert_eq!(six.ranks, (1, 6));
    }
}
