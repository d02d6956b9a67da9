//! Exact null distributions of rank sums, by counting. Counts are stored as probabilities, to avoid overflow.

/// Signed ranks: the probability of each sum of positive ranks, if each rank is positive with probability one half.
/// The index is the sum.
pub(crate) fn signed_sums(ranks: &[usize]) -> Vec<f64> {
    let mut likely = vec![0.0; ranks.iter().sum::<usize>() + 1];
    likely[0] = 1.0;
    let mut reach = 0;
    for rank in ranks {
        reach += rank;
        for sum in (0..=reach).rev() {
            let with = if sum >= *rank { likely[sum - rank] } else { 0.0 };
            likely[sum] = (likely[sum] + with) / 2.0;
        }
    }
    likely
}

/// Two samples: the probability of each sum of the ranks of `chosen` figures out of all, if every choice is equally
/// likely. The index is the sum.
pub(crate) fn chosen_sums(ranks: &[usize], chosen: usize) -> Vec<f64> {
    let most: usize = ranks.iter().sum();
    // likely[k][sum] after some ranks: the probability that k of them were chosen, with that sum.
    let mut likely = vec![vec![0.0; most + 1]; chosen + 1];
    likely[0][0] = 1.0;
    for (seen, rank) in ranks.iter().enumerate() {
        let left = (ranks.len() - seen) as f64;
        for k in (0..=chosen.min(seen + 1)).rev() {
            for sum in (0..=most).rev() {
                // The next rank is chosen with probability (still to choose) / (still to come).
                let passed_by = likely[k][sum] * (1.0 - (chosen - k) as f64 / left).max(0.0);
                let taken = if k > 0 && sum >= *rank {
                    likely[k - 1][sum - rank] * (chosen - k + 1) as f64 / left
                } else {
                    0.0
                };
                likely[k][sum] = passed_by + taken;
            }
        }
    }
    likely.swap_remove(chosen)
}

/// Two-sided p of a sum: twice the smaller tail, including the sum's own probability, at most 1.
pub(crate) fn two_sided(likely: &[f64], sum: usize) -> f64 {
    let below: f64 = likely[..=sum].iter().sum();
    let above: f64 = likely[sum..].iter().sum();
    (2.0 * below.min(above)).min(1.0)
}

/// The largest count c with P(sum < c) <= `share`: this many sums at the low end may be excluded.
pub(crate) fn left_out(likely: &[f64], share: f64) -> usize {
    let mut below = 0.0;
    likely
        .iter()
        .take_while(|p| {
            below += **p;
            below <= share
        })
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_distributions_are_what_counting_by_hand_gives() {
        assert_eq!(signed_sums(&[1, 2]), [0.25, 0.25, 0.25, 0.25]);
        assert_eq!(signed_sums(&[1, 2, 3])[3], 0.25);
        // Two of three ranks: 3, 4 or 5.
        let sums = chosen_sums(&[1, 2, 3], 2);
        for (sum, likely) in sums.iter().enumerate() {
            let expected = if (3..=5).contains(&sum) { 1.0 / 3.0 } else { 0.0 };
            assert!((likely - expected).abs() < 1e-15, "{sum}: {likely}");
        }
    }

    #[test]
    fn all_sums_together_are_certain() {
        let ranks: Vec<usize> = (1..=30).collect();
        assert!((signed_sums(&ranks).iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!((chosen_sums(&ranks, 13).iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }
}
