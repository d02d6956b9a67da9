//! Each difference over all cells in which it was asked: what the first sentence of a report says.

use crate::comparison::distance::{back, interval_back, to_distance};
use crate::findings::floors::verdict_above;
use stacklab_model::{Comparison, Effect, Factor, Floor, Interval, Overall, Verdict};

/// The differences over all cells, in the order in which they were first asked.
pub(super) fn overall(comparisons: &[Comparison], floors: &[Floor]) -> Vec<Overall> {
    let mut groups: Vec<Vec<&Comparison>> = Vec::new();
    for comparison in comparisons {
        match groups.iter_mut().find(|group| key(group[0]) == key(comparison)) {
            Some(group) => group.push(comparison),
            None => groups.push(vec![comparison]),
        }
    }
    groups.iter().map(|group| over(group, floors)).collect()
}

fn key(comparison: &Comparison) -> impl PartialEq + use<> {
    let question = &comparison.question;
    let levels = [&question.baseline, &question.candidate].map(|cell| cell.level(question.factor));
    let transport = (question.factor != Factor::Transport).then_some(question.baseline.transport);
    (question.factor, levels, question.metric, transport)
}

fn over(group: &[&Comparison], floors: &[Floor]) -> Overall {
    let question = &group[0].question;
    let effects: Option<Vec<&Effect>> = group.iter().map(|comparison| comparison.effect.as_ref()).collect();
    let effect = effects.map(|effects| mean(&effects));
    let verdict = match group {
        // Its adjusted p counts, too.
        [one] => one.verdict.clone(),
        _ => verdict_above(question, effect.as_ref().ok_or("a comparison has no figures"), floors),
    };
    Overall {
        factor: question.factor,
        baseline: question.baseline.level(question.factor),
        candidate: question.candidate.level(question.factor),
        metric: question.metric,
        transport: (question.factor != Factor::Transport).then_some(question.baseline.transport),
        comparisons: group.len(),
        answered: group
            .iter()
            .filter(|comparison| matches!(comparison.verdict, Verdict::Better(_) | Verdict::Equivalent))
            .count(),
        verdict,
        effect,
        margin: question.margin,
    }
}

/// The mean of independent effects of one scale, weighted by their precision: a comparison that one disturbed trial
/// made wide has little weight. Equal weights if an interval has no width.
fn mean(effects: &[&Effect]) -> Effect {
    let scale = effects[0].scale;
    let distance = |figure: f64| to_distance(scale, figure);
    let half = |interval: &Interval| (distance(interval.high) - distance(interval.low)) / 2.0;
    let exact = effects.iter().any(|effect| half(&effect.interval95) <= 0.0);
    let weight = |effect: &Effect| if exact { 1.0 } else { half(&effect.interval95).powi(-2) };
    let all: f64 = effects.iter().map(|effect| weight(effect)).sum();
    let middle = effects.iter().map(|effect| weight(effect) * distance(effect.estimate)).sum::<f64>() / all;
    let interval = |of: fn(&Effect) -> Interval| {
        let squares = effects.iter().map(|effect| (weight(effect) * half(&of(effect))).powi(2));
        let half = squares.sum::<f64>().sqrt() / all;
        interval_back(scale, Interval { low: middle - half, high: middle + half })
    };
    Effect {
        scale,
        pairs: effects.iter().map(|effect| effect.pairs).sum(),
        estimate: back(scale, middle),
        interval90: interval(|effect| effect.interval90),
        interval95: interval(|effect| effect.interval95),
        interval99: interval(|effect| effect.interval99),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::paired::Paired;
    use crate::comparison::verdict::verdict;
    use crate::fixtures::{comparison, question};
    use stacklab_model::{Metric, Scale};

    fn with(pairs: &[(f64, f64)]) -> Comparison {
        let question = question(Metric::Throughput, 0.02);
        let effect = Paired::of(Scale::Ratio, pairs).unwrap().effect();
        Comparison { verdict: verdict(&question, Ok(&effect)), effect: Some(effect), ..comparison(question) }
    }

    #[test]
    fn a_mean_over_cells_is_narrower_than_each_and_judged_by_the_same_rule() {
        let one = with(&[(1.0, 0.95), (1.0, 0.97), (1.0, 0.96), (1.0, 0.93)]);
        let other = with(&[(1.0, 0.94), (1.0, 0.96), (1.0, 0.95), (1.0, 0.92)]);
        let found = overall(&[one.clone(), other], &[]);
        let [found] = &found[..] else { panic!("one group") };
        let (effect, single) = (found.effect.as_ref().unwrap(), one.effect.as_ref().unwrap());
        assert!((effect.estimate - 0.9474).abs() < 1e-3, "{effect:?}");
        assert!(effect.interval95.half_width() < single.interval95.half_width());
        assert_eq!((found.comparisons, effect.pairs), (2, 8));
        assert_eq!(found.verdict, Verdict::Better("ipv4".into()));
    }

    #[test]
    fn a_comparison_without_figures_leaves_no_mean() {
        let empty = Comparison { effect: None, ..with(&[(1.0, 1.0), (1.0, 1.01)]) };
        let found = overall(&[with(&[(1.0, 1.0), (1.0, 1.01)]), empty], &[]);
        assert!(found[0].effect.is_none() && matches!(found[0].verdict, Verdict::Nothing(_)));
    }

    #[test]
    fn what_an_arm_differs_from_itself_or_chance_explains_is_not_said_first_either() {
        let [one, other] =
            [0.95, 0.96].map(|figure| with(&[(1.0, figure), (1.0, figure + 0.002), (1.0, figure)]));
        assert_eq!(one.verdict, Verdict::Better("ipv4".into()));
        // An arm differs from itself by 8 %.
        let effect = Paired::of(Scale::Ratio, &[(1.0, 0.92), (1.0, 0.92)]).unwrap().effect();
        let floor = Floor { metric: Metric::Throughput, transport: one.question.baseline.transport, effect };
        for (floors, expected) in
            [(vec![], Verdict::Better("ipv4".into())), (vec![floor], Verdict::Inconclusive)]
        {
            assert_eq!(overall(&[one.clone(), other.clone()], &floors)[0].verdict, expected);
        }
        let by_chance = Comparison { verdict: Verdict::Inconclusive, ..one };
        assert_eq!(overall(&[by_chance], &[])[0].verdict, Verdict::Inconclusive);
    }
}
