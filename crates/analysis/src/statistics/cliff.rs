//! Cliff's delta: how often one sample's figures exceed the other's.

/// The share of pairs with a larger figure in the second sample, minus the share with a smaller one: 1 or -1 if the
/// samples do not overlap, 0 if neither is larger on balance. `None` if a sample is empty.
///
/// Source: Cliff (1993).
pub fn cliffs_delta(first: &[f64], second: &[f64]) -> Option<f64> {
    let pairs = first.len() * second.len();
    let lead: i64 =
        second.iter().flat_map(|b| first.iter().map(move |a| i64::from(b > a) - i64::from(b < a))).sum();
    (pairs > 0).then(|| lead as f64 / pairs as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_apart_have_delta_one() {
        assert_eq!(cliffs_delta(&[1.0, 2.0], &[3.0, 4.0]), Some(1.0));
        assert_eq!(cliffs_delta(&[3.0, 4.0], &[1.0, 2.0]), Some(-1.0));
        assert_eq!(cliffs_delta(&[1.0, 2.0], &[1.0, 2.0]), Some(0.0));
        assert_eq!(cliffs_delta(&[], &[1.0]), None);
    }
}
