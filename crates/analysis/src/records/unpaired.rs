//! Two unpaired samples of runs.

use crate::comparison::distance::{back, interval_back, margin_distance, ratio_of_medians};
use crate::comparison::verdict::{Significance, is_better, significance};
use crate::estimate::estimate;
use crate::runs::figure;
use crate::statistics::{autocorrelation, benjamini_hochberg, cliffs_delta, mann_whitney, welch_widened};
use stacklab_model::{
    Against, Better, Cell, Change, Estimate, Interval, Metric, Question, RunRecord, Scale, Unit, Unpaired,
};

/// One metric of one cell. `unlike` is the reason why the two figures are not comparable, if there is one.
pub(crate) fn against(
    cell: Cell,
    metric: Metric,
    runs: [&[&RunRecord]; 2],
    margin: f64,
    unlike: Option<String>,
    allowed: Option<f64>,
) -> Against {
    let [a, b] = runs.map(|runs| estimate(runs, metric));
    let [first, second] =
        runs.map(|runs| runs.iter().filter_map(|run| figure(run, metric)).collect::<Vec<f64>>());
    let scale = metric.scale();
    let fit = [(&first, &a, "A"), (&second, &b, "B")].map(|(figures, estimate, name)| {
        fitness(scale, figures, estimate).map_err(|reason| format!("{name}: {reason}"))
    });
    let effect = match (&fit, unlike) {
        ([Ok(()), Ok(())], None) => {
            unpaired(scale, &first, &second, margin).ok_or_else(|| "no figures".to_owned())
        }
        (_, Some(unlike)) => Err(unlike),
        ([Err(reason), _] | [_, Err(reason)], None) => Err(reason.clone()),
    };
    // A cell that is no longer measured fails the comparison.
    let vanished = fit[0].is_ok() && fit[1].is_err();
    let fails = allowed.is_some_and(|allowed| {
        vanished || effect.as_ref().is_ok_and(|effect| is_beyond(metric, effect, &a, margin, allowed))
    });
    Against {
        change: change(metric, margin, effect.as_ref().map_err(String::as_str)),
        effect: effect.ok(),
        cell,
        metric,
        margin,
        a,
        b,
        fails,
    }
}

/// What two arms differ by if their runs are not paired, for a reader. It is no verdict. `None` if one of them has
/// fewer than two figures, or a ratio cannot be made.
pub(crate) fn unpaired_sentence(question: &Question, arms: [&[&RunRecord]; 2]) -> Option<String> {
    let Question { metric, margin, factor, ref baseline, ref candidate } = *question;
    let [first, second] =
        arms.map(|runs| runs.iter().filter_map(|run| figure(run, metric)).collect::<Vec<f64>>());
    for (figures, runs) in [(&first, arms[0]), (&second, arms[1])] {
        fitness(metric.scale(), figures, &estimate(runs, metric)).ok()?;
    }
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

/// Whether a sample can be compared, or why it cannot.
fn fitness(scale: Scale, figures: &[f64], estimate: &Estimate) -> Result<(), String> {
    let missing = || estimate.missing.as_ref().map_or_else(String::new, |reason| format!(" ({reason})"));
    match figures.len() {
        0 => Err(estimate.missing.clone().unwrap_or_else(|| "no figure".to_owned())),
        1 => Err(format!("one run has a figure, and an interval needs two{}", missing())),
        runs => match figures.iter().filter(|figure| **figure <= 0.0).count() {
            unfit if unfit > 0 && scale == Scale::Ratio => {
                Err(format!("no ratio can be made: a figure is zero or less in {unfit} of {runs} runs"))
            }
            _ => Ok(()),
        },
    }
}

/// The distance of two samples with its intervals and tests; `adjusted_p` is the unadjusted p until [`adjust`] has
/// processed all.
fn unpaired(scale: Scale, first: &[f64], second: &[f64], margin: f64) -> Option<Unpaired> {
    let on_scale = |figures: &[f64]| -> Vec<f64> {
        match scale {
            Scale::Ratio => figures.iter().map(|figure| figure.ln()).collect(),
            Scale::Difference => figures.to_vec(),
        }
    };
    let (a, b) = (on_scale(first), on_scale(second));
    let widening = [&a, &b].map(|figures| autocorrelation(figures).map_or(1.0, |found| found.widening));
    let found = welch_widened(&a, &b, widening)?;
    let interval = |confidence: f64| interval_back(scale, found.interval(confidence));
    let no_more = margin_distance(scale, margin);
    Some(Unpaired {
        scale,
        estimate: back(scale, found.difference),
        interval90: interval(0.90),
        interval95: interval(0.95),
        interval99: interval(0.99),
        p: found.p,
        adjusted_p: found.p,
        equivalence_p: found.equivalence_p(&no_more),
        mann_whitney_p: mann_whitney(first, second)?.p,
        ratio_of_medians: ratio_of_medians(second, first),
        cliffs_delta: cliffs_delta(first, second)?,
    })
}

/// Judges by the rule of [`significance`].
fn change(metric: Metric, margin: f64, effect: Result<&Unpaired, &str>) -> Change {
    let effect = match effect {
        Ok(effect) => effect,
        Err(reason) => return Change::Nothing(reason.to_owned()),
    };
    let found = significance(effect.scale, &effect.interval90, &effect.interval99, margin);
    match found {
        Significance { is_equivalent: true, .. } => Change::Equivalent,
        Significance { side: None, .. } => Change::Inconclusive,
        Significance { side: Some(side), .. } if is_better(metric, side) => Change::Better,
        Significance { side: Some(_), .. } => Change::Worse,
    }
}

/// Whether the whole 95 % interval is worse than what is allowed. Of rates and times that is a ratio; of shares and per
/// cents so many points; of other differences so many per cent of the first record's mean, and the margin at least.
fn is_beyond(metric: Metric, effect: &Unpaired, first: &Estimate, margin: f64, allowed: f64) -> bool {
    let Interval { low, high } = effect.interval95;
    let most = match effect.scale {
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

/// Benjamini and Hochberg's adjustment over all figures that have a p.
pub(crate) fn adjust(figures: &mut [Against]) {
    let mut members: Vec<&mut Unpaired> =
        figures.iter_mut().filter_map(|figure| figure.effect.as_mut()).collect();
    let plain: Vec<f64> = members.iter().map(|effect| effect.p).collect();
    for (effect, p) in members.iter_mut().zip(benjamini_hochberg(&plain)) {
        effect.adjusted_p = p;
    }
}
