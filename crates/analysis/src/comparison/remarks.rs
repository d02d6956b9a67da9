//! What a reader has to know of a comparison beside its figures: too few blocks, parts that trimming leaves out,
//! figures that come in coarse steps.

use crate::comparison::evidence::{blocks_for_signs, tests};
use crate::comparison::limits::{ENDED, is_too_coarse, unseen_percent};
use crate::comparison::{Paired, back};
use stacklab_model::{APPEARS, MIN_PAIRS, Question, Scale, StopReason, Verdict, count};

/// By simulation (`bench/coverage`): 93.3 to 94.4 %.
const PRECISE: &str =
    "it was measured until its interval was narrow: such 95 % intervals hold the truth in 93 %";
/// Distances from the estimate, in standard deviations, beyond which a block is far away.
const FAR: f64 = 3.0;
/// This number of blocks far away on one side, and none on the other, has a chance of 2^-4 at most.
const MIN_ONE_SIDED: usize = 4;

/// What a reader has to know of a verdict on pairs, of which a campaign was to have `needed` before anyone looks.
pub(crate) fn list_remarks(
    question: &Question,
    paired: &Paired,
    verdict: &Verdict,
    is_bound_wide: bool,
    stop_reason: StopReason,
    needed: usize,
    comparisons: usize,
) -> Vec<String> {
    let pairs = paired.pairs();
    let mut remarks = Vec::new();
    remarks.extend(describe_one_sided_blocks(paired));
    if stop_reason == StopReason::Precise {
        remarks.push(PRECISE.to_owned());
    }
    let needed = needed.max(MIN_PAIRS);
    if is_bound_wide {
        remarks.push(match pairs < needed {
            true => format!("no answer yet: too few blocks ({pairs} of {needed})"),
            false => "no answer yet: the bound is above the margin".to_owned(),
        });
    }
    if *verdict != Verdict::Inconclusive {
        return remarks;
    }
    if stop_reason == StopReason::Unfinished && tests(paired, question.margin).p <= ENDED {
        remarks.push(describe_appearance(paired));
        return remarks;
    }
    let for_signs = blocks_for_signs(comparisons as f64);
    if pairs < needed {
        remarks.push(format!("too few blocks ({pairs} of {needed})"));
    } else if pairs < for_signs && all_agree(paired) {
        remarks.push(format!(
            "all {pairs} blocks agree; a claim among {} needs {for_signs} that do",
            count(comparisons, "comparison")
        ));
    } else {
        remarks.extend(paired.explain_open_equivalence(question.margin, "trials"));
    }
    remarks
}

impl Paired {
    /// Why pairs that look alike are not called equivalent; `None` if nothing but their figures keeps them from it.
    /// `trials` is what several pairs are called.
    pub fn explain_open_equivalence(&self, margin: f64, trials: &str) -> Option<String> {
        let reason = self.explain_forbidden_equivalence(margin, trials)?;
        if is_too_coarse(self, margin) || tests(self, margin).equivalence_p <= ENDED {
            return Some(reason);
        }
        None
    }

    /// Why pairs may not be called equivalent, whatever their figures are; `None` if they may.
    pub fn explain_forbidden_equivalence(&self, margin: f64, trials: &str) -> Option<String> {
        if is_too_coarse(self, margin) {
            return Some(
                "its figures come in steps of more than half of the margin: equivalence cannot be seen"
                    .to_owned(),
            );
        }
        let pairs = self.pairs();
        if pairs >= self.min_equivalent_pairs() {
            return None;
        }
        let what = if self.counts_events { "bursts" } else { "another state" };
        let share = unseen_percent(pairs).ceil();
        Some(format!(
            "alike but for {what} in fewer than {share} % of {trials}, which {pairs} do not exclude"
        ))
    }
}

fn all_agree(paired: &Paired) -> bool {
    paired.distances.iter().all(|distance| *distance > 0.0)
        || paired.distances.iter().all(|distance| *distance < 0.0)
}

/// What a campaign that has not ended shows, and does not claim.
fn describe_appearance(paired: &Paired) -> String {
    let interval = paired.interval(0.95);
    let way = if paired.moments.mean < 0.0 { "lower" } else { "higher" };
    let by = match paired.scale {
        Scale::Ratio => {
            let ends = [interval.low, interval.high].map(|end| (100.0 * (end - 1.0)).abs());
            format!(" by {:.1} to {:.1} %", ends[0].min(ends[1]), ends[0].max(ends[1]))
        }
        Scale::Difference => String::new(),
    };
    format!("{APPEARS} {way}{by}: no claim before the campaign has ended (--resume)")
}

/// Blocks on one side that the trimmed mean leaves out.
fn describe_one_sided_blocks(paired: &Paired) -> Option<String> {
    if paired.scale != Scale::Ratio {
        return None;
    }
    let far = FAR * paired.moments.sd;
    let mut below = Vec::new();
    let mut above = Vec::new();
    for distance in &paired.distances {
        let from_estimate = distance - paired.moments.mean;
        if from_estimate < -far {
            below.push(*distance);
        } else if from_estimate > far {
            above.push(*distance);
        }
    }
    let (one_sided, word) = match (below.len(), above.len()) {
        (MIN_ONE_SIDED.., 0) => (below, "or lower"),
        (0, MIN_ONE_SIDED..) => (above, "or higher"),
        _ => return None,
    };
    let nearest = one_sided.iter().copied().min_by(|one, other| {
        (one - paired.moments.mean).abs().total_cmp(&(other - paired.moments.mean).abs())
    })?;
    let percent = 100.0 * (back(paired.scale, nearest) - 1.0);
    let count = one_sided.len();
    let all = paired.pairs();
    Some(format!(
        "in {count} of {all} blocks the difference is {percent:+.1} % {word}, which the estimate leaves out"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::question;
    use stacklab_model::Metric;

    fn pair_logs(logs: &[f64]) -> Paired {
        let pairs: Vec<(f64, f64)> = logs.iter().map(|log| (100.0, 100.0 * log.exp())).collect();
        Paired::of(Scale::Ratio, &pairs).unwrap()
    }

    fn remark_on_open(metric: Metric, logs: &[f64], stop_reason: StopReason, needed: usize) -> Vec<String> {
        let question = question(metric, 0.02);
        list_remarks(&question, &pair_logs(logs), &Verdict::Inconclusive, false, stop_reason, needed, 1)
    }

    #[test]
    fn none_seen_without_an_answer_says_why() {
        fn of(blocks: usize, is_bound_wide: bool) -> Vec<String> {
            let question = question(Metric::Loss, 0.001);
            let none = Paired::of(Scale::Difference, &vec![(0.0, 0.0); blocks]).unwrap();
            let verdict = Verdict::NoneSeen(String::new());
            list_remarks(&question, &none, &verdict, is_bound_wide, StopReason::Cap, 6, 1)
        }
        assert_eq!(of(2, true), ["no answer yet: too few blocks (2 of 6)"]);
        assert_eq!(of(8, true), ["no answer yet: the bound is above the margin"]);
        assert_eq!(of(8, false), [""; 0]);
    }

    #[test]
    fn names_blocks_far_on_one_side() {
        let mut logs: Vec<f64> = (0..16).map(|block| 0.001 * f64::from(block % 5)).collect();
        assert_eq!(describe_one_sided_blocks(&pair_logs(&logs)), None);
        logs.extend([-0.2, -0.15, -0.3, -0.25]);
        let said = describe_one_sided_blocks(&pair_logs(&logs)).unwrap();
        assert_eq!(
            said,
            "in 4 of 20 blocks the difference is -13.9 % or lower, which the estimate leaves out"
        );
        // Outliers on both sides are what trimming is for.
        logs.push(0.2);
        assert_eq!(describe_one_sided_blocks(&pair_logs(&logs)), None);
    }

    #[test]
    fn says_what_is_visible_before_the_end() {
        let logs: Vec<f64> = (0..8).map(|block| -0.2 + 0.001 * f64::from(block % 5)).collect();
        let looks = "looks lower by 17.9 to 18.1 %: no claim before the campaign has ended (--resume)";
        assert_eq!(remark_on_open(Metric::Throughput, &logs, StopReason::Unfinished, 8), [looks]);
        assert!(remark_on_open(Metric::Throughput, &logs, StopReason::Cap, 8).is_empty());
    }

    #[test]
    fn says_how_many_blocks_signs_need() {
        assert_eq!([1.0, 6.0, 21.0, 300.0].map(blocks_for_signs), [7, 9, 11, 15]);
        let question = question(Metric::Throughput, 0.02);
        let seven = pair_logs(&[-0.2, -0.21, -0.19, -0.2, -0.22, -0.2, -0.18]);
        let said = list_remarks(&question, &seven, &Verdict::Inconclusive, false, StopReason::Budget, 6, 6);
        assert_eq!(said, ["all 7 blocks agree; a claim among 6 comparisons needs 9 that do"]);
    }

    #[test]
    fn says_what_few_blocks_do_not_exclude() {
        let logs: Vec<f64> = (0..8).map(|block| 0.001 * f64::from(block % 3)).collect();
        let alike = "alike but for another state in fewer than 32 % of trials, which 8 do not exclude";
        assert_eq!(remark_on_open(Metric::Throughput, &logs, StopReason::Cap, 8), [alike]);
        let few = remark_on_open(Metric::Throughput, &logs, StopReason::Cap, 10);
        assert_eq!(few, ["too few blocks (8 of 10)"]);
    }
}
