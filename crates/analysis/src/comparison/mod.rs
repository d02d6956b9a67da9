//! Two cells of one campaign: their pairs, evidence and effect; and the claims of all comparisons together.

pub(crate) mod blocks;
pub(crate) mod evidence;
pub(crate) mod family;
pub(crate) mod limits;
pub(crate) mod remarks;
pub(crate) mod running;

use crate::comparison::blocks::{Blocks, counts_events};
use crate::comparison::limits::smallest_step;
use crate::runs::Runs;
use crate::statistics::{Moments, Student, confidence_sequence};
use stacklab_model::{Effect, Interval, Question, Scale, count};

/// Blocks that a comparison is measured further once its interval is narrow. An interval is narrow by chance too, and
/// 95 % intervals of comparisons that end at once hold the truth in 91 % (`bench/coverage`).
pub const BLOCKS_WHEN_NARROW: u32 = 6;

/// The pairs of a question: one for each block in which both arms have a figure.
///
/// On the ratio scale the logarithms of candidate divided by baseline are averaged, by the 20 % trimmed mean, which
/// leaves out a disturbed trial. Differences, of which many are zero, are not trimmed.
#[derive(Debug, Clone, PartialEq)]
pub struct Paired {
    pub(crate) scale: Scale,
    /// Log ratios or differences, in the order of their blocks.
    distances: Vec<f64>,
    /// Of the distances.
    pub(crate) moments: Moments,
    /// The location of both arms together, as a logarithm on the ratio scale.
    middle: f64,
    /// The smallest step between figures, as a logarithm on the ratio scale.
    step: f64,
    /// Pairs in which an arm's figure is not zero.
    pub(crate) nonzero: usize,
    /// Blocks in which only the other arm has a figure, of each arm.
    pub(crate) lost: [usize; 2],
    /// Whether figures count events, such as lost messages, of which a few trials may have nearly all.
    pub(crate) counts_events: bool,
}

impl Paired {
    /// Pairs the runs of a question's two cells; or why there is nothing to compare.
    pub fn new(question: &Question, runs: &Runs) -> Result<Self, String> {
        Self::of_blocks(question, &Blocks::of(question, runs))
    }

    /// There is nothing to compare if an arm has no figures, with fewer than two pairs, or of a ratio with a figure
    /// that is not positive. One such pair is enough, because omitting it would favour the arm that failed.
    pub(crate) fn of_blocks(question: &Question, blocks: &Blocks) -> Result<Self, String> {
        match Self::of(question.metric.scale(), &blocks.pairs) {
            Ok(paired) => {
                Ok(Paired { lost: blocks.lost, counts_events: counts_events(question.metric), ..paired })
            }
            Err(few) => Err(blocks.nothing(question).unwrap_or(few)),
        }
    }

    /// Pairs given as (baseline, candidate), finite figures.
    pub fn of(scale: Scale, pairs: &[(f64, f64)]) -> Result<Self, String> {
        let unfit = pairs.iter().filter(|(a, b)| *a <= 0.0 || *b <= 0.0).count();
        if unfit > 0 && scale == Scale::Ratio {
            let all = count(pairs.len(), "pair");
            return Err(format!("no ratio can be made: a figure is zero or less in {unfit} of {all}"));
        }
        let mut distances = Vec::new();
        let mut middles = Vec::new();
        for (a, b) in pairs {
            match scale {
                Scale::Difference => {
                    distances.push(b - a);
                    middles.push((a + b) / 2.0);
                }
                Scale::Ratio => {
                    distances.push((b / a).ln());
                    middles.push((a.ln() + b.ln()) / 2.0);
                }
            }
        }
        let moments_of = if scale == Scale::Ratio { Moments::of_trimmed_mean } else { Moments::of };
        let [Some(moments), Some(Moments { mean: middle, .. })] =
            [distances.as_slice(), &middles].map(moments_of)
        else {
            let found = if pairs.len() == 1 { "one block" } else { "no block" };
            return Err(format!("{found} has a figure of both arms; an interval needs two"));
        };
        let nonzero = pairs.iter().filter(|(a, b)| *a != 0.0 || *b != 0.0).count();
        let figures: Vec<f64> = pairs.iter().flat_map(|(a, b)| [*a, *b]).collect();
        let step = if scale == Scale::Ratio { smallest_step(&figures) } else { 0.0 };
        Ok(Paired { scale, distances, moments, middle, step, nonzero, lost: [0; 2], counts_events: false })
    }

    /// Of pairs of hosts in the place of blocks, with the mean over all pairs. It has no [`arms`](Self::arms).
    pub(crate) fn over_pairs(scale: Scale, distances: Vec<f64>, nonzero: usize, mean: &Student) -> Self {
        let n = mean.degrees_of_freedom + 1.0;
        let moments = Moments { n, mean: mean.estimate, sd: mean.error * n.sqrt() };
        Paired {
            scale,
            distances,
            moments,
            middle: 0.0,
            step: 0.0,
            nonzero,
            lost: [0; 2],
            counts_events: false,
        }
    }

    /// Whether the 95 % interval is as narrow as a target, a ratio, or for differences as the margin.
    pub fn is_narrow(&self, target: f64, margin: f64) -> bool {
        let half = self.interval(0.95).half_width();
        match self.scale {
            Scale::Ratio => half <= target * self.estimate(),
            Scale::Difference => half <= margin,
        }
    }

    /// The number of pairs.
    pub fn pairs(&self) -> usize {
        self.distances.len()
    }

    /// The estimate: a ratio (1 means equal) or a difference in the metric's unit.
    pub fn estimate(&self) -> f64 {
        back(self.scale, self.moments.mean)
    }

    /// The figures of baseline and candidate that fit the estimate: its two ends about their common location.
    pub fn arms(&self) -> [f64; 2] {
        [-0.5, 0.5].map(|way| back(self.scale, self.middle + way * self.moments.mean))
    }

    /// Student's t interval at the given confidence (0.95 is 95 %), on the estimate's scale.
    pub fn interval(&self, confidence: f64) -> Interval {
        interval_back(self.scale, self.moments.interval(confidence))
    }

    /// The interval that holds whenever it is looked at, with this chance of an error; `None` of too few pairs.
    pub fn interval_at_any_time(&self, level: f64) -> Option<Interval> {
        Some(interval_back(self.scale, confidence_sequence(&self.moments, level)?))
    }

    /// The estimate with its interval.
    pub fn effect(&self) -> Effect {
        effect_of(self.scale, self.distances.len(), &self.moments.student())
    }
}

/// From a distance, on which figures are averaged and tested, to the printed scale. On the ratio scale a distance is a
/// logarithm, and extreme figures can overflow.
pub(crate) fn back(scale: Scale, distance: f64) -> f64 {
    match scale {
        Scale::Ratio => distance.exp().min(f64::MAX),
        Scale::Difference => distance,
    }
}

pub(crate) fn interval_back(scale: Scale, interval: Interval) -> Interval {
    Interval { low: back(scale, interval.low), high: back(scale, interval.high) }
}

/// The distances that count as none.
pub(crate) fn margin_distance(scale: Scale, of: f64) -> Interval {
    let Interval { low, high } = Interval::of_margin(scale, of);
    Interval { low: scale.to_distance(low), high: scale.to_distance(high) }
}

pub(crate) fn effect_of(scale: Scale, pairs: usize, distance: &Student) -> Effect {
    Effect {
        scale,
        pairs,
        estimate: back(scale, distance.estimate),
        error: distance.error,
        degrees_of_freedom: distance.degrees_of_freedom,
        interval90: interval_back(scale, distance.interval(0.90)),
        interval95: interval_back(scale, distance.interval(0.95)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{cell, invalid, question, run, run_with};
    use stacklab_model::{Family, Metric, Value};

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-6, "{found} is not {expected}");
    }

    #[test]
    fn ratio_is_geometric_mean_with_interval_of_logs() {
        // Log ratios -0.2, -0.1, 0, 0.1, 0.2.
        let pairs = [-0.2_f64, -0.1, 0.0, 0.1, 0.2].map(|log| (10.0, 10.0 * log.exp()));
        // Of five one is trimmed at each end: winsorized -0.1, -0.1, 0, 0.1, 0.1, error sqrt(0.04 / 6), 2 degrees.
        let paired = Paired::of(Scale::Ratio, &pairs).unwrap();
        let effect = paired.effect();
        assert_eq!((effect.scale, effect.pairs), (Scale::Ratio, 5));
        close(effect.estimate, 1.0);
        close(effect.error, (0.04_f64 / 6.0).sqrt());
        close(effect.interval95.high.ln(), 4.302653 * effect.error);
        close(paired.interval(0.9).high.ln(), 2.919986 * effect.error);
        close(effect.interval95.low * effect.interval95.high, 1.0);
    }

    #[test]
    fn a_difference_is_the_mean_with_its_interval() {
        let pairs = [(1.0, 2.0), (5.0, 7.0), (2.0, 5.0), (0.0, 4.0), (3.0, 8.0)];
        let effect = Paired::of(Scale::Difference, &pairs).unwrap().effect();
        close(effect.estimate, 3.0);
        close(effect.interval95.low, 1.0367568);
        close(effect.interval95.high, 4.9632432);
    }

    #[test]
    fn swapping_the_arms_inverts_the_ratio() {
        let pairs = [(10.0, 11.0), (9.0, 10.5), (10.2, 10.9)];
        let there = Paired::of(Scale::Ratio, &pairs).unwrap().effect();
        let back = Paired::of(Scale::Ratio, &pairs.map(|(a, b)| (b, a))).unwrap().effect();
        close(there.estimate * back.estimate, 1.0);
        close(there.interval95.low * back.interval95.high, 1.0);
    }

    #[test]
    fn pairs_without_variance_have_a_zero_width_interval() {
        for (scale, expected) in [(Scale::Ratio, 1.5), (Scale::Difference, 1.0)] {
            let effect = Paired::of(scale, &[(2.0, 3.0); 6]).unwrap().effect();
            close(effect.estimate, expected);
            assert_eq!(effect.interval95, Interval { low: effect.estimate, high: effect.estimate });
        }
    }

    #[test]
    fn figures_that_have_no_ratio_are_refused_and_counted() {
        let error = Paired::of(Scale::Ratio, &[(1.0, 1.0), (2.0, 0.0), (3.0, 3.0)]).unwrap_err();
        assert_eq!(error, "no ratio can be made: a figure is zero or less in 1 of 3 pairs");
        assert!(Paired::of(Scale::Difference, &[(1.0, 1.0), (2.0, 0.0)]).is_ok());
    }

    #[test]
    fn wild_pairs_stay_finite() {
        let effect = Paired::of(Scale::Ratio, &[(1e-9, 1e9), (1e9, 1e-9)]).unwrap().effect();
        assert!(effect.interval95.high.is_finite() && effect.interval95.low >= 0.0);
    }

    #[test]
    fn only_blocks_with_both_arms_valid_make_a_pair() {
        let four = cell(Family::Ipv4, 128);
        let six = cell(Family::Ipv6, 128);
        let metric = Metric::Throughput;
        let records = [
            run(0, &four, metric, 10.0),
            run(0, &six, metric, 11.0),
            // Block 1: the candidate is invalid; block 2: it has no figure; block 3: it was not run.
            run(1, &four, metric, 10.0),
            invalid(run(1, &six, metric, 99.0), "wrong family"),
            run(2, &four, metric, 10.0),
            run_with(2, &six, metric, Value::Missing("no arrivals".into())),
            run(3, &four, metric, 10.0),
            run(4, &six, metric, 11.0),
            run(4, &four, metric, 10.0),
        ];
        let paired = Paired::new(&question(metric, 0.02), &Runs::new(&records)).unwrap();
        assert_eq!(paired.effect().pairs, 2);
        close(paired.estimate(), 1.1);
    }

    #[test]
    fn columns_fit_the_difference() {
        // One trial of ten in which everything was slow, and one in which one arm was.
        let mut pairs = vec![(100.0, 97.0); 8];
        pairs.extend([(10.0, 9.7), (100.0, 20.0)]);
        let paired = Paired::of(Scale::Ratio, &pairs).unwrap();
        let [baseline, candidate] = paired.arms();
        close(candidate / baseline, paired.estimate());
        assert!((baseline - 100.0).abs() < 2.0, "{baseline}");
        let paired = Paired::of(Scale::Difference, &[(1.0, 3.0), (2.0, 5.0)]).unwrap();
        assert_eq!(paired.arms(), [1.5, 4.0]);
    }

    #[test]
    fn figures_missing_in_one_arm_are_counted() {
        let four = cell(Family::Ipv4, 128);
        let six = cell(Family::Ipv6, 128);
        let metric = Metric::Throughput;
        let mut records = Vec::new();
        for block in 0..4 {
            records.push(run(block, &four, metric, 10.0));
            records.push(match block {
                0 => run_with(block, &six, metric, Value::Missing("infinite".into())),
                _ => run(block, &six, metric, 11.0),
            });
        }
        let paired = Paired::new(&question(metric, 0.02), &Runs::new(&records)).unwrap();
        assert_eq!((paired.pairs(), paired.lost), (3, [0, 1]));
    }

    fn explain_refusal(records: &[stacklab_model::RunRecord]) -> String {
        Paired::new(&question(Metric::Throughput, 0.02), &Runs::new(records)).unwrap_err()
    }

    #[test]
    fn too_few_pairs_are_refused_with_the_reason() {
        let four = cell(Family::Ipv4, 128);
        let six = cell(Family::Ipv6, 128);
        let metric = Metric::Throughput;
        let one = run(0, &four, metric, 10.0);
        let two = run(0, &six, metric, 10.0);
        let dead = run_with(0, &six, metric, Value::Missing("no arrivals".into()));
        assert_eq!(explain_refusal(&[]), "ipv4: not measured");
        assert_eq!(explain_refusal(&[one.clone(), dead]), "ipv6: no arrivals");
        assert_eq!(
            explain_refusal(&[one, two]),
            "one block has a figure of both arms; an interval needs two"
        );
    }
}
