//! What the pairs say.

use stacklab_model::{Better, Effect, Interval, Question, Scale, Verdict};
use std::cmp::Ordering;

/// What the intervals of an effect show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Significance {
    /// Whether the 90 % interval lies inside the margin: two one-sided tests at 5 %.
    pub is_equivalent: bool,
    /// The side of "no difference" on which the whole 99 % interval lies; `None` where it contains it.
    pub side: Option<Ordering>,
}

/// The rule that every verdict follows, of paired and of unpaired effects. A difference may be significant and
/// equivalent at once.
///
/// The 99 % interval is used, not the 95 % one, because a campaign tests after each block and stops at the first
/// significant result ([`crate::stopping_state`]).
pub fn significance(scale: Scale, interval90: &Interval, interval99: &Interval, margin: f64) -> Significance {
    let none = no_difference(scale);
    let side = if interval99.contains(none) { None } else { interval99.low.partial_cmp(&none) };
    Significance { is_equivalent: interval90.is_within(&self::margin(scale, margin)), side }
}

/// Judges a question by its effect, or by the reason why there is none.
///
/// * `Equivalent`: the 90 % interval lies inside the margin (two one-sided tests at 5 %), however sure the difference
///   is: one too small to matter is none.
/// * `Better`: the 99 % interval leaves out "no difference". Not the 95 % one, because a campaign looks again after
///   each block and stops when it is sure of what it sees; [`crate::standing`] says how sure that is.
/// * `Inconclusive`: neither.
pub fn verdict(question: &Question, effect: Result<&Effect, &str>) -> Verdict {
    let effect = match effect {
        Ok(effect) => effect,
        Err(reason) => return Verdict::Nothing(reason.to_owned()),
    };
    let found = significance(effect.scale, &effect.interval90, &effect.interval99, question.margin);
    if found.is_equivalent {
        return Verdict::Equivalent;
    }
    let Some(side) = found.side else { return Verdict::Inconclusive };
    let candidate_is_better = side.is_gt() == (question.metric.better() == Better::Higher);
    let better = if candidate_is_better { &question.candidate } else { &question.baseline };
    Verdict::Better(better.level(question.factor))
}

/// The effects that count as none.
pub(crate) fn margin(scale: Scale, margin: f64) -> Interval {
    match scale {
        Scale::Ratio => Interval { low: 1.0 / (1.0 + margin), high: 1.0 + margin },
        Scale::Difference => Interval { low: -margin, high: margin },
    }
}

/// The effect that is none.
pub(crate) fn no_difference(scale: Scale) -> f64 {
    match scale {
        Scale::Ratio => 1.0,
        Scale::Difference => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Paired;
    use crate::fixtures::question;
    use stacklab_model::Metric;

    fn judged(metric: Metric, pairs: &[(f64, f64)]) -> Verdict {
        let question = question(metric, if metric.scale() == Scale::Ratio { 0.02 } else { 0.001 });
        match Paired::of(metric.scale(), pairs) {
            Ok(paired) => verdict(&question, Ok(&paired.effect())),
            Err(reason) => verdict(&question, Err(&reason)),
        }
    }

    #[test]
    fn a_clear_difference_names_the_better_arm_by_the_metrics_direction() {
        let more = [(100.0, 110.0), (101.0, 111.0), (99.0, 109.0), (100.0, 111.0)];
        assert_eq!(judged(Metric::Throughput, &more), Verdict::Better("ipv6".into()));
        assert_eq!(judged(Metric::Rtt, &more), Verdict::Better("ipv4".into()));
        let less = more.map(|(a, b)| (b, a));
        assert_eq!(judged(Metric::Throughput, &less), Verdict::Better("ipv4".into()));
        assert_eq!(judged(Metric::Rtt, &less), Verdict::Better("ipv6".into()));
    }

    #[test]
    fn shares_are_judged_by_their_difference() {
        let lossy = [(0.0, 0.05), (0.0, 0.051), (0.001, 0.05), (0.0, 0.05)];
        assert_eq!(judged(Metric::Loss, &lossy), Verdict::Better("ipv4".into()));
        assert_eq!(judged(Metric::Loss, &[(0.0, 0.0); 6]), Verdict::Equivalent);
    }

    #[test]
    fn a_sure_difference_inside_the_margin_is_equivalence() {
        let slightly = [(100.0, 101.0), (100.0, 101.1), (100.0, 100.9), (100.0, 101.0)];
        assert_eq!(judged(Metric::Throughput, &slightly), Verdict::Equivalent);
    }

    #[test]
    fn an_exact_tie_is_equivalence() {
        assert_eq!(judged(Metric::Throughput, &[(5.0, 5.0); 3]), Verdict::Equivalent);
    }

    #[test]
    fn without_variance_a_difference_beyond_the_margin_is_better() {
        assert_eq!(judged(Metric::Throughput, &[(5.0, 5.5); 3]), Verdict::Better("ipv6".into()));
    }

    #[test]
    fn a_wide_interval_is_inconclusive() {
        let wide = [(100.0, 130.0), (100.0, 80.0), (100.0, 115.0), (100.0, 90.0)];
        assert_eq!(judged(Metric::Throughput, &wide), Verdict::Inconclusive);
    }

    #[test]
    fn ninety_five_per_cent_is_not_sure_enough() {
        let pairs = [0.03_f64, 0.06, 0.09, 0.12, 0.15].map(|log| (1.0, log.exp()));
        let effect = Paired::of(Scale::Ratio, &pairs).unwrap().effect();
        assert!(effect.interval95.low > 1.0 && effect.interval99.low < 1.0, "the case is what it is for");
        assert_eq!(judged(Metric::Throughput, &pairs), Verdict::Inconclusive);
    }

    #[test]
    fn no_effect_is_nothing_with_its_reason() {
        let verdict = judged(Metric::Throughput, &[(1.0, 0.0), (1.0, 1.0)]);
        assert!(matches!(verdict, Verdict::Nothing(reason) if reason.contains("zero")));
    }

    #[test]
    fn the_margin_of_a_ratio_is_the_same_from_either_side() {
        let margin = margin(Scale::Ratio, 0.25);
        assert_eq!((margin.low, margin.high), (0.8, 1.25));
    }
}
