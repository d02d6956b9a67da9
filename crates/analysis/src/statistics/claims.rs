//! What tests claim: e-values, and families of tests of which at most a stated share of claims is expected to be false.
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
/// With n figures, nu = n - 1 and k = 1 + n: `k^(-1/2) ((1 + t^2/nu) / (1 + t^2/(nu k)))^(n/2)` (Lai 1976; Wang and
/// Ramdas, arXiv 2310.03722).
pub fn e_value(moments: &Moments, null: f64) -> f64 {
    let n = moments.n;
    let nu = n - 1.0;
    let k = 1.0 + SPREAD * n;
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
    let nu = n - 1.0;
    let k = 1.0 + SPREAD * n;
    let ratio = (k.sqrt() / level).powf(2.0 / n);
    let half = moments.error() * (nu * (ratio - 1.0) / (1.0 - ratio / k)).sqrt();
    (ratio < k).then_some(Interval { low: moments.mean - half, high: moments.mean + half })
}

/// Holm's step-down p (1979): reject where it is below 0.05, and the chance of any false claim is below 5 %.
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

/// Benjamini and Hochberg's step-up p (1995): reject where it is at most 0.05, and at most 5 % of the claims are
/// expected to be false.
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
/// looked at (Wang and Ramdas 2022, the e-BH procedure).
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

    fn claim(e: &[f64]) -> Vec<bool> {
        e_benjamini_hochberg(e, 0.05)
    }

    #[test]
    fn e_values_are_claimed_together() {
        // Alone 20 are needed; of three, 60, 30 and 20.
        assert_eq!(claim(&[19.9]), [false]);
        assert_eq!(claim(&[20.0]), [true]);
        assert_eq!(claim(&[59.0, 29.0, 1.0]), [false; 3]);
        assert_eq!(claim(&[59.0, 31.0, 1.0]), [true, true, false]);
        assert_eq!(claim(&[20.0, f64::INFINITY, 20.0]), [true; 3]);
        assert_eq!(claim(&[0.0, 0.0]), [false; 2]);
    }
}
