//! Mean and spread.

use crate::statistics::Student;
use stacklab_model::Interval;

/// Mean and spread of at least two figures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moments {
    /// Number of figures; not a whole number of weighted ones.
    pub n: f64,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation (n - 1).
    pub sd: f64,
}

impl Moments {
    /// `None` with fewer than two figures.
    pub fn of(figures: &[f64]) -> Option<Self> {
        let n = figures.len();
        if n < 2 {
            return None;
        }
        let mean = mean(figures)?;
        let squares: f64 = figures.iter().map(|figure| (figure - mean).powi(2)).sum();
        Some(Moments { n: n as f64, mean, sd: (squares / (n - 1) as f64).sqrt() })
    }

    /// Of the 20 % trimmed mean: its figures are the h kept ones, and the standard deviation is that of Yuen's standard
    /// error, `sqrt(SSD / (h (h - 1)))`, with the winsorized sum of squares. With fewer than five figures nothing is
    /// trimmed.
    ///
    /// Source: Tukey and McLaughlin (1963), Yuen (1974).
    pub(crate) fn trimmed(figures: &[f64]) -> Option<Self> {
        let n = figures.len();
        let cut = n / 5;
        if cut == 0 {
            return Self::of(figures);
        }
        let mut sorted = figures.to_vec();
        sorted.sort_by(f64::total_cmp);
        let kept = n - 2 * cut;
        let mean = mean(&sorted[cut..n - cut])?;
        for place in 0..cut {
            (sorted[place], sorted[n - 1 - place]) = (sorted[cut], sorted[n - 1 - cut]);
        }
        let winsorized = Self::of(&sorted)?.sd;
        Some(Moments { n: kept as f64, mean, sd: winsorized * ((n - 1) as f64 / (kept - 1) as f64).sqrt() })
    }

    /// Standard error of the mean.
    pub fn error(&self) -> f64 {
        self.sd / self.n.sqrt()
    }

    /// The mean as an estimate, for approximately normal figures.
    pub fn student(&self) -> Student {
        Student { estimate: self.mean, error: self.error(), degrees_of_freedom: self.n - 1.0 }
    }

    /// The interval that covers the mean with the given confidence (0.95 is 95 %).
    pub(crate) fn interval(&self, confidence: f64) -> Interval {
        self.student().interval(confidence)
    }
}

/// Mean of the figures; `None` if there are none.
///
/// Computed relative to the first figure: equal figures then have exactly that mean and zero standard deviation.
pub(crate) fn mean(figures: &[f64]) -> Option<f64> {
    let origin = *figures.first()?;
    Some(origin + figures.iter().map(|figure| figure - origin).sum::<f64>() / figures.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::t_quantile;

    #[test]
    fn trimmed_mean_has_yuens_interval() {
        // The self-awareness data of Wilcox, Introduction to Robust Estimation and Hypothesis Testing, section 4.3:
        // n = 19, h = 13, trimmed mean 282.7.
        let figures = [
            77., 87., 88., 114., 151., 210., 219., 246., 253., 262., 296., 299., 306., 376., 428., 515.,
            666., 1310., 2611.,
        ];
        let found = Moments::trimmed(&figures).unwrap();
        assert_eq!(found.n, 13.0);
        assert!((found.mean - 282.7).abs() < 0.1, "{found:?}");
        // The winsorized sum of squares is 387,925.68; over 13 times 12.
        let error = found.sd / 13.0_f64.sqrt();
        assert!((error - 49.8669).abs() < 1e-3, "{error}");
        assert_eq!(Moments::trimmed(&[1.0, 2.0, 9.0]), Moments::of(&[1.0, 2.0, 9.0]));
    }

    #[test]
    fn t_quantiles_agree_with_the_printed_tables() {
        let table = [
            (1, 0.975, 12.706),
            (1, 0.995, 63.657),
            (4, 0.95, 2.132),
            (4, 0.975, 2.776),
            (4, 0.995, 4.604),
            (9, 0.99, 2.821),
            (11, 0.995, 3.106),
            (30, 0.975, 2.042),
            (120, 0.995, 2.617),
            (1000, 0.975, 1.962),
        ];
        for (degrees, p, printed) in table {
            let found = t_quantile(p, f64::from(degrees));
            assert!((found - printed).abs() < 6e-4, "t({p}, {degrees}) = {found}, printed {printed}");
        }
        // For one degree of freedom the distribution is Cauchy's, which has a closed form.
        for p in [0.9, 0.975, 0.995, 0.9995] {
            let exact = (std::f64::consts::PI * (p - 0.5)).tan();
            assert!((t_quantile(p, 1.0) / exact - 1.0).abs() < 1e-9, "{p}");
        }
    }

    #[test]
    fn equal_figures_have_no_spread() {
        let moments = Moments::of(&[0.1; 7]).unwrap();
        assert_eq!((moments.mean, moments.sd), (0.1, 0.0));
        assert_eq!(moments.interval(0.99), Interval { low: 0.1, high: 0.1 });
    }

    #[test]
    fn one_figure_has_a_mean_but_no_spread_to_speak_of() {
        assert_eq!(mean(&[3.0]), Some(3.0));
        assert_eq!(Moments::of(&[3.0]), None);
        assert_eq!(mean(&[]), None);
    }
}
