//! Cautions from many comparisons together: claims that are not significant after adjustment, tests that disagree,
//! campaigns that drift.
//!
//! If every comparison is tested, some results are significant by chance. The p-values are therefore adjusted
//! (Benjamini and Hochberg), and only results still below 5 % are reported.

use crate::comparison::verdict::no_difference;
use crate::findings::LEVEL;
use crate::statistics::benjamini_hochberg;
use stacklab_model::{CellEstimate, Comparison, ManyArms, Order, SteadyState, Verdict, Warning};
use statrs::distribution::{ContinuousCDF, Normal};

/// Minimum number of pairs with which the signed-rank test can have a p below 5 %.
const LEAST_RANKED: usize = 6;

/// The share of runs without a steady state by chance: MSER-5 reports this for one in six series without any change.
const MOST_UNSETTLED: f64 = 0.25;

/// Maximum number of places that a caution names.
const NAMED: usize = 3;

/// All cautions, with the number of comparisons or cells that each concerns.
pub(super) fn cautions(
    cells: &[CellEstimate],
    comparisons: &[Comparison],
    many_arms: &[ManyArms],
    steady_state: &[SteadyState],
) -> Vec<(usize, Warning)> {
    let better = || comparisons.iter().filter(|comparison| matches!(comparison.verdict, Verdict::Better(_)));
    let all = [
        caution(
            "disagreement",
            better().filter(|comparison| disagrees(comparison)),
            "an arm is called better, but tests that assume no distribution (signed rank, bootstrap) do not see it",
            "look for runs that stand out, or measure more blocks",
        ),
        caution(
            "drift",
            seen(comparisons, |comparison| Some(drift(&comparison.tests.as_ref()?.order?))),
            "the difference rises or falls over the blocks",
            "something changed during the campaign: measure again, and trust the intervals less until then",
        ),
        caution(
            "autocorrelated",
            seen(comparisons, |comparison| {
                let tests = comparison.tests.as_ref()?;
                resemblance(&tests.order?, comparison.effect.as_ref()?.pairs)
            }),
            "differences resemble the ones before them; intervals are widened for it, and may still be too narrow",
            "make runs longer, or let the machine rest between them",
        ),
        caution(
            "drift_of_runs",
            seen(cells, |cell| Some(drift(&cell.estimate.order?))),
            "runs rise or fall over the blocks; where both arms do so alike, their comparison does not suffer",
            "let the machine warm up, or end other load",
        ),
        caution(
            "many_arms",
            many_arms.iter().filter(|arms| arms.p >= LEVEL),
            "of more than two arms, Friedman's test does not see that any differ",
            "take a better arm among them for a hint",
        ),
    ];
    all.into_iter().flatten().chain(steady_state.iter().filter_map(unsettled)).collect()
}

/// Runs of a probe without a steady state, if there are more than by chance.
fn unsettled(steady_state: &SteadyState) -> Option<(usize, Warning)> {
    let looked_at = steady_state.runs - steady_state.too_short;
    (steady_state.unsettled as f64 > MOST_UNSETTLED * looked_at as f64).then(|| {
        let text = format!(
            "{} of {looked_at} runs of the {} probe reached no steady state (MSER-5)",
            steady_state.unsettled, steady_state.probe
        );
        let advice = "warm up for longer, or measure for longer".to_owned();
        (steady_state.unsettled, Warning { code: "unsettled".to_owned(), text, advice })
    })
}

fn disagrees(comparison: &Comparison) -> bool {
    let (Some(tests), Some(effect)) = (&comparison.tests, &comparison.effect) else { return false };
    let ranks = tests.signed_rank_p.is_some_and(|p| p >= LEVEL) && effect.pairs >= LEAST_RANKED;
    ranks || tests.bootstrap95.is_some_and(|interval| interval.contains(no_difference(effect.scale)))
}

fn drift(order: &Order) -> f64 {
    order.drift_p
}

/// One-sided p that consecutive figures are uncorrelated.
fn resemblance(order: &Order, n: usize) -> Option<f64> {
    Some(Normal::standard().sf(order.autocorrelation? * (n as f64).sqrt()))
}

/// The items with a test result that chance does not explain.
fn seen<T>(items: &[T], p: impl Fn(&T) -> Option<f64>) -> impl Iterator<Item = &T> {
    let (checked, plain): (Vec<&T>, Vec<f64>) =
        items.iter().filter_map(|item| Some((item, p(item)?))).unzip();
    checked.into_iter().zip(benjamini_hochberg(&plain)).filter(|(_, p)| *p < LEVEL).map(|(item, _)| item)
}

fn caution<'a, T: Subject + 'a>(
    code: &str,
    concerned: impl Iterator<Item = &'a T>,
    text: &str,
    advice: &str,
) -> Option<(usize, Warning)> {
    let places: Vec<String> = concerned.map(Subject::name).collect();
    if places.is_empty() {
        return None;
    }
    let more = match places.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named = places[..places.len().min(NAMED)].join(", ");
    let text = format!("{text}: {named}{more}");
    Some((places.len(), Warning { code: code.to_owned(), text, advice: advice.to_owned() }))
}

/// A subject of a caution.
trait Subject {
    /// Its place, in a few words.
    fn name(&self) -> String;
}

impl Subject for Comparison {
    fn name(&self) -> String {
        let question = &self.question;
        let levels = [&question.candidate, &question.baseline].map(|cell| cell.level(question.factor));
        let context = question.baseline.context(question.factor);
        format!("{} {context} ({})", question.metric, levels.join(" against "))
    }
}

impl Subject for CellEstimate {
    fn name(&self) -> String {
        format!("{} {}", self.metric, self.cell)
    }
}

impl Subject for ManyArms {
    fn name(&self) -> String {
        format!("{} {} ({})", self.metric, self.cell.context(self.factor), self.levels.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::findings;
    use crate::fixtures::{campaign, cell, link_config, question, runs_of};
    use stacklab_model::{Family, Findings, Metric, Question};

    /// Comparisons of ipv6 against ipv4 by throughput, one for each size and its log ratios.
    fn of(log_ratios: &[Vec<f64>]) -> Findings {
        let (mut questions, mut records) = (Vec::new(), Vec::new());
        for (place, logs) in log_ratios.iter().enumerate() {
            let size = 100 + place as u32;
            let pairs: Vec<(f64, f64)> = logs.iter().map(|log| (100.0, 100.0 * log.exp())).collect();
            let mut runs = runs_of(Metric::Throughput, &pairs);
            runs.iter_mut().for_each(|run| run.trial.cell.size = size);
            records.extend(runs);
            questions.push(Question {
                baseline: cell(Family::Ipv4, size),
                candidate: cell(Family::Ipv6, size),
                ..question(Metric::Throughput, 0.02)
            });
        }
        findings(&campaign(&link_config(None), &questions, &records))
    }

    fn codes(findings: &Findings) -> Vec<(usize, &str)> {
        findings.cautions.iter().map(|(n, caution)| (*n, caution.code.as_str())).collect()
    }

    /// Noise without drift or correlation.
    fn noise(n: usize) -> Vec<f64> {
        (0..n).map(|i| [0.01, -0.012, -0.004, 0.011, 0.006, -0.011][i % 6]).collect()
    }

    #[test]
    fn a_quiet_campaign_needs_no_caution() {
        assert_eq!(codes(&of(&[noise(12), noise(18), noise(12)])), []);
    }

    #[test]
    fn a_difference_that_drifts_and_wanders_is_told_with_its_place() {
        let drifting: Vec<f64> =
            noise(24).iter().enumerate().map(|(i, noise)| noise + 0.01 * i as f64).collect();
        let found = of(&[noise(24), drifting, noise(24)]);
        assert_eq!(codes(&found), [(1, "drift"), (1, "autocorrelated")]);
        assert!(
            found.cautions[0].1.text.ends_with("throughput udp segment 101 B (ipv6 against ipv4)"),
            "{found:?}"
        );
        assert!(found.comparisons[1].tests.as_ref().unwrap().order.unwrap().widening > 1.5);
    }

    #[test]
    fn a_claim_that_is_weak_among_many_is_none() {
        // One of thirty comparisons excludes no difference, at just above 99 %.
        let mut campaigns = vec![noise(12); 30];
        campaigns[4] = noise(12).iter().map(|log| log * 4.0 + 0.037).collect();
        let found = of(&campaigns);
        let comparison = &found.comparisons[4];
        assert_eq!(comparison.verdict, Verdict::Inconclusive, "{comparison:?}");
        // Alone, it is significant.
        let alone = of(&campaigns[4..5]);
        assert!(matches!(alone.comparisons[0].verdict, Verdict::Better(_)), "{:?}", alone.comparisons[0]);
    }

    #[test]
    fn a_claim_that_ranks_do_not_see_is_told() {
        let mut comparison = of(&[noise(12).iter().map(|log| log + 0.1).collect()]).comparisons.remove(0);
        assert!(!disagrees(&comparison));
        comparison.tests.as_mut().unwrap().signed_rank_p = Some(0.2);
        assert!(disagrees(&comparison));
        // With so few pairs, the ranks cannot be significant.
        comparison.effect.as_mut().unwrap().pairs = 5;
        assert!(!disagrees(&comparison));
        comparison.tests.as_mut().unwrap().bootstrap95 =
            Some(stacklab_model::Interval { low: 0.9, high: 1.1 });
        assert!(disagrees(&comparison));
    }

    #[test]
    fn only_the_first_places_are_named() {
        let found = of(&vec![(0..12).map(|i| 0.01 * f64::from(i)).collect(); 5]);
        let (n, drift) = found.cautions.iter().find(|(_, caution)| caution.code == "drift").unwrap();
        assert!(*n == 5 && drift.text.ends_with("and 2 more"), "{drift:?}");
    }
}
