//! Evidence about a mean that stays valid whenever it is looked at: e-values.
//!
//! An e-value has an expectation of at most 1 if the null hypothesis is true, at any time: the chance that it ever
//! exceeds 1/a is at most a (Ville's inequality). So it may be computed after each trial, and measuring may stop
//! because of it.

use crate::statistics::Moments;
use stacklab_model::Interval;

/// Variance of the effect that the alternative expects, in variances of a figure.
const SPREAD: f64 = 1.0;

/// The e-value against "the mean is `null`": Student's t with a normal mixture over effect sizes.
///
/// With n figures, nu = n - 1 and k = 1 + n: `k^(-1/2) ((1 + t^2/nu) / (1 + t^2/(nu k)))^(n/2)`.
///
/// Source: Lai (1976); Wang and Ramdas, arXiv 2310.03722.
pub fn e_value(moments: &Moments, null: f64) -> f64 {
    let n = moments.n;
    let (nu, k) = (n - 1.0, 1.0 + SPREAD * n);
    let distance = moments.mean - null;
    let ratio = match (distance == 0.0, moments.sd > 0.0) {
        (true, _) => 1.0,
        // Its limit for figures that are all alike.
        (false, false) => k,
        (false, true) => {
            let squared = n * (distance / moments.sd).powi(2);
            (1.0 + squared / nu) / (1.0 + squared / (nu * k))
        }
    };
    ratio.powf(n / 2.0) / k.sqrt()
}

/// The e-value against "the mean is outside `low..high`": the smaller one of both ends, where the mean is inside.
pub fn e_value_inside(moments: &Moments, low: f64, high: f64) -> f64 {
    if moments.mean <= low || moments.mean >= high {
        return 0.0;
    }
    e_value(moments, low).min(e_value(moments, high))
}

/// The means that [`e_value`] does not refute at a level: where it is below `1 / level`. At any time, so that the
/// chance that the true mean is ever outside is at most `level`. `None` where no distance is refuted yet.
///
/// With `R = (sqrt(k) / level)^(2/n)`, its half-width is `error * sqrt(nu (R - 1) / (1 - R / k))` if `R < k`.
pub fn confidence_sequence(moments: &Moments, level: f64) -> Option<Interval> {
    let n = moments.n;
    let (nu, k) = (n - 1.0, 1.0 + SPREAD * n);
    let ratio = (k.sqrt() / level).powf(2.0 / n);
    let half = moments.error() * (nu * (ratio - 1.0) / (1.0 - ratio / k)).sqrt();
    (ratio < k).then_some(Interval { low: moments.mean - half, high: moments.mean + half })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(n: usize, mean: f64, sd: f64) -> Moments {
        Moments { n: n as f64, mean, sd }
    }

    #[test]
    fn e_value_is_the_closed_form() {
        // n = 4, t = 0.02 / (0.01 / 2) = 4: 5^(-1/2) ((1 + 16/3) / (1 + 16/15))^2 = 4.2.
        let found = e_value(&moments(4, 0.02, 0.01), 0.0);
        let expected = ((1.0 + 16.0 / 3.0) / (1.0 + 16.0 / 15.0_f64)).powi(2) / 5.0_f64.sqrt();
        assert!((found - expected).abs() < 1e-12 && (found - 4.199).abs() < 1e-3, "{found}");
        assert!((e_value(&moments(4, 0.02, 0.01), 0.02) - 0.2_f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn confidence_sequence_is_where_the_e_value_is_small() {
        for (n, level) in [(8, 0.05), (20, 0.05), (20, 1e-4), (300, 0.01)] {
            let moments = moments(n, 0.02, 0.01);
            let found = confidence_sequence(&moments, level).unwrap();
            for end in [found.low, found.high] {
                assert!((e_value(&moments, end) * level - 1.0).abs() < 1e-9, "{n}, {level}: {found:?}");
            }
        }
        // No distance is refuted at 0.0001 by three figures, whose e-value is 4 at most.
        assert_eq!(confidence_sequence(&moments(3, 0.02, 0.01), 1e-4), None);
        let alike = confidence_sequence(&moments(20, 0.02, 0.0), 0.05).unwrap();
        assert_eq!(alike, Interval { low: 0.02, high: 0.02 });
    }

    #[test]
    fn few_equal_figures_are_little_evidence() {
        assert!(e_value(&moments(3, 1.0, 0.0), 0.0) <= 4.0 + 1e-9);
        assert!(e_value(&moments(20, 1.0, 0.0), 0.0) > 1e9);
        assert!((e_value(&moments(20, 0.0, 0.0), 0.0) - 21.0_f64.powf(-0.5)).abs() < 1e-12);
    }

    #[test]
    fn being_inside_needs_both_ends() {
        let inside = moments(20, 0.0, 0.002);
        assert!(e_value_inside(&inside, -0.01, 0.01) > 1e6);
        assert_eq!(e_value_inside(&moments(20, 0.011, 0.002), -0.01, 0.01), 0.0);
        let near = e_value_inside(&moments(20, 0.0099, 0.002), -0.01, 0.01);
        assert!(near < 1.0, "{near}");
    }
}
