//! Two arms compared within blocks.

use crate::comparison::distance::{back, interval_back};
use crate::runs::{Runs, figure};
use crate::statistics::moments::Moments;
use crate::statistics::{autocorrelation, equivalence_of, two_sided};
use stacklab_model::{Effect, Interval, Question, RunRecord, Scale};
use std::collections::BTreeMap;

/// The pairs of a question: one for each block in which both arms have a figure.
///
/// On the ratio scale, the logarithms of candidate divided by baseline are averaged: swapping the arms only inverts
/// the result.
#[derive(Debug, Clone, PartialEq)]
pub struct Paired {
    scale: Scale,
    /// Log ratios or differences, in the order of their blocks.
    distances: Vec<f64>,
    moments: Moments,
    /// Whether the moments are of the trimmed mean.
    trimmed: bool,
    /// The factor by which intervals are wider than Student's because consecutive distances are correlated; 1 if the
    /// test finds no correlation.
    widening: f64,
}

impl Paired {
    /// Pairs the runs of a question's two cells.
    ///
    /// # Errors
    /// The reason why there is nothing to compare: an arm without figures, fewer than two pairs, or a ratio with a
    /// figure that is not positive. One such pair is enough, because omitting it would favour the arm that failed.
    pub fn new(question: &Question, runs: &Runs) -> Result<Self, String> {
        let arms = [&question.baseline, &question.candidate].map(|cell| runs.of(cell, question.metric));
        let by_block = |arm: &[&RunRecord]| -> BTreeMap<u32, f64> {
            arm.iter().filter_map(|run| Some((run.trial.block, figure(run, question.metric)?))).collect()
        };
        let [baseline, candidate] = arms.map(by_block);
        let pairs: Vec<(f64, f64)> =
            baseline.iter().filter_map(|(block, figure)| Some((*figure, *candidate.get(block)?))).collect();
        // Trials of milliseconds: what else the machine did in one of them is no part of the difference.
        let interleaved = arms.iter().all(|arm| arm.iter().all(|run| run.spec.slicing.is_some()));
        let paired = Self::of(question.metric.scale(), &pairs);
        paired.map(|paired| if interleaved { paired.trimmed() } else { paired }).map_err(|few| {
            let cells = [(&question.baseline, arms[0]), (&question.candidate, arms[1])];
            let empty = cells.iter().zip([&baseline, &candidate]).find(|(_, figures)| figures.is_empty());
            match empty {
                Some(((cell, runs), _)) => {
                    let missing = crate::estimate(runs, question.metric).missing;
                    format!("{}: {}", cell.level(question.factor), missing.as_deref().unwrap_or("no figure"))
                }
                None => few,
            }
        })
    }

    /// Pairs given as (baseline, candidate), finite figures.
    ///
    /// # Errors
    /// Fewer than two pairs, or a ratio with a figure that is not positive.
    pub fn of(scale: Scale, pairs: &[(f64, f64)]) -> Result<Self, String> {
        let distances: Vec<f64> = match scale {
            Scale::Difference => pairs.iter().map(|(baseline, candidate)| candidate - baseline).collect(),
            Scale::Ratio => {
                let unfit = pairs.iter().filter(|(a, b)| *a <= 0.0 || *b <= 0.0).count();
                if unfit > 0 {
                    return Err(format!(
                        "no ratio can be made: a figure is zero or less in {unfit} of {} pairs",
                        pairs.len()
                    ));
                }
                pairs.iter().map(|(baseline, candidate)| (candidate / baseline).ln()).collect()
            }
        };
        Self::at(scale, distances, false).ok_or_else(|| {
            let found = if pairs.len() == 1 { "one block" } else { "no block" };
            format!("{found} has a figure of both arms; an interval needs two")
        })
    }

    fn at(scale: Scale, distances: Vec<f64>, trimmed: bool) -> Option<Self> {
        let moments = if trimmed { Moments::trimmed(&distances)? } else { Moments::of(&distances)? };
        let widening = autocorrelation(&distances).map_or(1.0, |found| found.widening);
        Some(Paired { scale, distances, moments, trimmed, widening })
    }

    /// The same pairs with the 20 % trimmed mean of their distances, and its intervals. Differences, which have many
    /// zeros, are not trimmed.
    pub fn trimmed(self) -> Self {
        match self.scale {
            Scale::Difference => self,
            scale => {
                let moments = Moments::trimmed(&self.distances).unwrap_or(self.moments);
                Paired { scale, moments, trimmed: true, ..self }
            }
        }
    }

    /// The p of a difference as large as the margin or larger, given as distances; two one-sided tests.
    pub(crate) fn equivalence_p(&self, margin: &Interval) -> f64 {
        equivalence_of(&self.moments, margin, self.widening).p
    }

    /// The pairs without the last `pairs`; `None` with fewer than two left.
    pub(crate) fn before(&self, pairs: usize) -> Option<Self> {
        let known = self.distances.len().checked_sub(pairs)?;
        Self::at(self.scale, self.distances[..known].to_vec(), self.trimmed)
    }

    /// Two-sided p of no difference: Student's paired t, its error widened like the interval.
    pub(crate) fn p(&self) -> f64 {
        let error = self.moments.sd / (self.moments.n as f64).sqrt() * self.widening;
        two_sided(self.moments.mean, error, (self.moments.n - 1) as f64)
    }

    /// Log ratios or differences, in the order of their blocks.
    pub(crate) fn distances(&self) -> &[f64] {
        &self.distances
    }

    /// The estimate: a ratio (1 is no difference) or a difference in the metric's unit.
    pub fn estimate(&self) -> f64 {
        back(self.scale, self.moments.mean)
    }

    /// The t interval at the given confidence (0.95 is 95 %), on the estimate's scale; widened if consecutive pairs
    /// are correlated ([`crate::statistics::autocorrelation`]).
    pub fn interval(&self, confidence: f64) -> Interval {
        let interval = self.moments.interval(confidence).widened(self.widening);
        interval_back(self.scale, interval)
    }

    /// The estimate and the intervals that a report keeps.
    pub fn effect(&self) -> Effect {
        Effect {
            scale: self.scale,
            pairs: self.distances.len(),
            estimate: self.estimate(),
            interval90: self.interval(0.90),
            interval95: self.interval(0.95),
            interval99: self.interval(0.99),
        }
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
    fn a_ratio_is_the_geometric_mean_with_the_interval_of_its_logarithms() {
        // Log ratios -0.2, -0.1, 0, 0.1, 0.2 about 0: sd 0.15811388, standard error 0.07071068.
        let pairs = [-0.2_f64, -0.1, 0.0, 0.1, 0.2].map(|log| (10.0, 10.0 * log.exp()));
        let effect = Paired::of(Scale::Ratio, &pairs).unwrap().effect();
        assert_eq!((effect.scale, effect.pairs), (Scale::Ratio, 5));
        close(effect.estimate, 1.0);
        close(effect.interval90.high.ln(), 2.131847 * 0.07071068);
        close(effect.interval95.high.ln(), 2.776445 * 0.07071068);
        close(effect.interval99.high.ln(), 4.604095 * 0.07071068);
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
    fn pairs_without_variance_have_an_interval_of_no_width() {
        for (scale, expected) in [(Scale::Ratio, 1.5), (Scale::Difference, 1.0)] {
            let effect = Paired::of(scale, &[(2.0, 3.0); 6]).unwrap().effect();
            close(effect.estimate, expected);
            assert_eq!(effect.interval99, Interval { low: effect.estimate, high: effect.estimate });
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
        assert!(effect.interval99.high.is_finite() && effect.interval99.low >= 0.0);
    }

    #[test]
    fn only_blocks_with_both_arms_valid_and_measured_make_a_pair() {
        let (four, six) = (cell(Family::Ipv4, 128), cell(Family::Ipv6, 128));
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
    fn too_few_pairs_are_refused_with_the_reason() {
        let (four, six) = (cell(Family::Ipv4, 128), cell(Family::Ipv6, 128));
        let metric = Metric::Throughput;
        let refused = |records: &[stacklab_model::RunRecord]| {
            Paired::new(&question(metric, 0.02), &Runs::new(records)).unwrap_err()
        };
        let one = run(0, &four, metric, 10.0);
        let two = run(0, &six, metric, 10.0);
        let dead = run_with(0, &six, metric, Value::Missing("no arrivals".into()));
        assert_eq!(refused(&[]), "ipv4: not measured");
        assert_eq!(refused(&[one.clone(), dead]), "ipv6: no arrivals");
        assert_eq!(refused(&[one, two]), "one block has a figure of both arms; an interval needs two");
    }
}
