//! Two unpaired samples of runs.

use crate::comparison::family::{Claim, claims_at_the_end, range_level};
use crate::comparison::{back, interval_back, margin_distance};
use crate::runs::{estimate, figure, has_load_warning, missing};
use crate::statistics::{Moments, Student, rank_sum_p, yuen_welch};
use stacklab_model::{
    Better, Cell, Change, Estimate, Interval, Lacking, MIN_UNPAIRED_RUNS, Metric, MetricDiff, Question,
    RunRecord, Scale, Unit, Unpaired,
};

/// The level of either kind of claim. Of samples whose noise is skewed and unlike the tests claim twice as often as
/// their level: at 2.5 % one in 18 comparisons of 20 figures had a false claim (`bench/coverage 4000 records`).
const LEVEL: f64 = 0.02;

/// One metric of one cell. `unlike` is the reason why the two figures are not comparable, if there is one.
pub(crate) fn against(
    cell: Cell,
    metric: Metric,
    runs: [&[&RunRecord]; 2],
    margin: f64,
    unlike: Option<String>,
    allowed: Option<f64>,
) -> MetricDiff {
    let [a, b] = runs.map(|runs| estimate(runs, metric));
    let samples = runs.map(|runs| sample(runs, metric));
    let lacking =
        if samples[0].is_ok() && samples[1].is_err() { Some(find_lack(runs[1], metric)) } else { None };
    // A figure that is gone fails the comparison. Others fail when all are judged.
    let fails = allowed.is_some() && lacking == Some(Lacking::Gone);
    let effect = match (samples, unlike) {
        (_, Some(unlike)) => Err(unlike),
        ([Err(reason), _], None) => Err(format!("A: {reason}")),
        ([_, Err(reason)], None) if lacking == Some(Lacking::Disturbed) => {
            Err(format!("B: {reason}; other load disturbed each of its runs without the figure"))
        }
        ([_, Err(reason)], None) => Err(format!("B: {reason}")),
        ([Ok(first), Ok(second)], None) => match compare_samples(metric, &first, &second, margin) {
            Some(found) => Ok(found),
            None => Err("no figures".to_owned()),
        },
    };
    MetricDiff {
        change: match &effect {
            // Until `judge` has seen all.
            Ok(_) => Change::Inconclusive,
            Err(reason) => Change::Nothing(reason.clone()),
        },
        fitted: effect.as_ref().ok().map(|(_, fitted)| *fitted),
        effect: effect.ok().map(|(effect, _)| effect),
        cell,
        metric,
        margin,
        a,
        b,
        lacking,
        fails,
    }
}

/// Why runs have no figure: they were disturbed, if each that lacks it was.
fn find_lack(runs: &[&RunRecord], metric: Metric) -> Lacking {
    let mut lacking = runs.iter().filter(|run| !has_figure(run, metric)).peekable();
    if lacking.peek().is_some() && lacking.all(|run| has_load_warning(run)) {
        Lacking::Disturbed
    } else {
        Lacking::Gone
    }
}

/// Whether a run has a figure that can be compared: of a ratio, one that is more than zero.
fn has_figure(run: &RunRecord, metric: Metric) -> bool {
    figure(run, metric).is_some_and(|figure| figure > 0.0 || metric.scale() == Scale::Difference)
}

/// The difference of two arms whose runs are not paired, for a reader; not a verdict.
pub(crate) fn compare_arms(question: &Question, arms: [&[&RunRecord]; 2]) -> Option<Unpaired> {
    let [Ok(first), Ok(second)] = arms.map(|runs| sample(runs, question.metric)) else { return None };
    let (found, _) = compare_samples(question.metric, &first, &second, question.margin)?;
    Some(found)
}

/// The same in words, with the number of runs of each arm.
pub(crate) fn unpaired_sentence(
    question: &Question,
    found: &Unpaired,
    [first, second]: [usize; 2],
) -> String {
    let [baseline, candidate] = question.cells().map(|cell| cell.level(question.factor));
    let Interval { low, high } = found.interval95;
    match found.scale {
        Scale::Ratio => format!(
            "unpaired, {candidate} is {:.4} times {baseline} (95 % interval {low:.4} to {high:.4}, Yuen-Welch; {first} and {second} runs)",
            found.estimate
        ),
        Scale::Difference => format!(
            "unpaired, {candidate} minus {baseline} is {:.4} {unit} (95 % interval {low:.4} to {high:.4}, Welch; {first} and {second} runs)",
            found.estimate,
            unit = question.metric.unit().symbol()
        ),
    }
}

/// The figures of runs, or why they cannot be compared.
fn sample(runs: &[&RunRecord], metric: Metric) -> Result<Vec<f64>, String> {
    let figures: Vec<f64> = runs.iter().filter_map(|run| figure(run, metric)).collect();
    let unfit = figures.iter().filter(|figure| **figure <= 0.0).count();
    match (figures.len(), missing(runs, metric)) {
        (0, missing) => Err(missing.unwrap_or_else(|| "no figure".to_owned())),
        (1, None) => Err("one run has a figure, and an interval needs two".to_owned()),
        (1, Some(reason)) => Err(format!("one run has a figure, and an interval needs two ({reason})")),
        (runs, _) if unfit > 0 && metric.scale() == Scale::Ratio => {
            Err(format!("no ratio can be made: a figure is zero or less in {unfit} of {runs} runs"))
        }
        _ => Ok(figures),
    }
}

/// The distance of two samples with its interval and tests, and the location of each; the adjusted p are the plain ones
/// until [`judge`] has seen all.
///
/// As of pairs, the logarithms of a ratio have 20 % trimmed means, and differences plain ones. A difference also has
/// to show in the ranks: where one record is quiet and the other one noisy and skewed, the t distribution alone makes
/// twice as many false claims as allowed.
fn compare_samples(
    metric: Metric,
    first: &[f64],
    second: &[f64],
    margin: f64,
) -> Option<(Unpaired, [f64; 2])> {
    let scale = metric.scale();
    let of_first = summarise_distances(scale, first)?;
    let of_second = summarise_distances(scale, second)?;
    let found = yuen_welch(&of_first, &of_second);
    // Events of which neither record has one: there is nothing to be sure of.
    let none = scale == Scale::Difference && first.iter().chain(second).all(|figure| *figure == 0.0);
    let p = found.p().max(rank_sum_p(first, second));
    let equivalence_p = if none { 1.0 } else { found.equivalence_p(&margin_distance(scale, margin)) };
    let effect = Unpaired {
        scale,
        estimate: back(scale, found.estimate),
        error: found.error,
        degrees_of_freedom: found.degrees_of_freedom,
        claimed_interval: None,
        interval95: interval_back(scale, found.interval(0.95)).clip_to(metric.possible_effects()),
        p,
        adjusted_p: p,
        equivalence_p,
        adjusted_equivalence_p: equivalence_p,
    };
    Some((effect, [of_first, of_second].map(|moments| back(scale, moments.mean))))
}

fn summarise_distances(scale: Scale, figures: &[f64]) -> Option<Moments> {
    let distances: Vec<f64> = figures.iter().map(|figure| scale.to_distance(*figure)).collect();
    if scale == Scale::Ratio { Moments::of_trimmed_mean(&distances) } else { Moments::of(&distances) }
}

/// Whether the whole range of a claim is worse than what is allowed. Of rates and times that is a ratio; of shares and
/// per cents it is in points; of other differences in per cent of the first arm's mean, and the margin at least.
pub(crate) fn is_beyond(
    metric: Metric,
    margin: f64,
    first: &Estimate,
    claimed: Option<Interval>,
    allowed: f64,
) -> bool {
    let Some(Interval { low, high }) = claimed else { return false };
    let most = match metric.scale() {
        Scale::Ratio => {
            return match metric.better() {
                Better::Higher => high < 1.0 - allowed,
                Better::Lower => low > 1.0 + allowed,
            };
        }
        Scale::Difference => match metric.unit() {
            Unit::Ratio => allowed,
            Unit::Percent | Unit::CorePercent => 100.0 * allowed,
            _ => allowed * first.mean.unwrap_or(0.0).abs(),
        },
    };
    let most = most.max(margin);
    match metric.better() {
        Better::Higher => high < -most,
        Better::Lower => low > most,
    }
}

/// Judges all figures of two records together: differences and equality are each claimed by Benjamini and Hochberg at
/// [`LEVEL`], so at most one in twenty of all claims is expected to be false. Nothing is claimed from fewer than
/// [`MIN_UNPAIRED_RUNS`] of either record. Each claim has a range, as in a campaign. A figure that is claimed to be
/// worse fails if its whole range is worse than what is allowed.
pub(crate) fn judge(figures: &mut [MetricDiff], allowed: Option<f64>) {
    let p = list_p(figures, Claim::Different);
    let equivalence_p = list_p(figures, Claim::Equivalent);
    let claims = claims_at_the_end(LEVEL, p, equivalence_p);
    let judged = figures.iter_mut().filter(|figure| figure.effect.is_some());
    for (figure, (adjusted, claim)) in judged.zip(&claims) {
        let Some(effect) = figure.effect.as_mut() else { continue };
        [effect.adjusted_p, effect.adjusted_equivalence_p] = *adjusted;
        let Unpaired { scale, estimate, error, degrees_of_freedom, .. } = *effect;
        let distance = Student { estimate: scale.to_distance(estimate), error, degrees_of_freedom };
        let possible = figure.metric.possible_effects();
        effect.claimed_interval = None;
        if claim.is_some() {
            let claims_of_its_kind = claims.iter().filter(|(_, other)| other == claim).count();
            let level = range_level(claims_of_its_kind, claims.len());
            let range = interval_back(scale, distance.interval(1.0 - level));
            effect.claimed_interval = Some(range.clip_to(possible));
        }
        let is_better = (distance.estimate > 0.0) == (figure.metric.better() == Better::Higher);
        figure.change = match claim {
            Some(Claim::Different) if is_better => Change::Better,
            Some(Claim::Different) => Change::Worse,
            Some(Claim::Equivalent) => Change::Equivalent,
            None => Change::Inconclusive,
        };
        if let (Change::Worse, Some(allowed)) = (&figure.change, allowed) {
            let MetricDiff { metric, margin, .. } = *figure;
            figure.fails = is_beyond(metric, margin, &figure.a, effect.claimed_interval, allowed);
        }
    }
}

/// The p of one kind of claim of each figure that has an effect.
fn list_p(figures: &[MetricDiff], claim: Claim) -> Vec<f64> {
    let mut all = Vec::new();
    for figure in figures {
        let Some(effect) = &figure.effect else { continue };
        all.push(match claim {
            _ if has_few_runs(figure) => 1.0,
            Claim::Different => effect.p,
            Claim::Equivalent => effect.equivalence_p,
        });
    }
    all
}

/// Whether a record has too few runs with this figure for any claim.
fn has_few_runs(figure: &MetricDiff) -> bool {
    figure.a.n.min(figure.b.n) < MIN_UNPAIRED_RUNS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{cell, run};
    use stacklab_model::Family;

    /// B against A, judged alone.
    fn judge_alone(metric: Metric, a: &[f64], b: &[f64]) -> MetricDiff {
        let cell = cell(Family::Ipv4, 128);
        let [a, b] = [a, b].map(|figures| -> Vec<RunRecord> {
            (0..).zip(figures).map(|(block, figure)| run(block, &cell, metric, *figure)).collect()
        });
        let [a, b] = [&a, &b].map(|runs| runs.iter().collect::<Vec<_>>());
        let mut figures = [against(cell, metric, [&a, &b], 0.02, None, None)];
        judge(&mut figures, None);
        let [figure] = figures;
        figure
    }

    const QUIET: [f64; 8] = [100.0, 100.4, 99.8, 100.1, 99.9, 100.2, 100.0, 99.7];

    #[test]
    fn five_runs_claim_nothing() {
        let half = QUIET.map(|figure| figure / 2.0);
        for metric in [Metric::Throughput, Metric::Loss] {
            for (a, b) in [(5, 8), (8, 5)] {
                let few = judge_alone(metric, &QUIET[..a], &half[..b]);
                assert_eq!(few.change, Change::Inconclusive, "{metric}");
                let effect = few.effect.unwrap();
                assert_eq!((effect.adjusted_p, effect.claimed_interval), (1.0, None));
                assert!(effect.p < 0.01, "what was found is stated: {effect:?}");
                assert_eq!(judge_alone(metric, &QUIET[..a], &QUIET[..b]).change, Change::Inconclusive);
            }
        }
        assert_eq!(judge_alone(Metric::Throughput, &QUIET[..6], &half[..6]).change, Change::Worse);
        assert_eq!(judge_alone(Metric::Throughput, &QUIET[..6], &QUIET[..6]).change, Change::Equivalent);
    }

    #[test]
    fn disturbed_run_hides_no_difference() {
        let mut slower = QUIET.map(|figure| figure * 0.97);
        slower[3] = 400.0;
        let found = judge_alone(Metric::Throughput, &QUIET, &slower);
        assert_eq!(found.change, Change::Worse);
        assert!((found.effect.unwrap().estimate - 0.97).abs() < 0.003);
    }

    #[test]
    fn difference_has_to_show_in_the_ranks() {
        // Of a quiet record and a noisy one that lies about it: by t alone p is below 2.5 %.
        let quiet = [0.0, 0.01, -0.01, 0.005, -0.005, 0.002, -0.002, 0.001];
        let noisy = [-0.11, -0.1, -0.12, -0.09, -0.1, -0.11, 0.006, 0.6];
        let [quiet, noisy] = [quiet, noisy].map(|logs| logs.map(|log: f64| 100.0 * log.exp()));
        let found = judge_alone(Metric::Throughput, &quiet, &noisy).effect.unwrap();
        let alone = Student { estimate: found.estimate.ln(), error: found.error, degrees_of_freedom: 5.0 };
        assert!(alone.p() < 0.025 && found.p > 0.025, "{} and {}", alone.p(), found.p);
    }
}
