//! What holds over the pairs of hosts of a fleet, by the rule of every verdict.
//!
//! The mean over pairs and their spread are those of random effects. A claim is about that mean if there are many
//! pairs. Of fewer, one that differs from all others decides the mean, and its t test is wrong too often: a claim is
//! about the typical pair then, the median, by signed ranks and signs.

use crate::comparison::blocks::Blocks;
use crate::comparison::evidence::Evidence;
use crate::comparison::family::{Conclusion, Ending, conclude, range_level, settle};
use crate::comparison::{Paired, effect_of, interval_back, margin_distance};
use crate::findings::overall::overall;
use crate::statistics::{
    RandomEffects, Student, median, median_interval, sign_p, sign_p_above, signed_rank_p, signed_rank_p_above,
};
use stacklab_model::{
    FleetComparison, FleetFindings, FleetPair, Headline, Interval, MIN_FLEET_PAIRS, MIN_PAIRS_OF_MEAN,
    PairAnswer, PooledEffect, Question, Tests, Verdict,
};
use std::mem::discriminant;

/// The answers of a pair of hosts to all questions, from its blocks. They are those of its record: a campaign of a
/// fixed number of blocks is looked at when it has ended (`is_whole`), and settles what is sure then if it `settles`.
pub fn pair_answers(
    questions: &[Question],
    blocks: &[Blocks],
    settles: bool,
    is_whole: bool,
) -> Vec<PairAnswer> {
    let mut evidence = Vec::new();
    for (question, blocks) in questions.iter().zip(blocks) {
        evidence.push(Evidence::of_blocks(question, blocks));
    }
    let mut settled = vec![None; questions.len()];
    if settles && is_whole {
        settle(&mut settled, questions, &evidence);
    }
    let conclusions = conclude(&settled, questions, &mut evidence, ending(is_whole));
    let mut answers = Vec::new();
    for ((found, conclusion), question) in evidence.into_iter().zip(conclusions).zip(questions) {
        answers.push(PairAnswer {
            verdict: conclusion.verdict,
            effect: found.paired.ok().map(|paired| paired.effect().clip_to_possible(question.metric)),
            claimed_interval: conclusion.claimed_interval,
        });
    }
    answers
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
        let mut conclusions = conclude(&[], &questions, &mut evidence, ending(has_ended));
        state_typical_ranges(&mut conclusions, &questions, &counted);
        let mut comparisons = Vec::new();
        let mut stated = Vec::new();
        let all = questions.into_iter().zip(columns).zip(counted).zip(pooled).zip(evidence).zip(conclusions);
        for (((((question, answers), counted), pooled), evidence), conclusion) in all {
            let comparison = FleetComparison {
                counted: counted.len(),
                left_out: answers.len() - counted.len(),
                pooled: pooled.and_then(|pooled| pooled_effect(&question, pooled, &evidence)),
                question,
                answers,
                verdict: conclusion.verdict,
                claimed_interval: conclusion.claimed_interval,
            };
            stated.push(state_claim(&comparison, &counted));
            comparisons.push(comparison);
        }
        // Its mean over sizes would take the sizes of a pair as independent.
        let overall = overall(stated.iter().map(From::from)).into_iter();
        let overall = overall.map(|one| Headline { effect: None, ..one });
        FleetFindings { title, has_ended, pairs, overall: overall.collect(), comparisons }
    }
}

/// A fleet measures a fixed number of blocks.
fn ending(has_ended: bool) -> Ending {
    if has_ended { Ending::Planned } else { Ending::Unfinished }
}

/// What the first sentence of a report is made of: the comparison with the difference that its claim is about, without
/// the answers of the pairs.
fn state_claim(comparison: &FleetComparison, units: &[Unit]) -> FleetComparison {
    let mut stated = FleetComparison { answers: Vec::new(), ..comparison.clone() };
    if let (Some(pooled), true) = (&mut stated.pooled, units.len() < MIN_PAIRS_OF_MEAN) {
        let scale = comparison.question.metric.scale();
        let typical = typical_pair(&distances(units), pooled.effect.error, pooled.effect.degrees_of_freedom);
        pooled.effect = effect_of(scale, units.len(), &typical).clip_to_possible(comparison.question.metric);
    }
    stated
}

/// The ranges of claims about the typical pair: between two of the pairs' estimates, as of every median.
fn state_typical_ranges(conclusions: &mut [Conclusion], questions: &[Question], counted: &[Vec<Unit>]) {
    let verdicts: Vec<Verdict> = conclusions.iter().map(|one| one.verdict.clone()).collect();
    for ((conclusion, question), units) in conclusions.iter_mut().zip(questions).zip(counted) {
        let is_claim = matches!(conclusion.verdict, Verdict::Better(_) | Verdict::Equivalent);
        if !is_claim || units.len() >= MIN_PAIRS_OF_MEAN {
            continue;
        }
        let kind = discriminant(&conclusion.verdict);
        let claims = verdicts.iter().filter(|verdict| discriminant(*verdict) == kind).count();
        let level = range_level(claims, verdicts.len());
        let range = median_interval(&distances(units), 1.0 - level);
        conclusion.claimed_interval =
            range.map(|range| interval_back(question.metric.scale(), range.interval));
    }
}

struct Unit {
    /// Log ratio or difference, and its standard error.
    distance: (f64, f64),
    is_seen: bool,
}

fn distances(units: &[Unit]) -> Vec<f64> {
    units.iter().map(|unit| unit.distance.0).collect()
}

/// The pairs that have a figure. One that lost too many blocks has none.
fn units(question: &Question, answers: &[PairAnswer]) -> Vec<Unit> {
    let mut units = Vec::new();
    for answer in answers {
        if matches!(answer.verdict, Verdict::Nothing(_)) {
            continue;
        }
        let Some(effect) = &answer.effect else { continue };
        let distance = question.metric.scale().to_distance(effect.estimate);
        if distance.is_finite() && effect.error.is_finite() {
            let is_seen = !matches!(answer.verdict, Verdict::NoneSeen(_));
            units.push(Unit { distance: (distance, effect.error), is_seen });
        }
    }
    units
}

/// The effect over pairs with its evidence; or the evidence that there is nothing to pool.
fn pool(question: &Question, units: &[Unit]) -> (Option<RandomEffects>, Evidence) {
    let scale = question.metric.scale();
    let n = units.len();
    let seen = units.iter().filter(|unit| unit.is_seen).count();
    match n {
        0 => return refuse_pooling(Verdict::Nothing("no pair of hosts has a figure".to_owned())),
        1 => {
            let reason = "one pair of hosts has a figure: how much pairs differ is not known below two";
            return refuse_pooling(Verdict::Nothing(reason.to_owned()));
        }
        _ if seen == 0 => {
            return refuse_pooling(Verdict::NoneSeen(format!("none in any of {n} pairs of hosts")));
        }
        _ => {}
    }
    let with_errors: Vec<(f64, f64)> = units.iter().map(|unit| unit.distance).collect();
    let Some(found) = RandomEffects::of(&with_errors) else {
        let reason = "figures of pairs are too large to be averaged";
        return refuse_pooling(Verdict::Nothing(reason.to_owned()));
    };
    let distances = distances(units);
    let of_mean = Paired::over_pairs(scale, distances.clone(), seen, &found.mean);
    let mut evidence = Evidence::of_mean(question, of_mean);
    if n < MIN_PAIRS_OF_MEAN {
        if let Some(tests) = &mut evidence.tests {
            test_typical_pair(tests, &distances, &margin_distance(scale, question.margin));
        }
        // A claim has its direction from it.
        let typical = typical_pair(&distances, found.mean.error, found.mean.degrees_of_freedom);
        evidence.paired = Ok(Paired::over_pairs(scale, distances, seen, &typical));
    }
    (Some(found), evidence)
}

fn refuse_pooling(verdict: Verdict) -> (Option<RandomEffects>, Evidence) {
    (None, Evidence::of_reason("not pooled".to_owned(), verdict))
}

/// The median of the pairs, with the error of their mean.
fn typical_pair(distances: &[f64], error: f64, degrees_of_freedom: f64) -> Student {
    Student { estimate: median(distances).unwrap_or_default(), error, degrees_of_freedom }
}

/// Tests the typical pair. Signed ranks take the pairs' differences as symmetric, signs do not, so the larger p counts:
/// of 30 skewed pairs, signed ranks alone make four times as many false claims as allowed. Equivalence is claimed only
/// where the mean is inside the margin, too.
fn test_typical_pair(tests: &mut Tests, distances: &[f64], margin: &Interval) {
    tests.p = signed_rank_p(distances).max(sign_p(distances));
    if distances.len() < MIN_FLEET_PAIRS {
        // Of six pairs, a difference cannot be claimed; no more can equivalence.
        tests.equivalence_p = 1.0;
        return;
    }
    let above_low: Vec<f64> = distances.iter().map(|distance| distance - margin.low).collect();
    let below_high: Vec<f64> = distances.iter().map(|distance| margin.high - distance).collect();
    for shifted in [above_low, below_high] {
        let p = signed_rank_p_above(&shifted).max(sign_p_above(&shifted));
        tests.equivalence_p = tests.equivalence_p.max(p);
    }
}

fn pooled_effect(question: &Question, found: RandomEffects, evidence: &Evidence) -> Option<PooledEffect> {
    let scale = question.metric.scale();
    let tests = evidence.tests.as_ref()?;
    let pairs = evidence.paired.as_ref().ok()?.pairs();
    Some(PooledEffect {
        effect: effect_of(scale, pairs, &found.mean).clip_to_possible(question.metric),
        spread: found.spread,
        spread_interval: found.spread_interval,
        prediction: found
            .prediction
            .map(|interval| interval_back(scale, interval).clip_to(question.metric.possible_effects())),
        p: tests.p,
        adjusted_p: tests.adjusted_p,
        equivalence_p: tests.equivalence_p,
        adjusted_equivalence_p: tests.adjusted_equivalence_p,
    })
}

#[cfg(test)]
mod tests;
