//! Each difference over all cells in which it was asked: what the first sentence of a report says. And the candidates
//! that are worse than is allowed.

use crate::comparison::effect_of;
use crate::records::unpaired::is_beyond;
use crate::statistics::Student;
use stacklab_model::{
    Comparison, Effect, Findings, FleetComparison, Headline, Interval, Question, UnpairedRange, Verdict,
};
use std::collections::BTreeMap;
use std::mem::discriminant;

#[derive(Clone, Copy)]
pub(crate) struct Answered<'a> {
    question: &'a Question,
    effect: Option<&'a Effect>,
    verdict: &'a Verdict,
    is_answer: bool,
    /// The estimate of runs that are not paired, and how many runs each arm has.
    unpaired: Option<(f64, [usize; 2])>,
    claimed_interval: Option<Interval>,
}

impl<'a> From<&'a Comparison> for Answered<'a> {
    fn from(of: &'a Comparison) -> Self {
        let Comparison { question, effect, verdict, claimed_interval, .. } = of;
        let runs = [of.baseline_estimate.n, of.candidate_estimate.n];
        Answered {
            question,
            effect: effect.as_ref(),
            verdict,
            is_answer: of.is_answer(),
            unpaired: of.unpaired.as_ref().map(|found| (found.estimate, runs)),
            claimed_interval: *claimed_interval,
        }
    }
}

impl<'a> From<&'a FleetComparison> for Answered<'a> {
    fn from(of: &'a FleetComparison) -> Self {
        let FleetComparison { question, pooled, verdict, claimed_interval, .. } = of;
        let effect = pooled.as_ref().map(|pooled| &pooled.effect);
        let is_answer = of.is_answer();
        let claimed_interval = *claimed_interval;
        Answered { question, effect, verdict, is_answer, unpaired: None, claimed_interval }
    }
}

/// The differences over all cells, in the order in which they were first asked.
pub(crate) fn overall<'a>(comparisons: impl Iterator<Item = Answered<'a>>) -> Vec<Headline> {
    let mut groups: Vec<Vec<Answered>> = Vec::new();
    let mut places = BTreeMap::new();
    for comparison in comparisons {
        let place = *places.entry(key(comparison)).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.push(comparison),
            None => groups.push(vec![comparison]),
        }
    }
    groups.iter().map(|group| over(group)).collect()
}

fn key(comparison: Answered) -> impl Ord + use<> {
    let question = comparison.question;
    let levels = question.cells().map(|cell| cell.level(question.factor));
    let transport = question.transport();
    (question.factor, levels, question.metric, transport)
}

fn over(group: &[Answered]) -> Headline {
    let question = group[0].question;
    let effects: Option<Vec<&Effect>> = group.iter().map(|comparison| comparison.effect).collect();
    let verdict = at_each(group);
    Headline {
        claimed_range: claimed_range(group).filter(|_| matches!(verdict, Verdict::Better(_))),
        factor: question.factor,
        baseline: question.baseline.level(question.factor),
        candidate: question.candidate.level(question.factor),
        metric: question.metric,
        transport: question.transport(),
        comparisons: group.len(),
        answered: group.iter().filter(|comparison| comparison.is_answer).count(),
        verdict,
        range: range(group),
        unpaired: unpaired_range(group),
        effect: effects.map(|effects| mean(&effects).clip_to_possible(question.metric)),
        margin: question.margin,
    }
}

/// The verdict that holds for each comparison (intersection-union: Berger 1982), so that none hides another's.
/// `Inconclusive` if they differ.
fn at_each(group: &[Answered]) -> Verdict {
    let first = group[0].verdict;
    for other in group {
        let agrees = match first {
            Verdict::Better(_) => other.verdict == first,
            _ => discriminant(other.verdict) == discriminant(first),
        };
        if !agrees {
            return Verdict::Inconclusive;
        }
    }
    first.clone()
}

/// The lowest and the highest estimate of those that are answered; of all, if none is.
fn range(group: &[Answered]) -> Option<[f64; 2]> {
    let is_any_answered = group.iter().any(|comparison| comparison.is_answer);
    let mut estimates = Vec::new();
    for comparison in group {
        if let Some(effect) = comparison.effect
            && (comparison.is_answer || !is_any_answered)
        {
            estimates.push(effect.estimate);
        }
    }
    estimates.sort_by(f64::total_cmp);
    Some([*estimates.first()?, *estimates.last()?])
}

/// The lowest and the highest estimate of runs that are not paired.
fn unpaired_range(group: &[Answered]) -> Option<UnpairedRange> {
    let found: Vec<(f64, [usize; 2])> = group.iter().filter_map(|comparison| comparison.unpaired).collect();
    let (_, first_runs) = *found.first()?;
    let mut range = [f64::INFINITY, f64::NEG_INFINITY];
    for (estimate, _) in &found {
        range = [range[0].min(*estimate), range[1].max(*estimate)];
    }
    let is_alike = found.iter().all(|(_, runs)| *runs == first_runs);
    Some(UnpairedRange { range, runs: is_alike.then_some(first_runs) })
}

/// What encloses the ranges of all claims; `None` if one has no range.
fn claimed_range(group: &[Answered]) -> Option<Interval> {
    let mut hull = group.first()?.claimed_interval?;
    for comparison in group {
        let Interval { low, high } = comparison.claimed_interval?;
        hull = Interval { low: hull.low.min(low), high: hull.high.max(high) };
    }
    Some(hull)
}

/// The mean of effects of one scale, whose errors are taken as independent, each with the same weight: how sure a size
/// is says nothing of how much it matters. The degrees of freedom are Satterthwaite's.
fn mean(effects: &[&Effect]) -> Effect {
    let scale = effects[0].scale;
    let k = effects.len() as f64;
    let middle = effects.iter().map(|effect| scale.to_distance(effect.estimate)).sum::<f64>() / k;
    let sum: f64 = effects.iter().map(|effect| effect.error.powi(2)).sum();
    let shares: f64 =
        effects.iter().map(|effect| effect.error.powi(2).powi(2) / effect.degrees_of_freedom).sum();
    let error = sum.sqrt() / k;
    let degrees_of_freedom = if shares > 0.0 { sum.powi(2) / shares } else { 1.0 };
    let distance = Student { estimate: middle, error, degrees_of_freedom };
    effect_of(scale, effects.iter().map(|effect| effect.pairs).sum(), &distance)
}

/// The comparisons of a campaign whose candidate is worse by more than `allowed` (0.05 is 5 %), or lacks a figure that
/// its baseline has. The verdicts are those of the report: without one, a candidate is not worse.
pub fn worse(findings: &Findings, allowed: f64) -> Vec<&Comparison> {
    findings.comparisons.iter().filter(|comparison| is_worse(comparison, allowed)).collect()
}

fn is_worse(comparison: &Comparison, allowed: f64) -> bool {
    let Comparison { question, baseline_estimate, candidate_estimate, .. } = comparison;
    if baseline_estimate.n > 0 && candidate_estimate.n == 0 {
        return true;
    }
    let baseline = question.baseline.level(question.factor);
    comparison.verdict == Verdict::Better(baseline)
        && is_beyond(
            question.metric,
            question.margin,
            baseline_estimate,
            comparison.claimed_interval,
            allowed,
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::Paired;
    use crate::fixtures::{self, question};
    use stacklab_model::{Estimate, Metric, Scale};

    fn overall(all: &[Comparison]) -> Vec<Headline> {
        super::overall(all.iter().map(Answered::from))
    }

    fn with(verdict: Verdict, apart: f64) -> Comparison {
        let pairs: Vec<(f64, f64)> =
            [0.001, -0.001, 0.002, -0.002, 0.0].map(|noise: f64| (1.0, (apart + noise).exp())).to_vec();
        let effect = Paired::of(Scale::Ratio, &pairs).unwrap().effect();
        Comparison {
            verdict,
            effect: Some(effect),
            ..fixtures::comparison(question(Metric::Throughput, 0.02))
        }
    }

    fn with_range(verdict: Verdict, apart: f64, low: f64, high: f64) -> Comparison {
        Comparison { claimed_interval: Some(Interval { low, high }), ..with(verdict, apart) }
    }

    fn better() -> Verdict {
        Verdict::Better("ipv4".into())
    }

    fn find_headline(all: &[Comparison]) -> Headline {
        overall(all).remove(0)
    }

    #[test]
    fn direction_holds_only_where_each_size_has_it() {
        let found = find_headline(&[with(better(), -0.05), with(better(), -0.03)]);
        assert_eq!((found.verdict.clone(), found.answered), (better(), 2));
        let effect = found.effect.unwrap();
        assert!((effect.estimate.ln() + 0.04).abs() < 1e-9, "{effect:?}");
        let [low, high] = found.range.unwrap();
        assert!((low.ln() + 0.05).abs() < 1e-3 && (high.ln() + 0.03).abs() < 1e-3);
        // 10 % at one size and nothing at two others is not "equivalent", and neither is -3 % beside +3 %.
        let unlike = [with(better(), -0.1), with(Verdict::Equivalent, 0.0), with(Verdict::Equivalent, 0.0)];
        let found = find_headline(&unlike);
        assert_eq!((found.verdict, found.answered), (Verdict::Inconclusive, 3));
        assert!((found.effect.unwrap().estimate.ln() + 0.1 / 3.0).abs() < 1e-9);
        let opposite = [with(better(), -0.03), with(Verdict::Better("ipv6".into()), 0.03)];
        assert_eq!(find_headline(&opposite).verdict, Verdict::Inconclusive);
        let open = [with(better(), -0.05), with(Verdict::Inconclusive, -0.05)];
        assert_eq!(find_headline(&open).verdict, Verdict::Inconclusive);
    }

    #[test]
    fn claimed_range_holds_that_of_each_size() {
        let wide = with_range(better(), -0.05, 0.90, 0.97);
        let narrow = with_range(better(), -0.03, 0.96, 0.98);
        let found = find_headline(&[wide.clone(), narrow]).claimed_range;
        assert_eq!(found, Some(Interval { low: 0.90, high: 0.98 }));
        // It is said of a direction only, and only if each size has a range.
        let equivalent = with_range(Verdict::Equivalent, 0.0, 0.99, 1.01);
        assert_eq!(find_headline(&[wide.clone(), equivalent]).claimed_range, None);
        assert_eq!(find_headline(&[wide, with(better(), -0.05)]).claimed_range, None);
    }

    #[test]
    fn comparison_without_figures_leaves_no_mean() {
        let nothing = Verdict::Nothing("no figure".into());
        let empty = Comparison { effect: None, ..with(nothing.clone(), 0.0) };
        let found = find_headline(&[empty.clone(), empty]);
        assert_eq!((found.effect, found.verdict), (None, nothing));
    }

    fn comparison(metric: Metric, verdict: Verdict, [low, high]: [f64; 2]) -> Comparison {
        let estimate = Estimate { n: 10, mean: Some(0.1), ..Estimate::default() };
        Comparison {
            baseline_estimate: estimate.clone(),
            candidate_estimate: estimate,
            verdict,
            claimed_interval: Some(Interval { low, high }),
            ..fixtures::comparison(question(metric, 0.01))
        }
    }

    #[test]
    fn worse_by_more_than_allowed_fails() {
        let throughput = Metric::Throughput;
        assert!(is_worse(&comparison(throughput, better(), [0.90, 0.96]), 0.03));
        let partly = comparison(throughput, better(), [0.90, 0.98]);
        assert!(!is_worse(&partly, 0.03), "a part of the range is allowed");
        let other = Verdict::Better("ipv6".to_owned());
        assert!(!is_worse(&comparison(throughput, other, [1.04, 1.1]), 0.03));
        let open = comparison(throughput, Verdict::Inconclusive, [0.90, 0.96]);
        assert!(!is_worse(&open, 0.03), "verdicts alone fail");
        assert!(is_worse(&comparison(Metric::Rtt, better(), [1.04, 1.1]), 0.03));
        // In points, and the margin at least.
        for (low, allowed, fails) in [(0.04, 0.03, true), (0.02, 0.03, false), (0.009, 0.0, false)] {
            let loss = comparison(Metric::Loss, better(), [low, 0.2]);
            assert_eq!(is_worse(&loss, allowed), fails, "{low}");
        }
    }

    #[test]
    fn candidate_without_figures_fails() {
        let mut gone = comparison(Metric::Throughput, Verdict::Nothing("no run".to_owned()), [1.0, 1.0]);
        gone.candidate_estimate = Estimate::default();
        assert!(is_worse(&gone, 0.5));
        gone.baseline_estimate = Estimate::default();
        assert!(!is_worse(&gone, 0.5), "there is nothing to compare with");
    }
}
