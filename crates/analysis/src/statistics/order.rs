//! Tests of the order of runs: drift and autocorrelation.

use crate::statistics::{autocorrelation, trend};
use stacklab_model::Order;

/// Tests figures in the order of measuring. `None` with fewer than 6, or if all are equal.
pub(crate) fn order(figures: &[f64]) -> Option<Order> {
    let trend = trend(figures)?;
    let alike = autocorrelation(figures);
    Some(Order {
        drift: trend.tau,
        drift_p: trend.p,
        autocorrelation: alike.map(|alike| alike.corrected),
        widening: alike.map_or(1.0, |alike| alike.widening),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rise_is_seen_in_six_figures_and_a_resemblance_in_eight() {
        let rising: Vec<f64> = (0..20).map(f64::from).collect();
        let found = order(&rising).unwrap();
        assert!(found.drift == 1.0 && found.drift_p < 0.01 && found.widening > 1.0, "{found:?}");
        assert!(order(&rising[..8]).unwrap().autocorrelation.is_some());
        assert_eq!(order(&rising[..6]).unwrap().autocorrelation, None);
        assert_eq!(order(&rising[..5]), None);
        assert_eq!(order(&[1.0; 8]), None);
    }
}
