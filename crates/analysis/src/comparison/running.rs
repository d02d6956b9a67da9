//! The evidence of a comparison while its campaign runs, block by block. What one more block costs grows with the
//! logarithm of their number; [`Evidence`] takes all blocks each time. Both decide alike: this one says whether there
//! may be a claim, and then [`Evidence`] makes it.

use crate::comparison::blocks::{Blocks, counts_events, find_figures};
use crate::comparison::evidence::{Evidence, bounds_events, is_rare};
use crate::comparison::limits::{is_coarse_step, last_digit, loses_too_many, min_equivalent_pairs};
use crate::comparison::{Paired, margin_distance};
use crate::runs::Runs;
use crate::statistics::{
    GrowingMoments, GrowingSteps, GrowingTrimmed, Moments, SymmetricBets, e_value, e_value_inside,
};
use stacklab_model::{Interval, MIN_PAIRS, Question, Scale};

/// Sums that are added up in another order differ in their last digits. An e-value and an interval that are this
/// little short of what is needed may be enough.
const ROUNDING: f64 = 1.001;

/// A comparison's blocks so far.
#[derive(Debug, Clone)]
pub struct RunningEvidence {
    question: Question,
    inside: Interval,
    blocks: Blocks,
    /// Pairs of which no ratio can be made.
    unfit: usize,
    /// Pairs in which an arm's figure is not zero.
    nonzero: usize,
    trimmed: GrowingTrimmed,
    plain: GrowingMoments,
    steps: GrowingSteps,
    signs: SymmetricBets,
    signs_above_low: SymmetricBets,
    signs_below_high: SymmetricBets,
}

/// E-values that those of [`Evidence`] do not exceed.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct EBounds {
    pub different: f64,
    pub equivalent: f64,
}

impl RunningEvidence {
    /// Without any block.
    pub fn new(question: &Question) -> Self {
        RunningEvidence {
            question: question.clone(),
            inside: margin_distance(question.metric.scale(), question.margin),
            blocks: Blocks::default(),
            unfit: 0,
            nonzero: 0,
            trimmed: GrowingTrimmed::default(),
            plain: GrowingMoments::default(),
            steps: GrowingSteps::default(),
            signs: SymmetricBets::default(),
            signs_above_low: SymmetricBets::default(),
            signs_below_high: SymmetricBets::default(),
        }
    }

    /// Adds a block; `runs` are those of this block only.
    pub fn add(&mut self, runs: &Runs) {
        let before = self.blocks.pairs.len();
        self.blocks.add(&find_figures(&self.question, runs));
        for place in before..self.blocks.pairs.len() {
            self.add_pair(place);
        }
    }

    fn add_pair(&mut self, place: usize) {
        let scale = self.question.metric.scale();
        let (baseline, candidate) = self.blocks.pairs[place];
        self.nonzero += usize::from(baseline != 0.0 || candidate != 0.0);
        let distance = match scale {
            Scale::Difference => candidate - baseline,
            Scale::Ratio if baseline <= 0.0 || candidate <= 0.0 => {
                self.unfit += 1;
                return;
            }
            Scale::Ratio => {
                self.trimmed.add(scale.to_distance(candidate / baseline));
                self.steps.add(baseline);
                self.steps.add(candidate);
                scale.to_distance(candidate / baseline)
            }
        };
        self.plain.add(distance);
        self.signs.add(distance);
        self.signs_above_low.add(distance - self.inside.low);
        self.signs_below_high.add(self.inside.high - distance);
    }

    /// The pairs so far; or why there is nothing to compare.
    pub fn pair_blocks(&self) -> Result<Paired, String> {
        Paired::of_blocks(&self.question, &self.blocks)
    }

    /// The evidence of all blocks so far.
    pub fn evidence(&self) -> Evidence {
        Evidence::of_blocks(&self.question, &self.blocks)
    }

    /// Whether the 95 % interval may be as narrow as a target ([`Paired::is_narrow`]).
    pub fn may_be_narrow(&self, target: f64) -> bool {
        let Some(moments) = self.moments() else { return false };
        let half = moments.interval(0.95).half_width();
        // On the ratio scale half the interval is `estimate * sinh(half)`.
        match self.question.metric.scale() {
            Scale::Ratio => half.sinh() <= target * ROUNDING,
            Scale::Difference => half <= self.question.margin * ROUNDING,
        }
    }

    /// Whether there are pairs, and none that cannot be compared.
    pub fn has_pairs(&self) -> bool {
        self.moments().is_some()
    }

    /// Whether no event was seen in any block, though its arms have figures; and then whether their bound is within the
    /// margin.
    pub fn none_seen(&self) -> Option<bool> {
        let pairs = self.blocks.pairs.len();
        let is_none_seen = counts_events(self.question.metric) && self.nonzero == 0;
        (is_none_seen && self.has_pairs() && !self.loses_too_many())
            .then(|| bounds_events(&self.question, pairs, self.blocks.messages))
    }

    fn moments(&self) -> Option<Moments> {
        match self.question.metric.scale() {
            _ if self.unfit > 0 => None,
            Scale::Ratio => self.trimmed.moments(),
            Scale::Difference => self.plain.moments(),
        }
    }

    fn loses_too_many(&self) -> bool {
        let lost = self.blocks.lost;
        let blocks = self.blocks.pairs.len() + lost[0] + lost[1];
        lost.into_iter().any(|lost| loses_too_many(lost, blocks))
    }

    /// Bounds on the e-values of the claims that may be made now.
    pub(crate) fn e_bounds(&self) -> EBounds {
        let has_tests = self.none_seen().is_none() && !self.loses_too_many();
        match self.moments() {
            Some(moments) if has_tests && self.blocks.pairs.len() >= MIN_PAIRS => EBounds {
                different: e_value(&moments, 0.0).min(self.signs.e_value()) * ROUNDING,
                equivalent: self.equivalence_e(&moments) * ROUNDING,
            },
            _ => EBounds::default(),
        }
    }

    fn equivalence_e(&self, moments: &Moments) -> f64 {
        let Some(plain) = self.plain.moments() else { return 0.0 };
        let pairs = self.blocks.pairs.len();
        let is_excluded = match self.question.metric.scale() {
            Scale::Ratio => is_coarse_step(self.step(), self.question.margin),
            Scale::Difference => is_rare(self.nonzero, pairs),
        };
        if is_excluded || pairs < min_equivalent_pairs(counts_events(self.question.metric)) {
            return 0.0;
        }
        let Interval { low, high } = self.inside;
        let by_signs = self.signs_above_low.e_value_above().min(self.signs_below_high.e_value_above());
        e_value_inside(moments, low, high).min(e_value_inside(&plain, low, high)).min(by_signs)
    }

    fn step(&self) -> f64 {
        self.steps.only().map_or(self.steps.smallest(), last_digit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{question, run_with, runs_of};
    use stacklab_model::{Metric, RunRecord, SplitMix64, Value, Verdict};

    /// Adds blocks one by one, and compares the evidence after each with that of all blocks until then.
    fn agree(metric: Metric, margin: f64, records: &[RunRecord]) -> RunningEvidence {
        let question = question(metric, margin);
        let mut running = RunningEvidence::new(&question);
        let blocks = records.iter().map(|run| run.trial.block + 1).max().unwrap();
        for block in 0..blocks {
            running.add(&Runs::new(records.iter().filter(|run| run.trial.block == block)));
            let until = Runs::new(records.iter().filter(|run| run.trial.block <= block));
            let expected = Evidence::of(&question, &until);
            assert_eq!(running.evidence(), expected);
            assert_eq!(running.has_pairs(), expected.paired.is_ok());
            let is_none_seen = matches!(expected.verdict, Verdict::NoneSeen(_));
            assert_eq!(running.none_seen(), is_none_seen.then_some(expected.may_claim));
            bound_tightly(&running, &expected);
            let Ok(paired) = &expected.paired else { continue };
            let half = paired.interval(0.95).half_width();
            let relative = if metric.scale() == Scale::Ratio { half / paired.estimate() } else { margin };
            assert!(running.may_be_narrow(relative) >= paired.is_narrow(relative, margin));
            assert!(running.may_be_narrow(relative * 0.9) <= paired.is_narrow(relative, margin));
        }
        running
    }

    #[track_caller]
    fn bound_tightly(running: &RunningEvidence, expected: &Evidence) {
        let found = running.e_bounds();
        let tests = expected.claimable_tests();
        for (bound, e) in [
            (found.different, tests.map_or(0.0, |tests| tests.e)),
            (found.equivalent, tests.map_or(0.0, |tests| tests.equivalence_e)),
        ] {
            // Evidence looks at signs only where a claim is possible.
            if e >= 20.0 || bound >= 20.1 {
                assert!(bound >= e && bound <= e * 1.002, "{bound} bounds {e}");
            }
        }
    }

    fn noise(random: &mut u64) -> f64 {
        *random = SplitMix64::mix(*random);
        (*random >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
    }

    fn wander(count: usize, apart: f64, spread: f64) -> Vec<(f64, f64)> {
        let mut random = 11_u64;
        let mut pairs = Vec::new();
        for _ in 0..count {
            let baseline = 100.0 + noise(&mut random);
            pairs.push((baseline, baseline * (apart + spread * noise(&mut random)).exp()));
        }
        pairs
    }

    #[test]
    fn ratios_decide_as_all_blocks_do() {
        for (apart, spread) in [(0.0, 0.02), (0.004, 0.03), (-0.03, 0.05), (0.0, 0.0)] {
            agree(Metric::Throughput, 0.01, &runs_of(Metric::Throughput, &wander(90, apart, spread)));
        }
        // Steps as coarse as the margin, and figures that are all alike.
        let coarse: Vec<(f64, f64)> = (0..40).map(|block| (20.0, 20.0 + f64::from(block % 2))).collect();
        agree(Metric::Throughput, 0.01, &runs_of(Metric::Throughput, &coarse));
        agree(Metric::Throughput, 0.01, &runs_of(Metric::Throughput, &[(94.715, 94.715); 40]));
        // Of noise in two states.
        let mut states = wander(60, 0.02, 0.0);
        states.iter_mut().step_by(9).for_each(|pair| pair.1 *= 0.5);
        agree(Metric::Throughput, 0.01, &runs_of(Metric::Throughput, &states));
    }

    fn vary_loss(block: u32) -> f64 {
        f64::from(block * 7 % 5) * 1e-4
    }

    #[test]
    fn differences_decide_as_all_blocks_do() {
        let pairs: Vec<(f64, f64)> = (0..90).map(|block| (vary_loss(block), vary_loss(block + 3))).collect();
        agree(Metric::Loss, 0.001, &runs_of(Metric::Loss, &pairs));
        agree(Metric::Stalls, 0.5, &runs_of(Metric::Stalls, &[(0.0, 0.0); 20]));
        let mut rare = [(0.0, 0.0); 70];
        rare[9] = (0.0, 0.1);
        agree(Metric::Loss, 0.001, &runs_of(Metric::Loss, &rare));
    }

    #[test]
    fn blocks_without_figures_decide_as_before() {
        let metric = Metric::RttP99;
        let mut records = runs_of(metric, &wander(60, 0.1, 0.01));
        let failing = question(metric, 0.02).candidate;
        for run in records.iter_mut().filter(|run| run.trial.cell == failing && run.trial.block % 8 == 3) {
            *run = run_with(run.trial.block, &failing, metric, Value::Missing("infinite".into()));
        }
        agree(metric, 0.02, &records);
        let mut zero = wander(30, 0.1, 0.01);
        zero[20].1 = 0.0;
        assert!(!agree(metric, 0.02, &runs_of(metric, &zero)).has_pairs());
    }
}
