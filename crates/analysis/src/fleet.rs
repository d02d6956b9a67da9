//! What holds over the pairs of hosts of a fleet: random effects, by the rule of every verdict.

use crate::comparison::blocks::Blocks;
use crate::comparison::evidence::Evidence;
use crate::comparison::family::{Conclusion, conclude, settle};
use crate::comparison::{Paired, effect_of, interval_back, to_distance};
use crate::findings::overall::overall;
use crate::statistics::RandomEffects;
use stacklab_model::{
    FleetComparison, FleetFindings, FleetPair, Headline, PairAnswer, PooledEffect, Question, Verdict,
};

/// The answers of a pair of hosts to all questions, from its blocks. They are those of its record: a campaign of a
/// fixed number of blocks is looked at when it has ended (`is_whole`), and settles what is sure then if it `settles`.
pub fn pair_answers(
    questions: &[Question],
    blocks: &[Blocks],
    settles: bool,
    is_whole: bool,
) -> Vec<PairAnswer> {
    let of = |(question, blocks)| Evidence::of_blocks(question, blocks);
    let mut evidence: Vec<Evidence> = questions.iter().zip(blocks).map(of).collect();
    let mut settled = vec![None; questions.len()];
    if settles && is_whole {
        settle(&mut settled, questions, &evidence);
    }
    let conclusions = conclude(&settled, questions, &mut evidence, is_whole);
    let answer = |(found, conclusion): (Evidence, Conclusion)| PairAnswer {
        verdict: conclusion.verdict,
        effect: found.paired.ok().map(|paired| paired.effect()),
        claimed_interval: conclusion.claimed_interval,
    };
    evidence.into_iter().zip(conclusions).map(answer).collect()
}

/// Answers of many pairs of hosts, added one after the other. Its size does not depend on the number of runs.
#[derive(Debug, Clone, Default)]
pub struct OverPairs {
    title: String,
    questions: Vec<Question>,
    pairs: Vec<(FleetPair, Vec<PairAnswer>)>,
}

impl OverPairs {
    /// A study's title and questions; of no pair yet.
    pub fn new(title: &str, questions: Vec<Question>) -> Self {
        OverPairs { title: title.to_owned(), questions, pairs: Vec::new() }
    }

    /// Adds the answers of a pair. They replace those of a pair with the same name, so that none counts twice.
    pub fn add(&mut self, pair: FleetPair, answers: Vec<PairAnswer>) {
        match self.pairs.iter_mut().find(|(known, _)| known.name == pair.name) {
            Some(known) => *known = (pair, answers),
            None => self.pairs.push((pair, answers)),
        }
    }

    /// The findings over pairs. A campaign that has not ended has no claims: what is open is tested once, at the end.
    pub fn finish(self, has_ended: bool) -> FleetFindings {
        let OverPairs { title, questions, pairs } = self;
        let (pairs, rows): (Vec<FleetPair>, Vec<Vec<_>>) = pairs.into_iter().unzip();
        let mut rows: Vec<_> = rows.into_iter().map(Vec::into_iter).collect();
        let mut columns = Vec::new();
        for _ in &questions {
            columns.push(rows.iter_mut().filter_map(Iterator::next).collect::<Vec<_>>());
        }
        let counted: Vec<Vec<Unit>> =
            columns.iter().zip(&questions).map(|(column, of)| units(of, column)).collect();
        let (pooled, mut evidence): (Vec<_>, Vec<_>) =
            questions.iter().zip(&counted).map(|(question, units)| pool(question, units)).unzip();
        let conclusions = conclude(&[], &questions, &mut evidence, has_ended);
        let mut comparisons = Vec::new();
        let all = questions.into_iter().zip(columns).zip(counted).zip(pooled).zip(evidence).zip(conclusions);
        for (((((question, answers), counted), pooled), evidence), conclusion) in all {
            comparisons.push(FleetComparison {
                counted: counted.len(),
                left_out: answers.len() - counted.len(),
                pooled: pooled.and_then(|pooled| pooled_effect(&question, pooled, &evidence)),
                question,
                answers,
                verdict: conclusion.verdict,
                claimed_interval: conclusion.claimed_interval,
            });
        }
        // Its mean over sizes would take the sizes of a pair as independent.
        let overall = overall(comparisons.iter().map(From::from)).into_iter();
        let overall = overall.map(|one| Headline { effect: None, ..one });
        FleetFindings { title, has_ended, pairs, overall: overall.collect(), comparisons }
    }
}

struct Unit {
    /// Log ratio or difference, and its standard error.
    distance: (f64, f64),
    is_seen: bool,
}

/// The pairs that have a figure. One that lost too many blocks has none.
fn units(question: &Question, answers: &[PairAnswer]) -> Vec<Unit> {
    let of = |answer: &PairAnswer| {
        let effect = answer.effect.as_ref().filter(|_| !matches!(answer.verdict, Verdict::Nothing(_)))?;
        let distance = to_distance(question.metric.scale(), effect.estimate);
        let is_seen = !matches!(answer.verdict, Verdict::NoneSeen(_));
        (distance.is_finite() && effect.error.is_finite())
            .then_some(Unit { distance: (distance, effect.error), is_seen })
    };
    answers.iter().filter_map(of).collect()
}

/// The effect over pairs with its evidence; or the evidence that there is nothing to pool.
fn pool(question: &Question, units: &[Unit]) -> (Option<RandomEffects>, Evidence) {
    let scale = question.metric.scale();
    let without = |verdict| (None, Evidence::untested("not pooled".to_owned(), verdict));
    let n = units.len();
    let seen = units.iter().filter(|unit| unit.is_seen).count();
    match n {
        0 => return without(Verdict::Nothing("no pair of hosts has a figure".to_owned())),
        1 => {
            let reason = "one pair of hosts has a figure: how much pairs differ is not known below two";
            return without(Verdict::Nothing(reason.to_owned()));
        }
        _ if seen == 0 => return without(Verdict::NoneSeen(format!("none in any of {n} pairs of hosts"))),
        _ => {}
    }
    let distances: Vec<(f64, f64)> = units.iter().map(|unit| unit.distance).collect();
    let Some(found) = RandomEffects::of(&distances) else {
        return without(Verdict::Nothing("figures of pairs are too large to be averaged".to_owned()));
    };
    let distances = distances.into_iter().map(|(distance, _)| distance).collect();
    let paired = Paired::over_pairs(scale, distances, seen, &found.mean);
    (Some(found), Evidence::tested(question, paired))
}

fn pooled_effect(question: &Question, found: RandomEffects, evidence: &Evidence) -> Option<PooledEffect> {
    let scale = question.metric.scale();
    let tests = evidence.tests.as_ref()?;
    let pairs = evidence.paired.as_ref().ok()?.pairs();
    Some(PooledEffect {
        effect: effect_of(scale, pairs, &found.mean),
        spread: found.spread,
        spread_interval: found.spread_interval,
        prediction: found.prediction.map(|interval| interval_back(scale, interval)),
        p: tests.p,
        adjusted_p: tests.adjusted_p,
        equivalence_p: tests.equivalence_p,
        adjusted_equivalence_p: tests.adjusted_equivalence_p,
    })
}

#[cfg(test)]
mod tests;
