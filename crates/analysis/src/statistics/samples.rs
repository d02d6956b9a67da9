//! Samples of figures: mean and spread, Student's t, and the median, which assumes no distribution.

use stacklab_model::Interval;
use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, StudentsT};

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
    /// error, `sqrt(SSD / (h (h - 1)))`, with the winsorized sum of squares (Tukey and McLaughlin 1963, Yuen 1974).
    /// With fewer than five figures nothing is trimmed.
    pub(crate) fn of_trimmed_mean(figures: &[f64]) -> Option<Self> {
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

/// Mean of the figures. Computed relative to the first figure: equal figures then have exactly that mean and zero
/// standard deviation.
pub(crate) fn mean(figures: &[f64]) -> Option<f64> {
    let origin = *figures.first()?;
    Some(origin + figures.iter().map(|figure| figure - origin).sum::<f64>() / figures.len() as f64)
}

/// An estimate that follows Student's t distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Student {
    /// The estimate, in the unit of the figures.
    pub estimate: f64,
    /// Its standard error, in the same unit.
    pub error: f64,
    /// Degrees of freedom, above zero.
    pub degrees_of_freedom: f64,
}

impl Student {
    /// The interval that covers the true value with the given confidence (0.95 is 95 %).
    pub fn interval(&self, confidence: f64) -> Interval {
        let Student { estimate, error, degrees_of_freedom } = *self;
        let half =
            if error > 0.0 { t_quantile(0.5 + confidence / 2.0, degrees_of_freedom) * error } else { 0.0 };
        Interval { low: estimate - half, high: estimate + half }
    }

    /// Two-sided p that the true value is 0. Without an error it is 0, or 1 for an estimate of 0.
    pub fn p(&self) -> f64 {
        match (self.estimate == 0.0, self.error > 0.0) {
            (true, _) => 1.0,
            (false, false) => 0.0,
            (false, true) => 2.0 * self.above(self.estimate.abs()),
        }
    }

    /// p that the true value is outside a margin: the larger of two one-sided tests (Schuirmann 1987).
    pub fn equivalence_p(&self, margin: &Interval) -> f64 {
        let above_low = self.p_above(self.estimate - margin.low);
        let below_high = self.p_above(margin.high - self.estimate);
        above_low.max(below_high)
    }

    /// One-sided p of an estimate at this distance. Without an error it is 0, or 1 for one on the wrong side.
    fn p_above(&self, distance: f64) -> f64 {
        match (self.error > 0.0, distance >= 0.0) {
            (true, _) => self.above(distance),
            (false, true) => 0.0,
            (false, false) => 1.0,
        }
    }

    /// The chance of an estimate that is further from the true value on one side.
    fn above(&self, distance: f64) -> f64 {
        student(self.degrees_of_freedom).sf(distance / self.error)
    }
}

/// The point with a share `p` of Student's t distribution below it.
pub fn t_quantile(p: f64, degrees_of_freedom: f64) -> f64 {
    student(degrees_of_freedom).inverse_cdf(p)
}

fn student(degrees_of_freedom: f64) -> StudentsT {
    StudentsT::new(0.0, 1.0, degrees_of_freedom).expect("degrees of freedom are above zero")
}

/// Half the width of the 95 % interval of the mean of `n` runs with a standard deviation; `None` below two runs.
pub fn half_width_of(sd: f64, n: usize) -> Option<f64> {
    (n >= 2).then(|| Moments { n: n as f64, mean: 0.0, sd }.interval(0.95).half_width())
}

/// The median: the mean of the two middle figures if their number is even (RFC 2330 section 11.3). `None` without
/// figures.
pub fn median(figures: &[f64]) -> Option<f64> {
    let sorted = sort_figures(figures);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some(sorted[middle - 1].midpoint(sorted[middle])),
    }
}

/// Two order statistics that enclose the median.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MedianInterval {
    /// The interval, in the unit of the figures.
    pub interval: Interval,
    /// Ranks of its ends, from 1.
    pub ranks: (usize, usize),
    /// The coverage of such an interval: at least the requested confidence (0.95 is 95 %).
    pub confidence: f64,
}

/// The narrowest symmetric pair of order statistics that covers the median with at least the given confidence; `None`
/// if the smallest and the largest figure do not (fewer than 6 figures for 95 %). The number of figures below the
/// median is binomial with one half (Conover, Practical Nonparametric Statistics, section 3.2).
pub fn median_interval(figures: &[f64], confidence: f64) -> Option<MedianInterval> {
    let n = figures.len();
    let below = Binomial::new(0.5, n as u64).expect("one half is a probability");
    // The interval from rank r to n + 1 - r misses with probability 2 P(X < r).
    let missed = |rank: usize| 2.0 * below.cdf(rank as u64 - 1);
    let rank = (1..=n / 2).take_while(|rank| missed(*rank) <= 1.0 - confidence).last()?;
    let sorted = sort_figures(figures);
    Some(MedianInterval {
        interval: Interval { low: sorted[rank - 1], high: sorted[n - rank] },
        ranks: (rank, n + 1 - rank),
        confidence: 1.0 - missed(rank),
    })
}

fn sort_figures(figures: &[f64]) -> Vec<f64> {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trimmed_mean_has_yuens_interval() {
        // The self-awareness data of Wilcox, Introduction to Robust Estimation and Hypothesis Testing, section 4.3:
        // n = 19, h = 13, trimmed mean 282.7.
        let figures = [
            77., 87., 88., 114., 151., 210., 219., 246., 253., 262., 296., 299., 306., 376., 428., 515.,
            666., 1310., 2611.,
        ];
        let found = Moments::of_trimmed_mean(&figures).unwrap();
        assert_eq!(found.n, 13.0);
        assert!((found.mean - 282.7).abs() < 0.1, "{found:?}");
        // The winsorized sum of squares is 387,925.68; over 13 times 12.
        let error = found.sd / 13.0_f64.sqrt();
        assert!((error - 49.8669).abs() < 1e-3, "{error}");
        assert_eq!(Moments::of_trimmed_mean(&[1.0, 2.0, 9.0]), Moments::of(&[1.0, 2.0, 9.0]));
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

    #[test]
    fn half_width_is_students() {
        // 2.776445 * 1.5811388 / sqrt(5), and 2.022691 / sqrt(40).
        assert!((half_width_of(1.581_138_8, 5).unwrap() - 1.963_243_2).abs() < 1e-6);
        assert!((half_width_of(1.0, 40).unwrap() - 0.319_816_4).abs() < 1e-6);
        assert_eq!(half_width_of(1.0, 1), None);
    }

    #[test]
    fn equal_figures_have_an_interval_of_no_width() {
        let [three, zero] = [[3.0; 5], [0.0; 5]].map(|figures| Moments::of(&figures).unwrap().student());
        assert_eq!(three.interval(0.95), Interval { low: 3.0, high: 3.0 });
        assert_eq!((three.p(), zero.p()), (0.0, 1.0));
        let margin = Interval { low: -1.0, high: 1.0 };
        for (figure, p) in [(0.5, 0.0), (1.5, 1.0)] {
            let found = Moments::of(&[figure; 3]).unwrap().student();
            assert_eq!(found.equivalence_p(&margin), p, "{figure}");
        }
    }

    #[test]
    fn equivalence_is_90_per_cent_interval_inside_margin() {
        let found = Moments::of(&[0.5, -0.5, 1.5, 0.5]).unwrap().student();
        let interval = found.interval(0.90);
        for (end, expected) in [(interval.high * 1.01, true), (interval.high * 0.99, false)] {
            let margin = Interval { low: -100.0, high: end };
            assert_eq!(found.equivalence_p(&margin) < 0.05, expected, "{end}");
        }
    }

    #[test]
    fn median_of_rfc_2330_is_between_the_middle_two() {
        assert_eq!(median(&[-2.0, 7.0, 7.0, 4.0, 18.0, -5.0]), Some(5.5));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn twenty_figures_take_ranks_6_and_15() {
        let figures: Vec<f64> = (1..=20).rev().map(f64::from).collect();
        let found = median_interval(&figures, 0.95).unwrap();
        assert_eq!((found.ranks, found.interval), ((6, 15), Interval { low: 6.0, high: 15.0 }));
        assert!((found.confidence - 0.9586105346679688).abs() < 1e-12);
    }

    #[test]
    fn five_figures_cannot_tell_at_95_per_cent() {
        assert_eq!(median_interval(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.95), None);
        let six = median_interval(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 0.95).unwrap();
        assert_eq!(six.ranks, (1, 6));
    }
}
