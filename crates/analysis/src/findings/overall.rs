//! Each difference over all cells in which it was asked: what the first sentence of a report says.

use crate::comparison::distance::{effect_of, to_distance};
use crate::statistics::Student;
use stacklab_model::{Comparison, Effect, Factor, FleetComparison, Headline, Interval, Question, Verdict};
use std::collections::BTreeMap;

/// A question with its answer.
#[derive(Clone, Copy)]
pub(crate) struct Answered<'a> {
    question: &'a Question,
    effect: Option<&'a Effect>,
    verdict: &'a Verdict,
    claimed_interval: Option<Interval>,
}

impl<'a> From<&'a Comparison> for Answered<'a> {
    fn from(of: &'a Comparison) -> Self {
        let Comparison { question, effect, verdict, claimed_interval, .. } = of;
        Answered { question, effect: effect.as_ref(), verdict, claimed_interval: *claimed_interval }
    }
}

impl<'a> From<&'a FleetComparison> for Answered<'a> {
    fn from(of: &'a FleetComparison) -> Self {
        let FleetComparison { question, pooled, verdict, claimed_interval, .. } = of;
        let effect = pooled.as_ref().map(|pooled| &pooled.effect);
        Answered { question, effect, verdict, claimed_interval: *claimed_interval }
    }
}

/// The differences over all cells, in the order in which they were first asked.
pub(crate) fn overall<'a, T>(comparisons: &'a [T]) -> Vec<Headline>
where
    Answered<'a>: From<&'a T>,
{
    let mut groups: Vec<Vec<Answered>> = Vec::new();
    let mut places = BTreeMap::new();
    for comparison in comparisons.iter().map(Answered::from) {
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
    let levels = [&question.baseline, &question.candidate].map(|cell| cell.level(question.factor));
    let transport = (question.factor != Factor::Transport).then_some(question.baseline.transport);
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
        transport: (question.factor != Factor::Transport).then_some(question.baseline.transport),
        comparisons: group.len(),
        answered: group.iter().filter(|comparison| comparison.verdict.is_answer()).count(),
        verdict,
        range: range(group),
        effect: effects.map(|effects| mean(&effects)),
        margin: question.margin,
    }
}

/// The verdict that holds for each comparison (intersection-union: Berger 1982), so that none hides another's.
/// `Inconclusive` if they differ.
fn at_each(group: &[Answered]) -> Verdict {
    let first = group[0].verdict;
    let seen = |comparison: &Answered| !matches!(comparison.verdict, Verdict::NoneSeen(_));
    match first {
        Verdict::NoneSeen(_) if group.iter().all(|comparison| !seen(comparison)) => first.clone(),
        Verdict::Nothing(_)
            if group.iter().all(|comparison| matches!(comparison.verdict, Verdict::Nothing(_))) =>
        {
            first.clone()
        }
        Verdict::Better(_) | Verdict::Equivalent if group.iter().all(|other| other.verdict == first) => {
            first.clone()
        }
        _ => Verdict::Inconclusive,
    }
}

fn range(group: &[Answered]) -> Option<[f64; 2]> {
    let estimates = || group.iter().filter_map(|comparison| Some(comparison.effect?.estimate));
    let low = estimates().min_by(f64::total_cmp)?;
    Some([low, estimates().max_by(f64::total_cmp)?])
}

/// The range that holds the ranges of all claims.
fn claimed_range(group: &[Answered]) -> Option<Interval> {
    let all: Option<Vec<Interval>> = group.iter().map(|comparison| comparison.claimed_interval).collect();
    let hull = |one: Interval, other: Interval| Interval {
        low: one.low.min(other.low),
        high: one.high.max(other.high),
    };
    all?.into_iter().reduce(hull)
}

/// The mean of effects of one scale, whose errors are taken as independent, each with the same weight: how sure a size
/// is says nothing of how much it matters. The degrees of freedom are Satterthwaite's.
fn mean(effects: &[&Effect]) -> Effect {
    let scale = effects[0].scale;
    let k = effects.len() as f64;
    let middle = effects.iter().map(|effect| to_distance(scale, effect.estimate)).sum::<f64>() / k;
    let variances = || effects.iter().map(|effect| (effect.error.powi(2), effect.degrees_of_freedom));
    let sum: f64 = variances().map(|(variance, _)| variance).sum();
    let shares: f64 = variances().map(|(variance, degrees)| variance.powi(2) / degrees).sum();
    let error = sum.sqrt() / k;
    let degrees_of_freedom = if shares > 0.0 { sum.powi(2) / shares } else { 1.0 };
    let distance = Student { estimate: middle, error, degrees_of_freedom };
    effect_of(scale, effects.iter().map(|effect| effect.pairs).sum(), &distance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::paired::Paired;
    use crate::fixtures::{comparison, question};
    use stacklab_model::{Metric, Scale};

    fn with(verdict: Verdict, apart: f64) -> Comparison {
        let pairs: Vec<(f64, f64)> =
            [0.001, -0.001, 0.002, -0.002, 0.0].map(|noise: f64| (1.0, (apart + noise).exp())).to_vec();
        let effect = Paired::of(Scale::Ratio, &pairs).unwrap().effect();
        Comparison { verdict, effect: Some(effect), ..comparison(question(Metric::Throughput, 0.02)) }
    }

    fn better() -> Verdict {
        Verdict::Better("ipv4".into())
    }

    #[test]
    fn direction_holds_only_where_each_size_has_it() {
        let over = |all: &[Comparison]| overall(all).remove(0);
        let found = over(&[with(better(), -0.05), with(better(), -0.03)]);
        assert_eq!((found.verdict.clone(), found.answered), (better(), 2));
        let effect = found.effect.unwrap();
        assert!((effect.estimate.ln() + 0.04).abs() < 1e-9, "{effect:?}");
        let [low, high] = found.range.unwrap();
        assert!((low.ln() + 0.05).abs() < 1e-3 && (high.ln() + 0.03).abs() < 1e-3);
        // 10 % at one size and nothing at two others is not "equivalent", and neither is -3 % beside +3 %.
        let unlike = [with(better(), -0.1), with(Verdict::Equivalent, 0.0), with(Verdict::Equivalent, 0.0)];
        let found = over(&unlike);
        assert_eq!((found.verdict, found.answered), (Verdict::Inconclusive, 3));
        assert!((found.effect.unwrap().estimate.ln() + 0.1 / 3.0).abs() < 1e-9);
        let opposite = [with(better(), -0.03), with(Verdict::Better("ipv6".into()), 0.03)];
        assert_eq!(over(&opposite).verdict, Verdict::Inconclusive);
        assert_eq!(
            over(&[with(better(), -0.05), with(Verdict::Inconclusive, -0.05)]).verdict,
            Verdict::Inconclusive
        );
    }

    #[test]
    fn claimed_range_holds_that_of_each_size() {
        let claimed = |verdict, apart: f64, low, high| Comparison {
            claimed_interval: Some(Interval { low, high }),
            ..with(verdict, apart)
        };
        let (wide, narrow) = (claimed(better(), -0.05, 0.90, 0.97), claimed(better(), -0.03, 0.96, 0.98));
        let found = overall(&[wide.clone(), narrow]).remove(0).claimed_range;
        assert_eq!(found, Some(Interval { low: 0.90, high: 0.98 }));
        // It is said of a direction only, and only if each size has a range.
        let equivalent = claimed(Verdict::Equivalent, 0.0, 0.99, 1.01);
        assert_eq!(overall(&[wide.clone(), equivalent]).remove(0).claimed_range, None);
        assert_eq!(overall(&[wide, with(better(), -0.05)]).remove(0).claimed_range, None);
    }

    #[test]
    fn comparison_without_figures_leaves_no_mean() {
        let nothing = || Verdict::Nothing("no figure".into());
        let empty = Comparison { effect: None, ..with(nothing(), 0.0) };
        let found = overall(&[empty.clone(), empty]).remove(0);
        assert_eq!((found.effect, found.verdict), (None, nothing()));
    }
}
