//! The verdict rule.

use stacklab_model::{Better, Effect, Interval, Metric, Question, Scale, Verdict};
use std::cmp::Ordering;

/// The conclusions from the intervals of an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Significance {
    /// Whether the 90 % interval is inside the margin: two one-sided tests at 5 %.
    pub is_equivalent: bool,
    /// The side of "no difference" that contains the whole 99 % interval; `None` if the interval includes "no
    /// difference".
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
    Significance { is_equivalent: interval90.is_within(&Interval::of_margin(scale, margin)), side }
}

/// Judges a question by its effect, or by the reason for having none.
///
/// * `Equivalent`: equivalent by [`significance`], even if the difference is significant.
/// * `Better`: significant and not equivalent.
/// * `Inconclusive`: neither.
pub fn verdict(question: &Question, effect: Result<&Effect, &str>) -> Verdict {
    let effect = match effect {
        Ok(effect) => effect,
        Err(reason) => return Verdict::Nothing(reason.to_owned()),
    };
    let found = significance(effect.scale, &effect.interval90, &effect.interval99, question.margin);
    match found {
        Significance { is_equivalent: true, .. } => Verdict::Equivalent,
        Significance { side: None, .. } => Verdict::Inconclusive,
        Significance { side: Some(side), .. } => {
            let better =
                if is_better(question.metric, side) { &question.candidate } else { &question.baseline };
            Verdict::Better(better.level(question.factor))
        }
    }
}

/// Whether an effect on this side of "no difference" is an improvement.
pub(crate) fn is_better(metric: Metric, side: Ordering) -> bool {
    side.is_gt() == (metric.better() == Better::Higher)
}

/// The effect that means no difference.
pub(crate) fn no_difference(scale: Scale) -> f64 {
    match scale {
        Scale::Ratio => 1.0,
        Scale::Difference => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::paired::Paired;
    use crate::fixtures::question;

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
        let margin = Interval::of_margin(Scale::Ratio, 0.25);
        assert_eq!((margin.low, margin.high), (0.8, 1.25));
    }
}
