//! The stopping state of a question after each block.

use crate::comparison::paired::Paired;
use crate::comparison::verdict::{no_difference, verdict};
use crate::runs::Runs;
use stacklab_model::{Interval, Question, Scale, StoppingState, Verdict};

/// Consecutive interim tests that must agree: one block may be an outlier.
pub(crate) const LOOKS: usize = 4;

/// Confidence at which a better arm stops the campaign.
const SURELY_BETTER: f64 = 0.999;

/// Confidence of the interval at which equivalence stops the campaign: two one-sided tests at 1 %.
const SURELY_EQUIVALENT: f64 = 0.98;

/// Whether a question needs no more runs.
///
/// `narrow`: half the width of the 99 % interval is inside `target`, as a share of the estimated ratio; inside the
/// question's margin on the difference scale.
/// `decided`: one arm is better by the 99.9 % interval, the same arm each time; or the verdict is `equivalent` and
/// the 98 % interval is also inside the margin.
///
/// Both ask more than [`verdict`] does, and must hold at four looks in a row (so at the fifth pair at the earliest),
/// because this is asked after every block and the campaign stops at the first yes. What that is good for is simulated
/// by `bench/coverage`: up to block 40 an arm against itself comes out better in 2 % of campaigns, and the 95 %
/// interval of a campaign that has stopped covers in at least 93 %. One look at 99 % is not enough (docs/decisions.md).
///
/// A question without an effect is neither.
pub fn stopping_state(question: &Question, runs: &Runs, target: f64) -> StoppingState {
    let Ok(paired) = Paired::new(question, runs) else {
        return StoppingState { narrow: false, decided: false };
    };
    stopping_state_of(question, &paired, target)
}

/// The same of pairs.
pub fn stopping_state_of(question: &Question, paired: &Paired, target: f64) -> StoppingState {
    let (mut narrow, mut decided) = (true, true);
    let mut sure = None;
    for back in 0..LOOKS {
        // Most often the last test fails already, and earlier ones are skipped.
        let Some(known) = paired.before(back).filter(|_| narrow || decided) else {
            return StoppingState { narrow: false, decided: false };
        };
        let test = interim_test(question, &known, target);
        narrow &= test.narrow;
        decided &= test.sure.is_some() && (back == 0 || test.sure == sure);
        sure = test.sure;
    }
    StoppingState { narrow, decided }
}

/// The test after one block.
struct InterimTest {
    narrow: bool,
    /// The verdict, if it is certain enough to stop.
    sure: Option<Verdict>,
}

fn interim_test(question: &Question, paired: &Paired, target: f64) -> InterimTest {
    let effect = paired.effect();
    let half_width = effect.interval99.half_width();
    let narrow = match effect.scale {
        Scale::Ratio => half_width <= target * effect.estimate,
        Scale::Difference => half_width <= question.margin,
    };
    let verdict = verdict(question, Ok(&effect));
    let is_sure = match verdict {
        Verdict::Better(_) => !paired.interval(SURELY_BETTER).contains(no_difference(effect.scale)),
        Verdict::Equivalent => {
            paired.interval(SURELY_EQUIVALENT).is_within(&Interval::of_margin(effect.scale, question.margin))
        }
        Verdict::Inconclusive | Verdict::Nothing(_) => false,
    };
    InterimTest { narrow, sure: is_sure.then_some(verdict) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{question, runs_of};
    use stacklab_model::Metric;

    fn after(metric: Metric, margin: f64, pairs: &[(f64, f64)], target: f64) -> StoppingState {
        stopping_state(&question(metric, margin), &Runs::new(&runs_of(metric, pairs)), target)
    }

    /// Pairs with log ratios around a central value; their spread stays about the same after each pair.
    fn about(middle: f64, sd: f64, n: usize) -> Vec<(f64, f64)> {
        let place = |i: usize| [1.0, -1.0, 0.5, -0.5, 1.2, -1.2][i % 6];
        (0..n).map(|i| (1.0, (middle + sd * place(i)).exp())).collect()
    }

    #[test]
    fn an_interval_inside_the_target_is_narrow_when_it_has_been_so_at_four_looks() {
        let pairs = about(0.1, 0.01, 12);
        let widths: Vec<f64> = (2..=12)
            .map(|n| {
                let effect = Paired::of(Scale::Ratio, &pairs[..n]).unwrap().effect();
                effect.interval99.half_width() / effect.estimate
            })
            .collect();
        // Inside at the last four looks, and at no more than the last three.
        let widest = |looks: usize| widths[widths.len() - looks..].iter().copied().fold(0.0, f64::max);
        assert!(widest(3) < widest(4), "the case is what it is for: {widths:?}");
        let target = f64::midpoint(widest(3), widest(4));
        assert!(after(Metric::Throughput, 0.001, &pairs, widest(4) * 1.001).narrow);
        assert!(!after(Metric::Throughput, 0.001, &pairs, target).narrow);
    }

    #[test]
    fn a_difference_is_narrow_inside_its_margin() {
        let pairs = [0.0100, 0.0101, 0.0099, 0.0100, 0.0101, 0.0099, 0.0100].map(|loss| (0.0, loss));
        assert!(after(Metric::Loss, 0.001, &pairs, 0.02).narrow);
        assert!(!after(Metric::Loss, 0.00001, &pairs, 0.02).narrow);
    }

    #[test]
    fn a_better_arm_decides_when_it_has_been_so_at_four_looks() {
        let surely = about(0.7, 0.01, 12);
        assert_eq!(after(Metric::Rtt, 0.02, &surely, 1e-6), StoppingState { narrow: false, decided: true });
        // One block that goes the other way, a short while ago.
        let mut broken = surely.clone();
        broken[8] = (1.0, 0.05);
        assert!(!after(Metric::Rtt, 0.02, &broken, 1e-6).decided);
        assert!(
            !after(Metric::Rtt, 0.02, &surely[..4], 1e-6).decided,
            "there are no four looks of two pairs"
        );
    }

    #[test]
    fn a_better_arm_at_99_per_cent_does_not_end_the_measuring() {
        let pairs = about(0.031, 0.03, 12);
        let paired = Paired::of(Scale::Ratio, &pairs).unwrap();
        assert!(
            paired.interval(0.99).low > 1.0 && paired.interval(0.999).low < 1.0,
            "the case is what it is for"
        );
        let question = question(Metric::Throughput, 0.001);
        assert_eq!(verdict(&question, Ok(&paired.effect())), Verdict::Better("ipv6".into()));
        assert!(!after(Metric::Throughput, 0.001, &pairs, 0.0).decided);
    }

    #[test]
    fn equivalence_decides_early_only_at_one_per_cent() {
        let question = question(Metric::Throughput, 0.02);
        let (clear, scant) = (about(0.0, 0.01, 8), about(0.0, 0.023, 8));
        for pairs in [&clear, &scant] {
            let effect = Paired::of(Scale::Ratio, pairs).unwrap().effect();
            assert_eq!(verdict(&question, Ok(&effect)), Verdict::Equivalent, "{effect:?}");
        }
        assert!(after(Metric::Throughput, 0.02, &clear, 0.0).decided);
        assert!(!after(Metric::Throughput, 0.02, &scant, 0.0).decided);
    }

    #[test]
    fn without_pairs_nothing_stands() {
        let nothing = StoppingState { narrow: false, decided: false };
        assert_eq!(after(Metric::Rtt, 0.02, &[], 1.0), nothing);
        assert_eq!(after(Metric::Rtt, 0.02, &[(1.0, 1.0)], 1.0), nothing);
    }
}
