//! Multiple testing: adjusted p-values, to limit the errors of a whole family of tests.

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

/// Benjamini and Hochberg's step-up p: reject where it is below 0.05, and at most 5 % of the claims are false on
/// average. In the order given.
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
}
