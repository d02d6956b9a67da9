//! Two unpaired samples of runs.

use crate::comparison::family::{Claim, claims_at_the_end, range_level};
use crate::comparison::{back, interval_back, margin_distance, to_distance};
use crate::runs::{estimate, figure, missing};
use crate::statistics::{Student, welch};
use stacklab_model::{
    Better, Cell, Change, Estimate, Interval, Metric, MetricDiff, Question, RunRecord, Scale, Unit, Unpaired,
};

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
    let scale = metric.scale();
    let samples = runs.map(|runs| sample(runs, metric));
    // A cell that is no longer measured fails the comparison. Others fail when all are judged.
    let fails = allowed.is_some() && samples[0].is_ok() && samples[1].is_err();
    let effect = match (samples, unlike) {
        (_, Some(unlike)) => Err(unlike),
        ([Err(reason), _], None) => Err(format!("A: {reason}")),
        ([_, Err(reason)], None) => Err(format!("B: {reason}")),
        ([Ok(first), Ok(second)], None) => match unpaired(scale, &first, &second, margin) {
            Some(effect) => Ok((effect, [first, second].map(|figures| location(scale, &figures)))),
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
        fails,
    }
}

/// The middle of a sample on the scale that it is compared by: the geometric mean for ratios.
fn location(scale: Scale, figures: &[f64]) -> f64 {
    let sum: f64 = figures.iter().map(|figure| to_distance(scale, *figure)).sum();
    back(scale, sum / figures.len() as f64)
}

/// The difference of two arms whose runs are not paired, for a reader; not a verdict.
pub(crate) fn unpaired_sentence(question: &Question, arms: [&[&RunRecord]; 2]) -> Option<String> {
    let Question { metric, margin, factor, ref baseline, ref candidate } = *question;
    let [Ok(first), Ok(second)] = arms.map(|runs| sample(runs, metric)) else { return None };
    let found = unpaired(metric.scale(), &first, &second, margin)?;
    let [baseline, candidate] = [baseline, candidate].map(|cell| cell.level(factor));
    let Interval { low, high } = found.interval95;
    let (first, second) = (first.len(), second.len());
    Some(match found.scale {
        Scale::Ratio => format!(
            "unpaired, {candidate} is {:.4} times {baseline} (95 % interval {low:.4} to {high:.4}, Welch; {first} and {second} runs)",
            found.estimate
        ),
        Scale::Difference => format!(
            "unpaired, {candidate} minus {baseline} is {:.4} {unit} (95 % interval {low:.4} to {high:.4}, Welch; {first} and {second} runs)",
            found.estimate,
            unit = metric.unit().symbol()
        ),
    })
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

/// The distance of two samples with its interval and tests; the adjusted p are the plain ones until [`judge`] has seen
/// all.
fn unpaired(scale: Scale, first: &[f64], second: &[f64], margin: f64) -> Option<Unpaired> {
    let on_scale =
        |figures: &[f64]| -> Vec<f64> { figures.iter().map(|figure| to_distance(scale, *figure)).collect() };
    let found = welch(&on_scale(first), &on_scale(second))?;
    // Events of which neither record has one: there is nothing to be sure of.
    let none = scale == Scale::Difference && first.iter().chain(second).all(|figure| *figure == 0.0);
    let (p, equivalence_p) =
        (found.p(), if none { 1.0 } else { found.equivalence_p(&margin_distance(scale, margin)) });
    Some(Unpaired {
        scale,
        estimate: back(scale, found.estimate),
        error: found.error,
        degrees_of_freedom: found.degrees_of_freedom,
        claimed_interval: None,
        interval95: interval_back(scale, found.interval(0.95)),
        p,
        adjusted_p: p,
        equivalence_p,
        adjusted_equivalence_p: equivalence_p,
    })
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
/// 2.5 %, so at most one in twenty of all claims is expected to be false. Each claim has a range, as in a campaign. A
/// figure that is claimed to be worse fails if its whole range is worse than what is allowed.
pub(crate) fn judge(figures: &mut [MetricDiff], allowed: Option<f64>) {
    let p = |of: fn(&Unpaired) -> f64| {
        figures.iter().filter_map(|figure| figure.effect.as_ref()).map(of).collect()
    };
    let claims = claims_at_the_end(p(|effect| effect.p), p(|effect| effect.equivalence_p));
    let level = |claim: Claim| {
        let claims_of_its_kind = claims.iter().filter(|(_, other)| *other == Some(claim));
        range_level(claims_of_its_kind.count(), claims.len())
    };
    let judged = figures.iter_mut().filter(|figure| figure.effect.is_some());
    for (figure, (adjusted, claim)) in judged.zip(&claims) {
        let Some(effect) = figure.effect.as_mut() else { continue };
        [effect.adjusted_p, effect.adjusted_equivalence_p] = *adjusted;
        let Unpaired { scale, estimate, error, degrees_of_freedom, .. } = *effect;
        let distance = Student { estimate: to_distance(scale, estimate), error, degrees_of_freedom };
        effect.claimed_interval =
            claim.map(|claim| interval_back(scale, distance.interval(1.0 - level(claim))));
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
