//! Friedman's test of more than two arms measured in the same blocks.

use super::ranks::{midranks, tie_term};
use statrs::distribution::{ChiSquared, ContinuousCDF};

/// The test's result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Friedman {
    /// The statistic, corrected for ties.
    pub statistic: f64,
    /// p that all arms are equal (chi-squared; the degrees of freedom are the number of arms minus one).
    pub p: f64,
    /// Number of blocks.
    pub blocks: usize,
    /// Number of arms.
    pub arms: usize,
}

/// Tests whether the arms differ at all. Each block contains a figure of each arm, in the arms' order. `None` with
/// fewer than three arms or two blocks, or with blocks of unequal length. Blocks with equal figures only are not
/// evidence.
///
/// Source: Friedman (1937); Conover, section 5.8.
pub fn friedman(blocks: &[Vec<f64>]) -> Option<Friedman> {
    let arms = blocks.first()?.len();
    if arms < 3 || blocks.len() < 2 || blocks.iter().any(|block| block.len() != arms) {
        return None;
    }
    let mut sums = vec![0.0; arms];
    for block in blocks {
        for (sum, rank) in sums.iter_mut().zip(midranks(block)) {
            *sum += rank;
        }
    }
    let (n, k) = (blocks.len() as f64, arms as f64);
    let ties: f64 = blocks.iter().map(|block| tie_term(block)).sum();
    let correction = 1.0 - ties / (n * k * (k * k - 1.0));
    let squares: f64 = sums.iter().map(|sum| sum * sum).sum();
    let (statistic, p) = if correction > 0.0 {
        let statistic = (12.0 / (n * k * (k + 1.0)) * squares - 3.0 * n * (k + 1.0)).max(0.0) / correction;
        (statistic, ChiSquared::new(k - 1.0).expect("there are three arms").sf(statistic))
    } else {
        (0.0, 1.0)
    };
    Some(Friedman { statistic, p, blocks: blocks.len(), arms })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_arms_are_not_its_business_and_equal_ones_no_evidence() {
        assert_eq!(friedman(&[vec![1.0, 2.0], vec![1.0, 2.0]]), None);
        assert_eq!(friedman(&vec![vec![1.0; 3]; 4]).unwrap().p, 1.0);
        assert_eq!(friedman(&[vec![1.0, 2.0, 3.0], vec![1.0, 2.0]]), None);
    }

    #[test]
    fn arms_in_the_same_order_in_every_block_have_the_largest_statistic() {
        let found = friedman(&vec![vec![1.0, 2.0, 3.0]; 6]).unwrap();
        assert!((found.statistic - 12.0).abs() < 1e-12);
    }
}
