//! Tests of signs and signed ranks: whether distances lie about zero, without a distribution of their size.
//!
//! Under the null hypothesis each rank has either sign with the same chance, whatever the figures look like. So the
//! distribution of the sum of the negative ranks is known exactly (Wilcoxon 1945; Conover, Practical Nonparametric
//! Statistics, section 5.7).

use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, Normal};

/// Above this many distances the sum of ranks is taken as normal.
const MAX_EXACT: usize = 60;

/// Two-sided p that the distances are symmetric about zero. Distances of zero are left out; without any other it is 1.
pub(crate) fn signed_rank_p(distances: &[f64]) -> f64 {
    let ranks = SignedRanks::of(distances);
    let smaller = ranks.negative.min(ranks.positive);
    (2.0 * ranks.chance_of_at_most(smaller)).min(1.0)
}

/// One-sided p: small if the distances are above zero.
pub(crate) fn signed_rank_p_above(distances: &[f64]) -> f64 {
    let ranks = SignedRanks::of(distances);
    ranks.chance_of_at_most(ranks.negative)
}

/// Two-sided p that the median distance is zero, by the number of distances on the side that has more: they may have
/// any shape. Distances of zero count against each side.
pub(crate) fn sign_p(distances: &[f64]) -> f64 {
    let above = distances.iter().filter(|distance| **distance > 0.0).count();
    let below = distances.iter().filter(|distance| **distance < 0.0).count();
    (2.0 * chance_of_at_least(above.max(below), distances.len())).min(1.0)
}

/// One-sided p: small if most distances are above zero.
pub(crate) fn sign_p_above(distances: &[f64]) -> f64 {
    let above = distances.iter().filter(|distance| **distance > 0.0).count();
    chance_of_at_least(above, distances.len())
}

/// The chance of at least that number of heads of `n` coins.
fn chance_of_at_least(heads: usize, n: usize) -> f64 {
    let tails = Binomial::new(0.5, n as u64).expect("one half is a probability");
    tails.cdf((n - heads) as u64)
}

/// Twice the ranks by size, so that the mean ranks of ties are whole numbers.
struct SignedRanks {
    doubled: Vec<usize>,
    /// Sums of the doubled ranks of distances below and above zero.
    negative: usize,
    positive: usize,
}

impl SignedRanks {
    fn of(distances: &[f64]) -> Self {
        let mut sorted: Vec<f64> = distances.iter().copied().filter(|distance| *distance != 0.0).collect();
        sorted.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
        let mut ranks = SignedRanks { doubled: Vec::new(), negative: 0, positive: 0 };
        let mut below = 0;
        for ties in sorted.chunk_by(|a, b| a.abs() == b.abs()) {
            // The mean of the ranks `below + 1` to `below + ties`, doubled.
            let doubled = 2 * below + ties.len() + 1;
            for distance in ties {
                ranks.doubled.push(doubled);
                if *distance < 0.0 {
                    ranks.negative += doubled;
                } else {
                    ranks.positive += doubled;
                }
            }
            below += ties.len();
        }
        ranks
    }

    /// The chance that the ranks of one sign add up to at most `sum`, if each sign is as likely as the other.
    fn chance_of_at_most(&self, sum: usize) -> f64 {
        if self.doubled.len() > MAX_EXACT {
            return self.normal_chance_of_at_most(sum);
        }
        // The chance of each sum, one rank after the other.
        let mut chances = vec![0.0; sum + 1];
        chances[0] = 1.0;
        for &rank in &self.doubled {
            for place in (0..chances.len()).rev() {
                let with_rank = if place >= rank { chances[place - rank] } else { 0.0 };
                chances[place] = 0.5 * (chances[place] + with_rank);
            }
        }
        // Rounding aside, of all sums together.
        chances.iter().sum::<f64>().min(1.0)
    }

    fn normal_chance_of_at_most(&self, sum: usize) -> f64 {
        let mut mean = 0.0;
        let mut variance = 0.0;
        for &rank in &self.doubled {
            mean += rank as f64 / 2.0;
            variance += (rank as f64 / 2.0).powi(2);
        }
        // Half a rank for continuity.
        let distance = (sum as f64 + 1.0 - mean) / variance.sqrt();
        Normal::standard().cdf(distance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against scipy.stats.wilcoxon 1.17.1: two-sided, and with alternative "greater".
    #[track_caller]
    fn agrees(distances: &[f64], two_sided: f64, above: f64) {
        let found = [signed_rank_p(distances), signed_rank_p_above(distances)];
        for (found, scipy) in found.into_iter().zip([two_sided, above]) {
            assert!((found / scipy - 1.0).abs() < 1e-9, "{found}, SciPy has {scipy}");
        }
    }

    #[test]
    fn few_distances_agree_with_scipy() {
        agrees(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 0.03125, 0.015625);
        agrees(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], 0.015625, 0.0078125);
        // The depression scale of Hollander and Wolfe, Nonparametric Statistical Methods, example 3.1.
        let scale = [0.952, -0.147, 1.022, 0.430, 0.620, 0.590, 0.490, -0.080, 0.010];
        agrees(&scale, 0.0390625, 0.01953125);
        agrees(&scale.map(|distance| -distance), 0.0390625, 0.986328125);
    }

    #[test]
    fn ties_and_zeros_agree_with_scipy() {
        // By all 2^11 signs (PermutationMethod).
        let ties = [1.0, 1.0, -1.0, 2.0, 2.0, -3.0, 3.0, 4.0, 4.0, 4.0, -2.0, 0.0, 0.0];
        agrees(&ties, 0.111328125, 0.0556640625);
    }

    #[test]
    fn many_distances_agree_with_scipy() {
        let forty: Vec<f64> =
            (0..40).map(|i| (f64::from(i % 7) - 2.3) * (1.0 + f64::from(i) * 0.01)).collect();
        agrees(&forty, 0.08415465162215696, 0.04207732581107848);
        let sixty: Vec<f64> =
            (0..60).map(|i| (f64::from(i * 37 % 60) - 24.5) * (1.0 + f64::from(i) * 1e-3)).collect();
        agrees(&sixty, 0.040459225286162415, 0.020229612643081207);
        // Normal, with ties and one zero.
        let eighty: Vec<f64> = (0..80).map(|i| f64::from(i * 37 % 80 - 33)).collect();
        agrees(&eighty, 0.02052634474140464, 0.01026317237070232);
    }

    #[test]
    fn nothing_is_shown_by_zeros() {
        for none in [&[][..], &[0.0; 9], &[-1.0, 1.0]] {
            assert_eq!(signed_rank_p(none), 1.0, "{none:?}");
        }
        assert_eq!(signed_rank_p_above(&[]), 1.0);
    }

    fn make_signs(above: usize, below: usize) -> Vec<f64> {
        [vec![1.0; above], vec![-0.1; below]].concat()
    }

    #[test]
    fn signs_agree_with_scipy() {
        // scipy.stats.binomtest: 7 of 7, 9 of 10 and 15 of 20; then with alternative "greater".
        for (above, below, scipy, greater) in [
            (7, 0, 0.015625, 0.0078125),
            (9, 1, 0.021484375, 0.0107421875),
            (15, 5, 0.04138946533203125, 0.020694732666015625),
        ] {
            assert!((sign_p(&make_signs(above, below)) / scipy - 1.0).abs() < 1e-9);
            assert!((sign_p(&make_signs(below, above)) / scipy - 1.0).abs() < 1e-9);
            assert!((sign_p_above(&make_signs(above, below)) / greater - 1.0).abs() < 1e-9);
        }
        // Zeros are on neither side: seven of ten are no majority that is sure.
        let zeros = [make_signs(7, 0), vec![0.0; 3]].concat();
        assert!((sign_p(&zeros) - 0.34375).abs() < 1e-12 && (sign_p_above(&zeros) - 0.171875).abs() < 1e-12);
        assert_eq!((sign_p(&[0.0; 4]), sign_p_above(&[])), (1.0, 1.0));
    }
}
