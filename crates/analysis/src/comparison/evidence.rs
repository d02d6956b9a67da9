//! The evidence of one comparison for each of its two claims, and how much more of it a verdict needs.

use crate::comparison::blocks::{Blocks, counts_events};
use crate::comparison::limits::{ENDED, RUNNING, loses_too_many, min_equivalent_pairs};
use crate::comparison::{Paired, margin_distance};
use crate::runs::Runs;
use crate::statistics::{
    Moments, e_value, e_value_inside, signed_rank_p, signed_rank_p_above, symmetric_e_value,
    symmetric_e_value_above, t_quantile,
};
use stacklab_model::{Better, Effect, MIN_PAIRS, Question, Scale, Tests, Unit, Verdict, count};

/// With fewer pairs, figures that are all alike prove nothing.
const MIN_ALIKE: usize = 5;
/// A smaller e-value claims nothing, alone or among others, and needs no other that agrees.
const MIN_CLAIMED_E: f64 = 1.0 / (RUNNING + ENDED);

/// A comparison's pairs with their tests, or the verdict that it has without any.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// The pairs; the reason, if there are none.
    pub paired: Result<Paired, String>,
    /// The tests; `None` if the verdict follows without them.
    pub tests: Option<Tests>,
    /// The verdict on a comparison without tests, or without a claim.
    pub verdict: Verdict,
    /// Whether it has enough pairs for a claim, whatever its tests. Of events of which none was seen: whether their
    /// bound is within the margin, too.
    pub may_claim: bool,
}

impl Evidence {
    /// Of the runs of a question's two cells.
    pub fn of(question: &Question, runs: &Runs) -> Self {
        Self::of_blocks(question, &Blocks::of(question, runs))
    }

    /// Of pairs given as (baseline, candidate), as simulations have them.
    pub fn of_pairs(question: &Question, pairs: &[(f64, f64)]) -> Self {
        Self::of_blocks(question, &Blocks::of_pairs(pairs))
    }

    pub(crate) fn of_blocks(question: &Question, blocks: &Blocks) -> Self {
        let paired = match Paired::of_blocks(question, blocks) {
            Ok(paired) => paired,
            Err(reason) => return Evidence::of_reason(reason.clone(), Verdict::Nothing(reason)),
        };
        match without_tests(question, &paired, blocks.messages) {
            None => Self::of_claim_tests(question, paired),
            Some(verdict) => {
                let is_none_seen = matches!(verdict, Verdict::NoneSeen(_));
                let may_claim = is_none_seen && bounds_events(question, paired.pairs(), blocks.messages);
                Evidence { paired: Ok(paired), tests: None, verdict, may_claim }
            }
        }
    }

    /// Without a claim of fewer pairs than a campaign was to have before anyone looks.
    pub fn with_at_least(mut self, needed: usize) -> Self {
        self.may_claim &= self.paired.as_ref().is_ok_and(|paired| paired.pairs() >= needed);
        self
    }

    /// Of a mean over pairs of hosts, with the tests of that mean.
    pub(crate) fn of_mean(question: &Question, paired: Paired) -> Self {
        let tests = Some(test_by_student(&paired, question.margin));
        Evidence { paired: Ok(paired), tests, verdict: Verdict::Inconclusive, may_claim: true }
    }

    /// Of pairs that are tested in any case.
    fn of_claim_tests(question: &Question, paired: Paired) -> Self {
        let tests = tests_to_claim(&paired, question.margin);
        let may_claim = paired.pairs() >= MIN_PAIRS;
        Evidence { paired: Ok(paired), tests: Some(tests), verdict: Verdict::Inconclusive, may_claim }
    }

    /// The tests that may claim something.
    pub(crate) fn claimable_tests(&self) -> Option<&Tests> {
        self.tests.as_ref().filter(|_| self.may_claim)
    }

    /// Of a comparison that is settled, whose runs need no test any more.
    pub fn of_verdict(verdict: Verdict) -> Self {
        Evidence::of_reason("settled".to_owned(), verdict)
    }

    pub(crate) fn of_reason(reason: String, verdict: Verdict) -> Self {
        Evidence { paired: Err(reason), tests: None, verdict, may_claim: false }
    }
}

/// Student's tests of pairs.
fn test_by_student(paired: &Paired, margin: f64) -> Tests {
    let moments = paired.moments;
    let margin = margin_distance(paired.scale, margin);
    let alike = moments.sd == 0.0 && paired.pairs() < MIN_ALIKE;
    let rare = paired.scale == Scale::Difference && is_rare(paired.nonzero, paired.pairs());
    Tests {
        p: if alike { 1.0 } else { moments.student().p() },
        equivalence_p: if alike || rare { 1.0 } else { moments.student().equivalence_p(&margin) },
        e: e_value(&moments, 0.0),
        equivalence_e: if rare { 0.0 } else { e_value_inside(&moments, margin.low, margin.high) },
        adjusted_p: None,
        adjusted_equivalence_p: None,
    }
}

/// Of rare events the mean is not normal: equivalence needs them in half of the pairs.
pub(crate) fn is_rare(nonzero: usize, pairs: usize) -> bool {
    2 * nonzero < pairs || nonzero < MIN_ALIKE
}

/// Each claim needs two tests that agree: Student's, which knows how large differences are, and one of their signs
/// and ranks. Student's t takes noise in two states for none while nearly all pairs are of one state. Equivalence is
/// of the plain mean too: a fifth of the blocks, which trimming leaves out, may all be worse.
pub(crate) fn tests(paired: &Paired, margin: f64) -> Tests {
    let mut tests = test_by_student(paired, margin);
    let inside = margin_distance(paired.scale, margin);
    let above_low: Vec<f64> = paired.distances.iter().map(|distance| distance - inside.low).collect();
    let below_high: Vec<f64> = paired.distances.iter().map(|distance| inside.high - distance).collect();
    let plain = Moments::of(&paired.distances).unwrap_or(paired.moments);
    tests.p = both(tests.p, || signed_rank_p(&paired.distances));
    tests.equivalence_p = both(tests.equivalence_p.max(plain.student().equivalence_p(&inside)), || {
        signed_rank_p_above(&above_low).max(signed_rank_p_above(&below_high))
    });
    if tests.e >= MIN_CLAIMED_E {
        tests.e = tests.e.min(symmetric_e_value(&paired.distances));
    }
    tests.equivalence_e = tests.equivalence_e.min(e_value_inside(&plain, inside.low, inside.high));
    if tests.equivalence_e >= MIN_CLAIMED_E {
        let by_signs = symmetric_e_value_above(&above_low).min(symmetric_e_value_above(&below_high));
        tests.equivalence_e = tests.equivalence_e.min(by_signs);
    }
    tests
}

/// The tests of pairs, of which those of equivalence claim nothing if the pairs may not be called equivalent.
pub(crate) fn tests_to_claim(paired: &Paired, margin: f64) -> Tests {
    let mut tests = tests(paired, margin);
    if !paired.may_be_equivalent(margin) {
        tests.equivalence_p = 1.0;
        tests.equivalence_e = 0.0;
    }
    tests
}

/// The larger p of two tests of one claim. One that claims nothing needs no other.
fn both(p: f64, test_by_rank: impl FnOnce() -> f64) -> f64 {
    if p > ENDED { p } else { p.max(test_by_rank()) }
}

/// The verdict of pairs that no test is needed for, or allowed.
fn without_tests(question: &Question, paired: &Paired, messages: [f64; 2]) -> Option<Verdict> {
    let lost = paired.lost;
    let blocks = paired.pairs() + lost[0] + lost[1];
    for (cell, lost) in question.cells().into_iter().zip(lost) {
        if loses_too_many(lost, blocks) {
            return Some(Verdict::Nothing(format!(
                "{} has no figure in {lost} of {}: leaving them out would favour it",
                cell.level(question.factor),
                count(blocks, "block")
            )));
        }
    }
    let none = counts_events(question.metric) && paired.nonzero == 0;
    none.then(|| Verdict::NoneSeen(none_seen(paired, messages)))
}

/// Whether events of which none was seen in this many pairs are surely rarer than the margin: by the bound on messages,
/// if a figure is a share of them. Others are counts of a trial, and six trials have a bound of 40 %.
pub(crate) fn bounds_events(question: &Question, pairs: usize, messages: [f64; 2]) -> bool {
    let is_of_messages = matches!(question.metric.unit(), Unit::Ratio | Unit::PerMessage);
    let bound = if is_of_messages { 3.0 / messages[0].min(messages[1]) } else { 0.0 };
    pairs >= MIN_PAIRS && bound <= question.margin
}

/// The bounds on events of which none was seen, 95 %: on the share of trials, `1 - 0.05^(1/n)`, and on the share of
/// messages, the rule of three.
fn none_seen(paired: &Paired, messages: [f64; 2]) -> String {
    let trials = 100.0 * (1.0 - 0.05_f64.powf(1.0 / paired.pairs() as f64));
    let messages = messages[0].min(messages[1]);
    let of_messages = if messages >= 1.0 {
        format!(" and {} % of messages", significant(300.0 / messages))
    } else {
        String::new()
    };
    let seen = count(paired.pairs(), "trial");
    let trials = significant(trials);
    format!("none in {seen} of each arm: at most {trials} % of trials{of_messages}")
}

fn significant(figure: f64) -> String {
    let places = (1.0 - figure.abs().log10().floor()).clamp(0.0, 9.0) as usize;
    format!("{figure:.places$}")
}

/// The better level by the sign of an effect.
pub(crate) fn better(question: &Question, effect: &Effect) -> Verdict {
    let is_more = match effect.scale {
        Scale::Ratio => effect.estimate > 1.0,
        Scale::Difference => effect.estimate > 0.0,
    };
    let is_candidate = is_more == (question.metric.better() == Better::Higher);
    let cell = if is_candidate { &question.candidate } else { &question.baseline };
    Verdict::Better(cell.level(question.factor))
}

/// Beyond this many blocks more, there is no telling.
const MAX_BLOCKS: f64 = 100_000.0;

/// How many more blocks an open question needs at this estimate and spread, until a test at the end of the campaign
/// claims a difference, or that there is none; `None` if no number decides it, or the blocks are enough. A standard
/// error falls as the root of the number of blocks. Nothing is claimed of fewer than `min` blocks, nor of fewer than
/// tests of signs and ranks need.
pub(crate) fn blocks_to_decide(
    question: &Question,
    effect: &Effect,
    comparisons: usize,
    min: usize,
) -> Option<u32> {
    let Effect { scale, pairs, estimate, error, degrees_of_freedom, .. } = effect;
    // As if it were the last claim of a family of which half is claimed.
    let claims = (comparisons as f64 / 2.0).max(1.0);
    let level = ENDED / claims;
    let degrees_of_freedom = degrees_of_freedom.max(1.0);
    let distance = scale.to_distance(*estimate).abs();
    let inside = margin_distance(*scale, question.margin).high - distance;
    let half_different = t_quantile(1.0 - level / 2.0, degrees_of_freedom) * error;
    let half_equivalent = t_quantile(1.0 - level, degrees_of_freedom) * error;
    let min = min.max(MIN_PAIRS);
    let min_different = min.max(blocks_for_signs(claims));
    let min_equivalent = min.max(min_equivalent_pairs(counts_events(question.metric)));
    let different = estimate_blocks(*pairs, half_different, distance, min_different);
    let equivalent = estimate_blocks(*pairs, half_equivalent, inside, min_equivalent);
    let more = different.min(equivalent).ceil() - *pairs as f64;
    (1.0..=MAX_BLOCKS).contains(&more).then_some(more as u32)
}

/// How many blocks narrow a half-width of this many pairs to the room that it has; infinite without room.
fn estimate_blocks(pairs: usize, half: f64, room: f64, min: usize) -> f64 {
    if room > 0.0 { (pairs as f64 * (half / room).powi(2)).max(min as f64) } else { f64::INFINITY }
}

/// The fewest blocks of which all have to show the same for the last of this number of claims, where nothing else is
/// claimed: their signed-rank test has p = 2^(1 - n).
pub(crate) fn blocks_for_signs(claims: f64) -> usize {
    let level = ENDED / claims.max(1.0);
    1 + (-level.log2()).ceil() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{question, run_with, runs_of};
    use stacklab_model::{Metric, Value};

    fn evidence(metric: Metric, margin: f64, pairs: &[(f64, f64)]) -> Evidence {
        let records = runs_of(metric, pairs);
        Evidence::of(&question(metric, margin), &Runs::new(&records))
    }

    #[test]
    fn no_event_is_none_seen_with_bounds() {
        let found = evidence(Metric::Loss, 0.001, &[(0.0, 0.0); 8]);
        let Verdict::NoneSeen(text) = &found.verdict else { panic!("{found:?}") };
        // 1 - 0.05^(1/8).
        assert!(text.contains("in 8 trials") && text.contains("at most 31 % of trials"), "{text}");
        assert_eq!(found.tests, None);
    }

    #[test]
    fn none_seen_is_an_answer_within_the_margin_only() {
        fn may_claim(pairs: &[(f64, f64)], sent: f64, margin: f64) -> bool {
            let mut blocks = Blocks::of_pairs(pairs);
            blocks.messages = [sent, 2.0 * sent];
            let found = Evidence::of_blocks(&question(Metric::Loss, margin), &blocks);
            assert!(matches!(found.verdict, Verdict::NoneSeen(_)), "{found:?}");
            found.may_claim
        }
        // 3 of 3000 messages are 0.1 %.
        assert!(may_claim(&[(0.0, 0.0); 6], 3000.0, 0.001));
        assert!(!may_claim(&[(0.0, 0.0); 6], 2999.0, 0.001));
        assert!(!may_claim(&[(0.0, 0.0); 2], 1e6, 0.001), "at most 78 % of trials");
        assert!(!may_claim(&[(0.0, 0.0); 60], 0.0, 0.001), "nobody counted the messages");
        // Stalls are counted in a trial: the bound of six trials is 39 %, and the margin is half of one.
        assert!(evidence(Metric::Stalls, 0.5, &[(0.0, 0.0); 6]).may_claim);
        assert!(!evidence(Metric::Stalls, 0.5, &[(0.0, 0.0); 5]).may_claim);
    }

    #[test]
    fn rare_events_are_never_equivalent() {
        let mut pairs = [(0.0, 0.0); 10];
        pairs[3] = (0.0, 0.00001);
        let found = evidence(Metric::Loss, 0.001, &pairs).tests.unwrap();
        assert_eq!((found.equivalence_p, found.equivalence_e), (1.0, 0.0));
    }

    #[test]
    fn arm_that_loses_its_figures_has_no_verdict() {
        let metric = Metric::RttP99;
        let mut records = runs_of(metric, &[(10.0, 9.0); 20]);
        let failing = question(metric, 0.02).candidate;
        for run in records.iter_mut().filter(|run| run.trial.cell == failing && run.trial.block < 7) {
            *run = run_with(run.trial.block, &failing, metric, Value::Missing("infinite".into()));
        }
        let found = Evidence::of(&question(metric, 0.02), &Runs::new(&records));
        let Verdict::Nothing(reason) = &found.verdict else { panic!("{found:?}") };
        assert!(reason.starts_with("ipv6 has no figure in 7 of 20 blocks"), "{reason}");
    }

    fn compare_equal_pairs(count: usize) -> Evidence {
        evidence(Metric::Throughput, 0.02, &vec![(5.0, 5.5); count])
    }

    #[test]
    fn equal_pairs_have_the_p_of_their_ranks() {
        let p = [4, 7, 8].map(|count| compare_equal_pairs(count).tests.unwrap().p);
        assert_eq!(p, [1.0, 1.0 / 64.0, 1.0 / 128.0]);
    }

    #[test]
    fn few_pairs_claim_nothing() {
        assert!(!compare_equal_pairs(5).may_claim && compare_equal_pairs(6).may_claim);
        assert!(!compare_equal_pairs(7).with_at_least(8).may_claim);
        assert!(compare_equal_pairs(8).with_at_least(8).may_claim);
    }

    fn effect(n: usize, middle: f64, sd: f64) -> Effect {
        let mut pairs = Vec::new();
        for number in 0..n {
            let place = if number.is_multiple_of(2) { 1.0 } else { -1.0 };
            pairs.push((1.0, (middle + sd * place).exp()));
        }
        Paired::of(Scale::Ratio, &pairs).unwrap().effect()
    }

    #[test]
    fn half_the_difference_takes_four_times_the_blocks() {
        let question = question(Metric::Throughput, 0.001);
        let [large, small] = [0.02, 0.01].map(|middle| {
            let more = blocks_to_decide(&question, &effect(20, middle, 0.1), 1, 6).unwrap();
            f64::from(20 + more)
        });
        assert!((small / large - 4.0).abs() < 0.1, "{large} and {small}");
    }

    #[test]
    fn equivalence_is_reached_inside_the_margin_only() {
        let question = question(Metric::Throughput, 0.05);
        assert!(blocks_to_decide(&question, &effect(10, 0.0, 0.2), 1, 6).is_some());
        // Fewer than 14 blocks exclude no other state.
        assert_eq!(blocks_to_decide(&question, &effect(10, 0.0, 0.0), 1, 6), Some(4));
        assert_eq!(blocks_to_decide(&question, &effect(14, 0.0, 0.0), 1, 6), None, "it is decided already");
    }

    #[test]
    fn a_plain_difference_needs_the_fewest_blocks() {
        let question = question(Metric::Throughput, 0.02);
        let plain = effect(4, -1.6, 0.01);
        // 7 blocks that agree have p = 2^-6, and with 20 claims of 40 comparisons p = 2^-10 is needed.
        for (comparisons, min, more) in [(1, 2, 3), (1, 12, 8), (40, 6, 7)] {
            assert_eq!(blocks_to_decide(&question, &plain, comparisons, min), Some(more));
        }
    }
}
