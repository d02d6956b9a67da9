//! The evidence of one comparison for each of its two claims.

use crate::comparison::blocks::{Blocks, counts_events};
use crate::comparison::distance::margin_distance;
use crate::comparison::paired::Paired;
use crate::runs::Runs;
use crate::statistics::{e_value, e_value_inside};
use stacklab_model::{Better, Effect, Question, Scale, Tests, Verdict};

/// With fewer pairs, figures that are all alike prove nothing.
const LEAST_ALIKE: usize = 5;
/// The largest share of blocks that one arm may have lost.
const MOST_LOST: f64 = 0.1;

/// A comparison's pairs with their tests, or the verdict that it has without any.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// The pairs; the reason, if there are none.
    pub paired: Result<Paired, String>,
    /// The tests; `None` if the verdict follows without them.
    pub tests: Option<Tests>,
    /// The verdict on a comparison without tests.
    pub verdict: Verdict,
}

impl Evidence {
    /// The evidence of a question's runs.
    pub fn of(question: &Question, runs: &Runs) -> Self {
        Self::of_blocks(question, &Blocks::of(question, runs))
    }

    /// Of pairs given as (baseline, candidate), as simulations have them.
    pub fn of_pairs(question: &Question, pairs: &[(f64, f64)]) -> Self {
        Self::of_blocks(question, &Blocks::of_pairs(pairs))
    }

    /// Of a question's figures by block.
    pub(crate) fn of_blocks(question: &Question, blocks: &Blocks) -> Self {
        let paired = Paired::of_blocks(question, blocks);
        let verdict = match &paired {
            Err(reason) => Some(Verdict::Nothing(reason.clone())),
            Ok(paired) => without_tests(question, paired, blocks.messages),
        };
        match (paired, verdict) {
            (Ok(paired), None) => Self::tested(question, paired),
            (paired, verdict) => {
                Evidence { paired, tests: None, verdict: verdict.unwrap_or(Verdict::Inconclusive) }
            }
        }
    }

    /// Of pairs that are tested in any case.
    pub(crate) fn tested(question: &Question, paired: Paired) -> Self {
        let tests = Some(tests(&paired, question.margin));
        Evidence { paired: Ok(paired), tests, verdict: Verdict::Inconclusive }
    }

    /// Of a comparison that is settled, whose runs need no test any more.
    pub fn settled(verdict: Verdict) -> Self {
        Evidence { paired: Err("settled".to_owned()), tests: None, verdict }
    }
}

pub(crate) fn tests(paired: &Paired, margin: f64) -> Tests {
    let moments = paired.moments();
    let margin = margin_distance(paired.scale(), margin);
    let alike = moments.sd == 0.0 && paired.pairs() < LEAST_ALIKE;
    // Of rare events the mean is not normal: equivalence needs them in half of the pairs.
    let rare = paired.scale() == Scale::Difference
        && (2 * paired.nonzero() < paired.pairs() || paired.nonzero() < LEAST_ALIKE);
    Tests {
        p: if alike { 1.0 } else { moments.student().p() },
        equivalence_p: if alike || rare { 1.0 } else { moments.student().equivalence_p(&margin) },
        e: e_value(moments, 0.0),
        equivalence_e: if rare { 0.0 } else { e_value_inside(moments, margin.low, margin.high) },
        adjusted_p: None,
        adjusted_equivalence_p: None,
    }
}

/// The verdict of pairs that no test is needed for, or allowed.
fn without_tests(question: &Question, paired: &Paired, messages: [f64; 2]) -> Option<Verdict> {
    let lost = paired.lost();
    let blocks = paired.pairs() + lost[0] + lost[1];
    for (cell, lost) in [&question.baseline, &question.candidate].into_iter().zip(lost) {
        if lost as f64 > MOST_LOST * blocks as f64 {
            return Some(Verdict::Nothing(format!(
                "{} has no figure in {lost} of {blocks} blocks: leaving them out would favour it",
                cell.level(question.factor)
            )));
        }
    }
    let none = counts_events(question.metric) && paired.nonzero() == 0;
    none.then(|| Verdict::NoneSeen(none_seen(paired, messages)))
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
    format!(
        "none in {} trials of each arm: at most {} % of trials{of_messages}",
        paired.pairs(),
        significant(trials)
    )
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

    #[test]
    fn equal_pairs_need_five() {
        assert_eq!(evidence(Metric::Throughput, 0.02, &[(5.0, 5.5); 4]).tests.unwrap().p, 1.0);
        assert_eq!(evidence(Metric::Throughput, 0.02, &[(5.0, 5.5); 5]).tests.unwrap().p, 0.0);
    }
}
