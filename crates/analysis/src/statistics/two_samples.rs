//! Two independent samples: whether their locations differ, with any variances and numbers of figures.

use crate::statistics::{Moments, Student};
use statrs::distribution::{ContinuousCDF, Normal};

/// Above this many figures together the sum of ranks is taken as normal.
const MAX_EXACT: usize = 30;

/// The second mean minus the first, with possibly different variances (Welch 1947), or of trimmed means with the errors
/// of `Moments::of_trimmed_mean` (Yuen 1974).
///
/// The degrees of freedom are those of the smaller sample. Those of Welch and Satterthwaite take both variances as
/// known better than they are: of skewed figures, 8 beside 40, they make twice as many false claims as allowed.
pub fn yuen_welch(first: &Moments, second: &Moments) -> Student {
    Student {
        estimate: second.mean - first.mean,
        error: first.error().hypot(second.error()),
        degrees_of_freedom: first.n.min(second.n) - 1.0,
    }
}

/// Two-sided p of the rank-sum test that neither sample tends to have larger figures (Wilcoxon 1945, Mann and Whitney
/// 1947). Exact for few figures, also with ties.
pub fn rank_sum_p(first: &[f64], second: &[f64]) -> f64 {
    let ranks = RankSum::of(first, second).mirrored_to_low();
    let chance = if ranks.doubled.len() <= MAX_EXACT { ranks.exact_chance() } else { ranks.normal_chance() };
    (2.0 * chance).min(1.0)
}

/// The ranks of both samples together, doubled so that the mean ranks of ties are whole numbers.
struct RankSum {
    doubled: Vec<usize>,
    /// Figures of the smaller sample, and the sum of their doubled ranks.
    count: usize,
    sum: usize,
}

impl RankSum {
    fn of(first: &[f64], second: &[f64]) -> Self {
        let is_first_smaller = first.len() <= second.len();
        let mut figures: Vec<(f64, bool)> = Vec::new();
        figures.extend(first.iter().map(|figure| (*figure, is_first_smaller)));
        figures.extend(second.iter().map(|figure| (*figure, !is_first_smaller)));
        figures.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut ranks = RankSum { doubled: Vec::new(), count: first.len().min(second.len()), sum: 0 };
        for ties in figures.chunk_by(|a, b| a.0 == b.0) {
            // The mean of the ranks `below + 1` to `below + ties`, doubled.
            let doubled = 2 * ranks.doubled.len() + ties.len() + 1;
            for (_, is_of_smaller) in ties {
                ranks.sum += if *is_of_smaller { doubled } else { 0 };
            }
            ranks.doubled.extend(ties.iter().map(|_| doubled));
        }
        ranks
    }

    /// The same ranks counted from the other end, if their sum is lower then.
    fn mirrored_to_low(mut self) -> Self {
        let top = 2 * (self.doubled.len() + 1);
        let mirrored = self.count * top - self.sum;
        if mirrored < self.sum {
            self.sum = mirrored;
            for rank in &mut self.doubled {
                *rank = top - *rank;
            }
        }
        self
    }

    /// The chance of a sum that is at most as large, if each choice of ranks is as likely.
    fn exact_chance(&self) -> f64 {
        // The number of choices of that number of ranks with each sum, one rank after the other.
        let mut choices = vec![vec![0.0_f64; self.sum + 1]; self.count + 1];
        choices[0][0] = 1.0;
        for &rank in &self.doubled {
            for chosen in (1..=self.count).rev() {
                for sum in rank..=self.sum {
                    choices[chosen][sum] += choices[chosen - 1][sum - rank];
                }
            }
        }
        let mut all = 1.0;
        for chosen in 0..self.count {
            all *= (self.doubled.len() - chosen) as f64 / (chosen + 1) as f64;
        }
        choices[self.count].iter().sum::<f64>() / all
    }

    /// The same by the normal distribution, with the variance of these ranks and half a rank for continuity.
    fn normal_chance(&self) -> f64 {
        let n = self.doubled.len() as f64;
        let count = self.count as f64;
        let mean = n + 1.0;
        let squares: f64 = self.doubled.iter().map(|rank| (*rank as f64 - mean).powi(2)).sum();
        let error = (squares * count * (n - count) / (n * (n - 1.0))).sqrt();
        if error == 0.0 {
            return 1.0;
        }
        Normal::standard().cdf((self.sum as f64 - count * mean + 1.0) / error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::Interval;

    #[track_caller]
    fn close(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 1e-9, "{found} is not {expected}");
    }

    const FIRST: [f64; 8] = [1.0, 1.2, 0.9, 1.1, 1.05, 0.97, 3.0, 1.02];
    const SECOND: [f64; 12] = [1.3, 1.25, 1.4, 1.1, 1.2, 1.35, 1.28, 0.2, 1.31, 1.22, 1.19, 1.27];

    fn trim_figures(figures: &[f64]) -> Moments {
        Moments::of_trimmed_mean(figures).unwrap()
    }

    #[test]
    fn trimmed_means_agree_with_scipy() {
        let found = yuen_welch(&trim_figures(&FIRST), &trim_figures(&SECOND));
        // scipy.stats.ttest_ind(second, first, equal_var=False, trim=0.2) has this statistic; p with 5 degrees.
        close(found.estimate / found.error, 3.850537700899295);
        close(found.degrees_of_freedom, 5.0);
        close(found.p(), 0.011994583006561645);
    }

    #[test]
    fn rank_sums_agree_with_scipy() {
        // scipy.stats.mannwhitneyu, exact, of figures without ties; then by all choices (permutation_test).
        let apart = [1.4, 1.5, 1.6, 1.7, 1.8, 1.9];
        close(rank_sum_p(&[1.0, 1.1, 1.2, 1.3, 0.9, 0.8], &apart), 2.0 / 924.0);
        close(rank_sum_p(&[1.0, 1.55, 1.2, 1.3, 0.9, 0.8], &[apart[0], 1.25, 1.7, 1.8]), 0.06666666666666667);
        close(rank_sum_p(&FIRST, &SECOND), 0.04488370246884179);
        close(rank_sum_p(&SECOND, &FIRST), 0.04488370246884179);
        // Normal, with ties and continuity.
        let first: Vec<f64> = (0..30).map(|i| f64::from(i * 7 % 30)).collect();
        let second: Vec<f64> = (0..40).map(|i| f64::from(i * 11 % 40) * 0.75 + 4.0).collect();
        close(rank_sum_p(&first, &second), 0.0693828111863962);
    }

    #[test]
    fn equal_figures_have_equal_ranks() {
        assert_eq!(rank_sum_p(&[1.0; 6], &[1.0; 7]), 1.0);
        assert_eq!(rank_sum_p(&[1.0; 60], &[1.0; 70]), 1.0);
        close(rank_sum_p(&[1.0; 6], &[2.0; 6]), 2.0 / 924.0);
    }

    #[test]
    fn samples_without_spread_are_equal_or_not() {
        assert_eq!(yuen_welch(&trim_figures(&[1.0; 6]), &trim_figures(&[1.0; 7])).p(), 1.0);
        let apart = yuen_welch(&trim_figures(&[1.0; 6]), &trim_figures(&[2.0; 7]));
        assert_eq!((apart.p(), apart.interval(0.95)), (0.0, Interval { low: 1.0, high: 1.0 }));
        let margin = Interval { low: -0.5, high: 0.5 };
        assert_eq!(apart.equivalence_p(&margin), 1.0);
        assert_eq!(
            yuen_welch(&trim_figures(&[1.0; 6]), &trim_figures(&[1.2; 6])).equivalence_p(&margin),
            0.0
        );
    }

    #[test]
    fn one_outlier_moves_little() {
        let mut wild = SECOND;
        wild[0] = 1000.0;
        let found = yuen_welch(&trim_figures(&FIRST), &trim_figures(&wild));
        let usual = yuen_welch(&trim_figures(&FIRST), &trim_figures(&SECOND));
        assert!((found.estimate - usual.estimate).abs() < 0.02, "{found:?}, {usual:?}");
    }
}
