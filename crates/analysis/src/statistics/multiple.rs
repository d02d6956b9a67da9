//! Families of tests: claims of which at most a stated share is expected to be false.

/// Holm's step-down p: reject where it is below 0.05, and the chance of any false claim is below 5 %. In the order
/// given.
///
/// Source: Holm (1979).
pub fn holm(p: &[f64]) -> Vec<f64> {
    let n = p.len();
    let mut least = 0.0_f64;
    let mut adjusted = vec![0.0; n];
    for (place, index) in ascending(p).into_iter().enumerate() {
        least = least.max((p[index] * (n - place) as f64).min(1.0));
        adjusted[index] = least;
    }
    adjusted
}

/// Benjamini and Hochberg's step-up p: reject where it is at most 0.05, and at most 5 % of the claims are expected to
/// be false. In the order given.
///
/// Source: Benjamini and Hochberg (1995).
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let n = p.len();
    let mut most = 1.0_f64;
    let mut adjusted = vec![0.0; n];
    for (place, index) in ascending(p).into_iter().enumerate().rev() {
        most = most.min(p[index] * n as f64 / (place + 1) as f64);
        adjusted[index] = most;
    }
    adjusted
}

/// The claims of e-values: the k largest, where each is at least `n / (level k)`, with the largest such k. At most a
/// share `level` of them is expected to be false, however the e-values depend on each other and whenever they are
/// looked at.
///
/// Source: Wang and Ramdas (2022), the e-BH procedure.
pub fn e_benjamini_hochberg(e: &[f64], level: f64) -> Vec<bool> {
    let inverse: Vec<f64> = e.iter().map(|e| 1.0 / e).collect();
    // Of exactly the level, rounding aside.
    benjamini_hochberg(&inverse).into_iter().map(|adjusted| adjusted <= level * (1.0 + 1e-12)).collect()
}

fn ascending(p: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_test_needs_no_adjustment_and_none_has_none() {
        assert_eq!((holm(&[0.03]), benjamini_hochberg(&[0.03])), (vec![0.03], vec![0.03]));
        assert_eq!((holm(&[]), benjamini_hochberg(&[])), (vec![], vec![]));
    }

    #[test]
    fn nothing_exceeds_one() {
        assert_eq!(holm(&[0.6, 0.9]), [1.0, 1.0]);
        assert_eq!(benjamini_hochberg(&[0.6, 0.9]), [0.9, 0.9]);
    }

    #[test]
    fn e_values_are_claimed_together() {
        let claimed = |e: &[f64]| e_benjamini_hochberg(e, 0.05);
        // Alone 20 are needed; of three, 60, 30 and 20.
        assert_eq!(claimed(&[19.9]), [false]);
        assert_eq!(claimed(&[20.0]), [true]);
        assert_eq!(claimed(&[59.0, 29.0, 1.0]), [false; 3]);
        assert_eq!(claimed(&[59.0, 31.0, 1.0]), [true, true, false]);
        assert_eq!(claimed(&[20.0, f64::INFINITY, 20.0]), [true; 3]);
        assert_eq!(claimed(&[0.0, 0.0]), [false; 2]);
    }
}
