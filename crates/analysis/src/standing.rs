//! Where a question stands after a block: what the stopping rule goes by.

use crate::verdict::margin;
use crate::{Paired, Runs, verdict};
use stacklab_model::{Question, Scale, Standing, Verdict};

/// Whether a question can be measured no further, with the runs so far.
///
/// `narrow`: half the width of the 99 % interval is inside `target`, as a share of the estimated ratio; inside the
/// question's margin on the difference scale.
/// `decided`: the verdict is `better`; or it is `equivalent` and the 98 % interval too lies inside the margin. That
/// is two one-sided tests at 1 % where [`verdict`] is content with 5 %, because this is asked after every block and
/// the campaign stops at the first yes.
///
/// A question without an effect is neither.
pub fn standing(question: &Question, runs: &Runs, target: f64) -> Standing {
    let Ok(paired) = Paired::new(question, runs) else {
        return Standing { narrow: false, decided: false };
    };
    standing_of(question, &paired, target)
}

pub(crate) fn standing_of(question: &Question, paired: &Paired, target: f64) -> Standing {
    let effect = paired.effect();
    let half_width = effect.interval99.half_width();
    let narrow = match effect.scale {
        Scale::Ratio => half_width <= target * effect.estimate,
        Scale::Difference => half_width <= question.margin,
    };
    let decided = match verdict(question, Ok(&effect)) {
        Verdict::Better(_) => true,
        Verdict::Equivalent => paired.interval(0.98).is_within(&margin(effect.scale, question.margin)),
        Verdict::Inconclusive | Verdict::Nothing(_) => false,
    };
    Standing { narrow, decided }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{question, runs_of};
    use stacklab_model::Metric;

    fn after(metric: Metric, margin: f64, pairs: &[(f64, f64)], target: f64) -> Standing {
        standing(&question(metric, margin), &Runs::new(&runs_of(metric, pairs)), target)
    }

    #[test]
    fn an_interval_inside_the_target_is_narrow() {
        // Log ratios about 0.1 with standard error 0.005: 99 % half-width 4.604 * 0.005 = 2.3 % of the ratio.
        let pairs = [-0.01118, -0.01118, 0.0, 0.01118, 0.01118].map(|d: f64| (1.0, (0.1 + d).exp()));
        assert!(after(Metric::Throughput, 0.02, &pairs, 0.024).narrow);
        assert!(!after(Metric::Throughput, 0.02, &pairs, 0.022).narrow);
    }

    #[test]
    fn a_difference_is_narrow_inside_its_margin() {
        let pairs = [(0.0, 0.0100), (0.0, 0.0101), (0.0, 0.0099), (0.0, 0.0100)];
        assert!(after(Metric::Loss, 0.001, &pairs, 0.02).narrow);
        assert!(!after(Metric::Loss, 0.0001, &pairs, 0.02).narrow);
    }

    #[test]
    fn a_better_arm_decides() {
        let standing = after(Metric::Rtt, 0.02, &[(1.0, 2.0), (1.0, 2.1), (1.0, 1.9), (1.0, 2.0)], 0.001);
        assert_eq!(standing, Standing { narrow: false, decided: true });
    }

    #[test]
    fn equivalence_decides_early_only_at_one_per_cent() {
        // Log ratios about 0 with standard error e: the 90 % interval reaches 2.13 e, the 98 % interval 3.75 e.
        let spread = |sd: f64| [-1.2649, -0.6325, 0.0, 0.6325, 1.2649].map(|d| (1.0, (d * sd).exp()));
        let (clear, scant) = (spread(0.010), spread(0.018));
        let question = question(Metric::Throughput, 0.02);
        for pairs in [clear, scant] {
            let effect = Paired::of(Scale::Ratio, &pairs).unwrap().effect();
            assert_eq!(verdict(&question, Ok(&effect)), Verdict::Equivalent);
        }
        assert!(after(Metric::Throughput, 0.02, &clear, 0.0).decided);
        assert!(!after(Metric::Throughput, 0.02, &scant, 0.0).decided);
    }

    #[test]
    fn without_pairs_nothing_stands() {
        let nothing = Standing { narrow: false, decided: false };
        assert_eq!(after(Metric::Rtt, 0.02, &[], 1.0), nothing);
        assert_eq!(after(Metric::Rtt, 0.02, &[(1.0, 1.0)], 1.0), nothing);
    }
}
