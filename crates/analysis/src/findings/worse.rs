//! Candidates that are worse than their baselines by more than is allowed.

use crate::records::unpaired::is_beyond;
use stacklab_model::{Comparison, Findings, Verdict};

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
    use crate::fixtures::{self, question};
    use stacklab_model::{Estimate, Interval, Metric};

    fn comparison(metric: Metric, verdict: Verdict, [low, high]: [f64; 2]) -> Comparison {
        let estimate = || Estimate { n: 10, mean: Some(0.1), ..Estimate::default() };
        Comparison {
            baseline_estimate: estimate(),
            candidate_estimate: estimate(),
            verdict,
            claimed_interval: Some(Interval { low, high }),
            ..fixtures::comparison(question(metric, 0.01))
        }
    }

    #[test]
    fn worse_by_more_than_allowed_fails() {
        let baseline = || Verdict::Better("ipv4".to_owned());
        let throughput = |verdict, range| comparison(Metric::Throughput, verdict, range);
        assert!(is_worse(&throughput(baseline(), [0.90, 0.96]), 0.03));
        assert!(!is_worse(&throughput(baseline(), [0.90, 0.98]), 0.03), "a part of the range is allowed");
        assert!(!is_worse(&throughput(Verdict::Better("ipv6".to_owned()), [1.04, 1.1]), 0.03));
        assert!(!is_worse(&throughput(Verdict::Inconclusive, [0.90, 0.96]), 0.03), "verdicts alone fail");
        assert!(is_worse(&comparison(Metric::Rtt, baseline(), [1.04, 1.1]), 0.03));
        // In points, and the margin at least.
        let loss = |low, allowed| is_worse(&comparison(Metric::Loss, baseline(), [low, 0.2]), allowed);
        assert!(loss(0.04, 0.03) && !loss(0.02, 0.03) && !loss(0.009, 0.0));
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
