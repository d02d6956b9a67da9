//! The claims of a campaign's comparisons together. The one rule for every verdict:
//!
//! * While the campaign runs, e-values are claimed by the e-BH procedure at [`RUNNING`]. A claim is settled for good.
//! * When it has ended, what is open has one test, claimed by Benjamini and Hochberg at [`ENDED`] over the same family;
//!   settled claims count with p = 0.
//!
//! * A campaign that measures until its intervals are narrow has chosen when to stop by its figures. Its claims are
//!   those of e-values alone, at the sum of both levels.
//!
//! So at most one in twenty of the claims of a report is expected to be false, whenever the campaign was stopped.
//!
//! Each claim has a range that allows for the selection: the interval at level `1 - 0.05 k / m`, with k claims of that
//! kind in a family of m. It is the confidence sequence for what was settled while running (Xu, Wang and Ramdas 2022,
//! e-BY), and Student's for what was claimed at the end (Benjamini and Yekutieli 2005). So at most one in twenty of the
//! ranges is expected to miss the true difference. `bench/coverage` simulates both.

use crate::comparison::Paired;
use crate::comparison::evidence::{Evidence, better, tests_to_claim};
use crate::comparison::limits::{ENDED, RUNNING};
use crate::comparison::running::{EBounds, RunningEvidence};
use crate::statistics::{benjamini_hochberg, e_benjamini_hochberg};
use stacklab_model::{Interval, Question, Tests, Verdict};

/// The share of the claims' ranges that is allowed to miss the true difference.
const MISSED: f64 = RUNNING + ENDED;

/// The level of the range of a claim, from the number of claims of its kind in a family.
pub(crate) fn range_level(claims: usize, family: usize) -> f64 {
    MISSED * claims as f64 / family as f64
}

/// Settles comparisons for good whose e-values are claimed now. Gives the numbers of those that are newly settled.
pub fn settle(settled: &mut [Option<Verdict>], questions: &[Question], evidence: &[Evidence]) -> Vec<usize> {
    settle_at(RUNNING, settled, questions, evidence)
}

/// Whether [`settle`] may settle a comparison now.
pub fn may_settle(settled: &[Option<Verdict>], running: &[RunningEvidence]) -> bool {
    let mut bounds = Vec::new();
    for (settled, running) in settled.iter().zip(running) {
        bounds.push(if settled.is_some() { EBounds::default() } else { running.e_bounds() });
    }
    let claims = claims_while_running(RUNNING, settled, |number, claim| match claim {
        Claim::Different => bounds[number].different,
        Claim::Equivalent => bounds[number].equivalent,
    });
    claims.iter().zip(settled).any(|(claim, settled)| claim.is_some() && settled.is_none())
}

fn settle_at(
    level: f64,
    settled: &mut [Option<Verdict>],
    questions: &[Question],
    evidence: &[Evidence],
) -> Vec<usize> {
    let claims = claims_while_running(level, settled, |number, claim| {
        let tests = evidence[number].claimable_tests();
        tests.map_or(0.0, |tests| match claim {
            Claim::Different => tests.e,
            Claim::Equivalent => tests.equivalence_e,
        })
    });
    let mut newly = Vec::new();
    for (number, settled) in settled.iter_mut().enumerate().filter(|(_, settled)| settled.is_none()) {
        *settled = claims[number].and_then(|claim| verdict(&questions[number], &evidence[number], claim));
        newly.extend(settled.is_some().then_some(number));
    }
    newly
}

/// The claims of e-values, with those that are settled already. `e` gives the e-value of an open comparison.
fn claims_while_running(
    level: f64,
    settled: &[Option<Verdict>],
    e: impl Fn(usize, Claim) -> f64,
) -> Vec<Option<Claim>> {
    let different = list_e(settled, Claim::Different, &e);
    let equivalent = list_e(settled, Claim::Equivalent, &e);
    claims_of_e(level, different, equivalent)
}

/// The e-value of one kind of claim of each comparison.
fn list_e(settled: &[Option<Verdict>], claim: Claim, e: &impl Fn(usize, Claim) -> f64) -> Vec<f64> {
    let mut all = Vec::new();
    for (number, settled) in settled.iter().enumerate() {
        all.push(match settled {
            Some(verdict) if claim_of(verdict) == Some(claim) => f64::INFINITY,
            Some(_) => 0.0,
            None => e(number, claim),
        });
    }
    all
}

/// How a campaign has come to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It was interrupted, or still measures: only what is settled is claimed.
    Unfinished,
    /// All that is open was measured for as long as was planned.
    Planned,
    /// Comparisons ended when their intervals were narrow.
    Precise,
}

/// What is said of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Conclusion {
    /// Its answer.
    pub verdict: Verdict,
    /// The range of a claimed difference, after selection.
    pub claimed_interval: Option<Interval>,
}

/// The verdicts of a campaign. Fills in the adjusted p of the tests.
pub fn conclude(
    settled: &[Option<Verdict>],
    questions: &[Question],
    evidence: &mut [Evidence],
    ending: Ending,
) -> Vec<Conclusion> {
    match ending {
        Ending::Precise => conclude_precise(questions, evidence),
        Ending::Planned => conclude_once(settled, questions, evidence, true),
        Ending::Unfinished => conclude_once(settled, questions, evidence, false),
    }
}

/// Of comparisons that ended when their intervals were narrow.
fn conclude_precise(questions: &[Question], evidence: &[Evidence]) -> Vec<Conclusion> {
    let mut settled = vec![None; questions.len()];
    settle_at(RUNNING + ENDED, &mut settled, questions, evidence);
    let verdicts: Vec<Verdict> = settled
        .iter()
        .zip(evidence)
        .map(|(settled, found)| settled.clone().unwrap_or_else(|| found.verdict.clone()))
        .collect();
    let claimed_intervals = claimed_intervals(questions, &verdicts, &settled, evidence);
    let all = verdicts.into_iter().zip(claimed_intervals);
    all.map(|(verdict, claimed_interval)| Conclusion { verdict, claimed_interval }).collect()
}

fn conclude_once(
    settled: &[Option<Verdict>],
    questions: &[Question],
    evidence: &mut [Evidence],
    has_ended: bool,
) -> Vec<Conclusion> {
    let p = list_p(settled, evidence, Claim::Different);
    let equivalence_p = list_p(settled, evidence, Claim::Equivalent);
    let claims = claims_at_the_end(ENDED, p, equivalence_p);
    let mut verdicts = Vec::new();
    for (number, (found, (adjusted, claim))) in evidence.iter_mut().zip(claims).enumerate() {
        if has_ended && let Some(tests) = found.tests.as_mut() {
            [tests.adjusted_p, tests.adjusted_equivalence_p] = adjusted.map(Some);
        }
        let mut answer = find_settled_verdict(settled, number).cloned();
        if answer.is_none()
            && has_ended
            && let Some(claim) = claim
        {
            answer = verdict(&questions[number], found, claim);
        }
        verdicts.push(answer.unwrap_or_else(|| found.verdict.clone()));
    }
    let claimed_intervals = claimed_intervals(questions, &verdicts, settled, evidence);
    let all = verdicts.into_iter().zip(claimed_intervals);
    all.map(|(verdict, claimed_interval)| Conclusion { verdict, claimed_interval }).collect()
}

fn find_settled_verdict(settled: &[Option<Verdict>], number: usize) -> Option<&Verdict> {
    settled.get(number).and_then(Option::as_ref)
}

/// The p of one kind of claim of each comparison.
fn list_p(settled: &[Option<Verdict>], evidence: &[Evidence], claim: Claim) -> Vec<f64> {
    let mut all = Vec::new();
    for (number, found) in evidence.iter().enumerate() {
        all.push(match find_settled_verdict(settled, number) {
            Some(verdict) if claim_of(verdict) == Some(claim) => 0.0,
            Some(_) => 1.0,
            None => match (found.claimable_tests(), claim) {
                (None, _) => 1.0,
                (Some(tests), Claim::Different) => tests.p,
                (Some(tests), Claim::Equivalent) => tests.equivalence_p,
            },
        });
    }
    all
}

/// The range of each claim. Those of each kind are counted separately: among many arms that are equivalent, the few
/// that differ would have ranges as if none had been selected.
fn claimed_intervals(
    questions: &[Question],
    verdicts: &[Verdict],
    settled: &[Option<Verdict>],
    evidence: &[Evidence],
) -> Vec<Option<Interval>> {
    let mut intervals = Vec::new();
    for (number, found) in evidence.iter().enumerate() {
        let mut interval = None;
        if let Some(claim) = claim_of(&verdicts[number]) {
            let claims = verdicts.iter().filter(|verdict| claim_of(verdict) == Some(claim)).count();
            let level = range_level(claims, verdicts.len());
            let is_settled = find_settled_verdict(settled, number).is_some();
            interval = find_range(&questions[number], found, level, is_settled);
        }
        intervals.push(interval);
    }
    intervals
}

/// The range of a claim at its level; `None` if that has no end.
fn find_range(question: &Question, found: &Evidence, level: f64, is_settled: bool) -> Option<Interval> {
    let paired = found.paired.as_ref().ok()?;
    let interval =
        if is_settled { paired.interval_at_any_time(level)? } else { paired.interval(1.0 - level) };
    let interval = interval.clip_to(question.metric.possible_effects());
    (interval.low.is_finite() && interval.high.is_finite()).then_some(interval)
}

/// A claim about pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// The arms differ, in the direction of the estimate.
    Different,
    /// The difference is inside the margin.
    Equivalent,
}

/// The claims of pairs; `None` among them is a comparison without figures. A planned number of pairs has one test at
/// the end, one that is looked at again and again has e-values alone.
pub fn claims(pairs: &[Option<&Paired>], margin: f64, is_planned: bool) -> Vec<Option<Claim>> {
    let mut all: Vec<Option<Tests>> = Vec::new();
    for paired in pairs {
        all.push(paired.map(|paired| tests_to_claim(paired, margin)));
    }
    if is_planned {
        let p = all.iter().map(|tests| tests.as_ref().map_or(1.0, |tests| tests.p));
        let equivalence_p = all.iter().map(|tests| tests.as_ref().map_or(1.0, |tests| tests.equivalence_p));
        let claims = claims_at_the_end(ENDED, p.collect(), equivalence_p.collect());
        return claims.into_iter().map(|(_, claim)| claim).collect();
    }
    let e = all.iter().map(|tests| tests.as_ref().map_or(0.0, |tests| tests.e));
    let equivalence_e = all.iter().map(|tests| tests.as_ref().map_or(0.0, |tests| tests.equivalence_e));
    claims_of_e(RUNNING, e.collect(), equivalence_e.collect())
}

/// The claims of e-values.
fn claims_of_e(level: f64, e: Vec<f64>, equivalence_e: Vec<f64>) -> Vec<Option<Claim>> {
    let [different, equivalent] = [e, equivalence_e].map(|e| e_benjamini_hochberg(&e, level));
    let all = different.into_iter().zip(equivalent);
    all.map(|(different, equivalent)| choose_claim(different, equivalent)).collect()
}

/// The claims of p at a level for each kind, and both p adjusted.
pub(crate) fn claims_at_the_end(
    level: f64,
    p: Vec<f64>,
    equivalence_p: Vec<f64>,
) -> Vec<([f64; 2], Option<Claim>)> {
    let [different, equivalent] = [p, equivalence_p].map(|p| benjamini_hochberg(&p));
    let mut claims = Vec::new();
    for (different, equivalent) in different.into_iter().zip(equivalent) {
        let claim = choose_claim(different <= level, equivalent <= level);
        claims.push(([different, equivalent], claim));
    }
    claims
}

/// What is claimed. A difference that is sure is said, also where it is inside the margin.
fn choose_claim(different: bool, equivalent: bool) -> Option<Claim> {
    match (different, equivalent) {
        (true, _) => Some(Claim::Different),
        (false, true) => Some(Claim::Equivalent),
        (false, false) => None,
    }
}

fn verdict(question: &Question, found: &Evidence, claim: Claim) -> Option<Verdict> {
    let paired = found.paired.as_ref().ok().filter(|_| found.claimable_tests().is_some())?;
    Some(match claim {
        Claim::Different => better(question, &paired.effect()),
        Claim::Equivalent => Verdict::Equivalent,
    })
}

fn claim_of(verdict: &Verdict) -> Option<Claim> {
    match verdict {
        Verdict::Better(_) => Some(Claim::Different),
        Verdict::Equivalent => Some(Claim::Equivalent),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{question, runs_of};
    use crate::runs::Runs;
    use stacklab_model::Metric;

    /// Evidence of pairs that alternate about a ratio by a standard deviation.
    fn evidence(apart: f64, sd: f64, n: usize) -> (Question, Evidence) {
        let pairs: Vec<(f64, f64)> = (0..n)
            .map(|at| (100.0, 100.0 * (apart + sd * if at % 2 == 0 { 1.0 } else { -1.0 }).exp()))
            .collect();
        let question = question(Metric::Throughput, 0.01);
        let records = runs_of(Metric::Throughput, &pairs);
        let found = Evidence::of(&question, &Runs::new(&records));
        (question, found)
    }

    fn family(all: &[(f64, f64, usize)]) -> (Vec<Question>, Vec<Evidence>) {
        all.iter().map(|(apart, sd, n)| evidence(*apart, *sd, *n)).unzip()
    }

    /// The pairs of the first of these comparisons, and what is said of it at the end of a campaign.
    fn conclude_first(all: &[(f64, f64, usize)], settled: &[Option<Verdict>]) -> (Paired, Conclusion) {
        let (questions, mut found) = family(all);
        let conclusion = conclude(settled, &questions, &mut found, Ending::Planned).remove(0);
        (found[0].paired.clone().unwrap(), conclusion)
    }

    fn verdicts(all: Vec<Conclusion>) -> Vec<Verdict> {
        all.into_iter().map(|one| one.verdict).collect()
    }

    #[test]
    fn sure_differences_and_equality_settle() {
        let (questions, found) = family(&[(-0.05, 0.01, 16), (0.0, 0.002, 16), (0.01, 0.03, 16)]);
        let mut settled = vec![None; 3];
        assert_eq!(settle(&mut settled, &questions, &found), [0, 1]);
        assert_eq!(settled, [Some(Verdict::Better("ipv4".into())), Some(Verdict::Equivalent), None]);
        // Settled for good, whatever comes.
        let (questions, found) = family(&[(0.0, 0.05, 40), (0.3, 0.01, 40), (0.01, 0.03, 40)]);
        assert_eq!(settle(&mut settled, &questions, &found), [0; 0]);
        assert_eq!(settled[..2], [Some(Verdict::Better("ipv4".into())), Some(Verdict::Equivalent)]);
    }

    #[test]
    fn what_is_settled_is_concluded() {
        let (questions, mut found) = family(&[(0.0, 0.05, 40), (0.012, 0.01, 40), (0.0, 0.05, 4)]);
        let settled = [Some(Verdict::Better("ipv4".into())), None, None];
        let ended = verdicts(conclude(&settled, &questions, &mut found, Ending::Planned));
        assert_eq!(ended[0], Verdict::Better("ipv4".into()));
        assert_eq!(ended[1], Verdict::Better("ipv6".into()), "p is far below 2.5 %");
        assert_eq!(ended[2], Verdict::Inconclusive);
        assert!(found[1].tests.as_ref().unwrap().adjusted_p.unwrap() < ENDED);
        let (questions, mut found) = family(&[(0.0, 0.05, 40), (0.012, 0.01, 40), (0.0, 0.05, 4)]);
        let running = verdicts(conclude(&settled, &questions, &mut found, Ending::Unfinished));
        assert_eq!(running[1], Verdict::Inconclusive, "nothing but settled claims before the end");
    }

    #[test]
    fn many_comparisons_need_more_evidence() {
        // Alone 2^-7 is a claim; among twenty others that show nothing it is none.
        let one = (0.02, 0.01, 8);
        let (_, alone) = conclude_first(&[one], &[]);
        assert_eq!(alone.verdict, Verdict::Better("ipv6".into()));
        let mut many = vec![(0.0, 0.05, 24); 20];
        many.insert(0, one);
        let (_, among) = conclude_first(&many, &[]);
        assert_eq!(among.verdict, Verdict::Inconclusive);
    }

    #[test]
    fn ranges_widen_with_the_selection() {
        let sure = (0.05, 0.02, 24);
        // All are claimed: nothing was selected, and the range is the plain interval.
        let (paired, found) = conclude_first(&[sure; 3], &[]);
        assert_eq!(found.claimed_interval, Some(paired.interval(1.0 - 0.05)));
        // One of ten: the interval at 99.5 %.
        let mut many = [(0.0, 0.05, 24); 10];
        many[0] = sure;
        let (paired, found) = conclude_first(&many, &[]);
        let claimed = found.claimed_interval.unwrap();
        assert_eq!(claimed, paired.interval(1.0 - 0.005));
        assert!(paired.interval(1.0 - 0.05).is_within(&claimed) && claimed.low > 1.0);
        // Settled while running: the interval that holds at any time.
        let (paired, found) = conclude_first(&many, &[Some(Verdict::Better("ipv6".into()))]);
        let at_any_time = found.claimed_interval.unwrap();
        assert_eq!(Some(at_any_time), paired.interval_at_any_time(0.005));
        assert!(claimed.is_within(&at_any_time) && at_any_time.low > 1.0);
    }

    #[test]
    fn claims_of_each_kind_are_counted_separately() {
        let mut all = [(0.0, 0.002, 24); 10];
        all[0] = (0.05, 0.02, 24);
        let (questions, mut found) = family(&all);
        let ended = conclude(&[], &questions, &mut found, Ending::Planned);
        let [different, equivalent] = [0, 1].map(|number| found[number].paired.as_ref().unwrap());
        assert_eq!(ended[1].verdict, Verdict::Equivalent);
        assert_eq!(ended[0].claimed_interval, Some(different.interval(1.0 - 0.005)));
        assert_eq!(ended[1].claimed_interval, Some(equivalent.interval(1.0 - 0.05 * 9.0 / 10.0)));
    }
}
