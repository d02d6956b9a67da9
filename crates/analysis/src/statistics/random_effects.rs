//! Random effects: estimates of several units that are a sample of many, each with a standard error.

use crate::statistics::{Moments, Student, median, t_quantile};
use stacklab_model::Interval;
use statrs::distribution::{ChiSquared, ContinuousCDF};

/// More than the halvings after which an interval has no numbers between its ends, unless it begins at zero.
const MAX_HALVINGS: usize = 200;

/// The mean of the units' true values, and their spread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RandomEffects {
    /// The mean.
    pub mean: Student,
    /// Standard deviation of the true values.
    pub spread: f64,
    /// Its 95 % interval.
    pub spread_interval: Interval,
    /// 95 % interval of another unit's true value; `None` with fewer than three units.
    pub prediction: Option<Interval>,
}

impl RandomEffects {
    /// Of finite estimates with their standard errors. `None` with fewer than two.
    ///
    /// * Spread: Paule and Mandel (1982), with the Q-profile interval (Viechtbauer 2007).
    /// * Mean: weighted by precision, with the interval of Hartung and Knapp (2001), Sidik and Jonkman (2002). Its
    ///   variance factor is at least 1 (Roever, Knapp and Friede 2015): units that are alike by chance would have an
    ///   interval that is too narrow.
    /// * Prediction: Higgins, Thompson and Spiegelhalter (2009).
    ///
    /// The degrees of freedom are those of the effective number of units, `(sum w)^2 / sum w^2` (Kish 1965): of three
    /// units of which one hardly counts, one degree.
    ///
    /// An error counts as no smaller than that of the median unit. Errors of few trials are noise themselves: units
    /// whose errors happen to be small would decide the mean, and its interval would be too narrow.
    pub fn of(units: &[(f64, f64)]) -> Option<Self> {
        Weighted::of(&with_least_error(units))?.random_effects()
    }
}

/// Estimates with their variances, of which none is smaller than the median one. Where most units have no variance, as
/// of events that most never see, all count alike.
fn with_least_error(units: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let errors: Vec<f64> = units.iter().map(|(_, error)| *error).collect();
    let middle = median(&errors).unwrap_or_default();
    let least = if middle > 0.0 { middle } else { errors.iter().copied().fold(0.0, f64::max) };
    units.iter().map(|(estimate, error)| (*estimate, error.max(least).powi(2))).collect()
}

/// Estimates with their variances.
struct Weighted<'a> {
    units: &'a [(f64, f64)],
    /// Sum of the squared distances from the plain mean.
    squares: f64,
}

impl<'a> Weighted<'a> {
    /// `None` with fewer than two.
    fn of(units: &'a [(f64, f64)]) -> Option<Self> {
        let all = Moments::of(&units.iter().map(|(estimate, _)| *estimate).collect::<Vec<f64>>())?;
        Some(Weighted { units, squares: all.sd * all.sd * (all.n - 1.0) })
    }

    /// `None` if figures are too large to have squares.
    fn random_effects(&self) -> Option<RandomEffects> {
        let k = self.units.len() as f64;
        let variance = self.variance_where(k - 1.0);
        let (mean, q, error) = self.at(variance);
        let effective = self.effective_number(variance).max(2.0);
        let factor = (q / (k - 1.0)).max(1.0);
        let mean =
            Student { estimate: mean, error: error * factor.sqrt(), degrees_of_freedom: effective - 1.0 };
        let chi_squared = ChiSquared::new(k - 1.0).expect("degrees of freedom are above zero");
        let end = |share: f64| self.variance_where(chi_squared.inverse_cdf(share)).sqrt();
        let prediction = (k > 2.0).then(|| {
            let half = t_quantile(0.975, (effective - 2.0).max(1.0)) * variance.sqrt().hypot(mean.error);
            Interval { low: mean.estimate - half, high: mean.estimate + half }
        });
        let spread_interval = Interval { low: end(0.975), high: end(0.025) };
        let is_finite = mean.error.is_finite() && mean.estimate.is_finite() && self.squares.is_finite();
        is_finite.then_some(RandomEffects { mean, spread: variance.sqrt(), spread_interval, prediction })
    }

    /// The mean if the true values have this variance, the sum of weighted squared distances from it (Cochran's Q,
    /// generalised), and the mean's error.
    fn at(&self, between: f64) -> (f64, f64, f64) {
        let least = self.units.iter().map(|(_, within)| within + between).fold(f64::INFINITY, f64::min);
        if least <= 0.0 {
            // No unit has an error, and all are alike: or they have a spread that is not zero.
            let q = if self.squares > 0.0 { f64::INFINITY } else { 0.0 };
            return (self.units[0].0, q, 0.0);
        }
        let weights = || self.units.iter().map(|(estimate, within)| (*estimate, 1.0 / (within + between)));
        let sum: f64 = weights().map(|(_, weight)| weight).sum();
        let origin = self.units[0].0;
        let mean = origin + weights().map(|(at, weight)| weight * (at - origin)).sum::<f64>() / sum;
        let q = weights().map(|(at, weight)| weight * (at - mean).powi(2)).sum();
        (mean, q, sum.sqrt().recip())
    }

    /// How many units of equal weight would know as much.
    fn effective_number(&self, between: f64) -> f64 {
        let least = self.units.iter().map(|(_, within)| within + between).fold(f64::INFINITY, f64::min);
        // In relation to the largest weight, as the least variance may be zero: then all are.
        let mut weights = Vec::new();
        for (_, within) in self.units {
            weights.push(if least > 0.0 { least / (within + between) } else { 1.0 });
        }
        weights.iter().sum::<f64>().powi(2) / weights.iter().map(|weight| weight * weight).sum::<f64>()
    }

    /// The variance of the true values at which Q, which falls with it, has this value; 0 if it is never as large.
    fn variance_where(&self, q: f64) -> f64 {
        if self.at(0.0).1 <= q {
            return 0.0;
        }
        // Q is at most that of units without errors.
        let mut low = 0.0_f64;
        let mut high = self.squares / q;
        for _ in 0..MAX_HALVINGS {
            let middle = low.midpoint(high);
            if middle <= low || middle >= high {
                break;
            }
            if self.at(middle).1 > q { low = middle } else { high = middle }
        }
        high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-6, "{found} is not {expected}");
    }

    #[test]
    fn worked_example_has_published_spread() {
        // The 13 trials of BCG vaccine of Colditz and others (1994): log risk ratios and variances, as the manual of
        // R's metafor prints them. It has the Q-profile interval 0.1197 to 1.1115 for the variance between trials.
        let units = [
            (-0.8893, 0.3256),
            (-1.5854, 0.1946),
            (-1.3481, 0.4154),
            (-1.4416, 0.0200),
            (-0.2175, 0.0512),
            (-0.7861, 0.0069),
            (-1.6209, 0.2230),
            (0.0120, 0.0040),
            (-0.4694, 0.0564),
            (-1.3713, 0.0730),
            (-0.3394, 0.0124),
            (0.4459, 0.5325),
            (-0.0173, 0.0714),
        ];
        let found = Weighted::of(&units).unwrap().random_effects().unwrap();
        // The digits beyond were computed by SciPy's brentq from these four decimals.
        close(found.spread.powi(2), 0.318_082_440);
        close(found.spread_interval.low.powi(2), 0.119_723_294);
        close(found.spread_interval.high.powi(2), 1.111_516_630);
        close(found.mean.estimate, -0.714_970_305);
        close(found.mean.error, 0.180_894_533);
        close(found.mean.degrees_of_freedom, 11.053_066_867);
    }

    #[test]
    fn units_that_are_alike_keep_their_errors() {
        // Plain Hartung and Knapp would have an error of 0.
        let found = RandomEffects::of(&[(0.1, 0.02); 3]).unwrap();
        assert_eq!(found.spread, 0.0);
        close(found.mean.degrees_of_freedom, 2.0);
        close(found.mean.error, 0.02 / 3.0_f64.sqrt());
        assert_eq!(found.spread_interval, Interval { low: 0.0, high: 0.0 });
    }

    #[test]
    fn two_units_are_a_wide_claim() {
        let found = RandomEffects::of(&[(0.1, 0.01), (0.2, 0.01)]).unwrap();
        // Q is 50 at no spread and 1 where 2 (0.01^2 + tau^2) is 0.1^2.
        close(found.spread.powi(2), 0.005 - 0.0001);
        close(found.mean.error, 0.05);
        close(found.mean.interval(0.95).half_width(), 12.706_205 * 0.05);
        assert_eq!(found.prediction, None);
        assert_eq!(RandomEffects::of(&[(0.1, 0.01)]), None);
    }

    #[test]
    fn small_error_does_not_decide_the_mean() {
        let found = RandomEffects::of(&[(0.1, 1e-9), (0.0, 0.1), (0.0, 0.1)]).unwrap();
        close(found.mean.estimate, 0.1 / 3.0);
        // Nor does a large one count for much: what is known is from two units.
        let found = RandomEffects::of(&[(1.0, 1.0), (0.0, 0.1), (0.0, 0.1)]).unwrap();
        close(found.mean.estimate, 1.0 / 201.0);
        close(found.mean.degrees_of_freedom, 201.0_f64.powi(2) / 20_001.0 - 1.0);
    }

    #[test]
    fn units_without_errors_are_a_plain_sample() {
        let found = RandomEffects::of(&[(1.0, 0.0), (2.0, 0.0), (3.0, 0.0)]).unwrap();
        close(found.mean.estimate, 2.0);
        close(found.mean.error, 1.0 / 3.0_f64.sqrt());
        close(found.spread, 1.0);
        let alike = RandomEffects::of(&[(1.0, 0.0); 3]).unwrap();
        assert_eq!((alike.mean.estimate, alike.mean.error, alike.spread), (1.0, 0.0, 0.0));
        // Most see no event: all count alike.
        let found = RandomEffects::of(&[(0.0, 0.0), (0.0, 0.0), (0.3, 0.1)]).unwrap();
        close(found.mean.estimate, 0.1);
    }

    #[test]
    fn figures_without_squares_have_no_mean() {
        assert_eq!(RandomEffects::of(&[(1e200, 1.0), (-1e200, 1.0)]), None);
        assert_eq!(RandomEffects::of(&[(1.0, 1e200), (2.0, 1e200)]), None);
    }
}
