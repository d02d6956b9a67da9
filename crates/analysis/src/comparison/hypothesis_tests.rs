//! Hypothesis tests and estimators of a comparison, in addition to the interval that gives its verdict.

use crate::comparison::distance::{back, interval_back, margin_distance, ratio_of_medians};
use crate::comparison::paired::Paired;
use crate::runs::{Runs, figure};
use crate::statistics::order::order;
use crate::statistics::{
    RESAMPLES, bca, benjamini_hochberg, cliffs_delta, hodges_lehmann, holm, signed_rank,
};
use stacklab_model::{Adjustment, Comparison, Interval, Metric, Question, Tests};

/// The tests of one question. The adjusted p equals the unadjusted one until [`adjust`] has processed all of them.
pub(crate) fn tests(question: &Question, paired: &Paired, runs: &Runs, seed: u64) -> Option<Tests> {
    let distances = paired.distances();
    let scale = question.metric.scale();
    let interval = |found: Interval| interval_back(scale, found);
    let [baseline, candidate] = [&question.baseline, &question.candidate].map(|cell| {
        let runs = runs.of(cell, question.metric);
        runs.iter().filter_map(|run| figure(run, question.metric)).collect::<Vec<f64>>()
    });
    let p = paired.p();
    let middle = hodges_lehmann(distances, 0.95)?;
    let no_more = margin_distance(scale, question.margin);
    Some(Tests {
        p,
        adjusted_p: p,
        adjustment: Adjustment::BenjaminiHochberg,
        equivalence_p: paired.equivalence_p(&no_more),
        bootstrap95: bca(distances, RESAMPLES, 0.95, seed).map(interval),
        signed_rank_p: signed_rank(distances).map(|found| found.p),
        hodges_lehmann: back(scale, middle.estimate),
        hodges_lehmann95: middle.interval.map(interval),
        ratio_of_medians: ratio_of_medians(&candidate, &baseline),
        cliffs_delta: cliffs_delta(&baseline, &candidate)?,
        order: order(distances),
    })
}

/// Adjusts the p-values of a study's comparisons: Holm's method for the headline metric, which is the first metric
/// compared; Benjamini and Hochberg's method for all others.
pub(crate) fn adjust(comparisons: &mut [Comparison]) {
    let Some(headline) = comparisons.first().map(|comparison| comparison.question.metric) else { return };
    for adjustment in [Adjustment::Holm, Adjustment::BenjaminiHochberg] {
        let is_member = |metric: Metric| (metric == headline) == (adjustment == Adjustment::Holm);
        let mut members: Vec<&mut Tests> = comparisons
            .iter_mut()
            .filter(|comparison| is_member(comparison.question.metric))
            .filter_map(|comparison| comparison.tests.as_mut())
            .collect();
        let plain: Vec<f64> = members.iter().map(|tests| tests.p).collect();
        let adjusted = match adjustment {
            Adjustment::Holm => holm(&plain),
            Adjustment::BenjaminiHochberg => benjamini_hochberg(&plain),
        };
        for (tests, p) in members.iter_mut().zip(adjusted) {
            (tests.adjusted_p, tests.adjustment) = (p, adjustment);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::findings;
    use crate::fixtures::{campaign, link_config, question, runs_of};
    use stacklab_model::{Family, Scale};

    fn of(metric: Metric, margin: f64, pairs: &[(f64, f64)]) -> Tests {
        let (question, records) = (question(metric, margin), runs_of(metric, pairs));
        let runs = Runs::new(&records);
        tests(&question, &Paired::new(&question, &runs).unwrap(), &runs, 7).unwrap()
    }

    #[test]
    fn on_the_ratio_scale_everything_is_a_ratio() {
        let pairs = [-0.2_f64, -0.1, 0.01, 0.1, 0.2, 0.25].map(|log| (10.0, 10.0 * (log + 0.5).exp()));
        let found = of(Metric::Throughput, 0.02, &pairs);
        let bootstrap = found.bootstrap95.unwrap();
        assert!(bootstrap.low > 1.0 && bootstrap.contains(1.69), "{bootstrap:?}");
        assert!(found.hodges_lehmann95.unwrap().contains(found.hodges_lehmann));
        assert!((found.hodges_lehmann - 1.72).abs() < 0.05, "{found:?}");
        assert!((found.ratio_of_medians.unwrap() - 0.555_f64.exp()).abs() < 0.01, "{found:?}");
        assert_eq!(found.cliffs_delta, 1.0);
        assert!((found.signed_rank_p.unwrap() - 2.0 / 64.0).abs() < 1e-12);
        assert!(found.p < 0.01 && found.equivalence_p > 0.99, "{found:?}");
    }

    #[test]
    fn p_agrees_with_the_interval_that_the_verdict_is_from() {
        for shift in [0.0, 0.02, 0.05, 0.08, 0.11] {
            // A difference that wanders: its intervals are widened, and so is the standard error of the p.
            let wander: [f64; 10] = [0.0, 0.02, 0.05, 0.06, 0.09, 0.07, 0.04, 0.02, 0.03, 0.0];
            let pairs: Vec<(f64, f64)> =
                wander.repeat(2).into_iter().map(|log: f64| (1.0, (log - shift).exp())).collect();
            let effect = Paired::of(Scale::Ratio, &pairs).unwrap().effect();
            let found = of(Metric::Throughput, 0.05, &pairs);
            assert!(found.order.unwrap().widening > 1.0, "the case is what it is for");
            assert_eq!(found.p < 0.05, !effect.interval95.contains(1.0), "{shift}");
            assert_eq!(found.p < 0.01, !effect.interval99.contains(1.0), "{shift}");
            let inside = effect.interval90.is_within(&Interval::of_margin(Scale::Ratio, 0.05));
            assert_eq!(found.equivalence_p < 0.05, inside, "{shift}");
        }
    }

    #[test]
    fn pairs_that_are_all_alike_have_what_can_be_said_of_them() {
        let found = of(Metric::Loss, 0.001, &[(0.0, 0.0); 6]);
        assert_eq!((found.p, found.signed_rank_p, found.bootstrap95, found.order), (1.0, None, None, None));
        assert_eq!((found.cliffs_delta, found.ratio_of_medians, found.equivalence_p), (0.0, None, 0.0));
        assert_eq!(found.hodges_lehmann, 0.0);
    }

    #[test]
    fn the_headline_metric_is_adjusted_by_holm_and_the_others_by_benjamini_and_hochberg() {
        let sized = |metric: Metric, size: u32| {
            let mut question = question(metric, 0.02);
            (question.baseline.size, question.candidate.size) = (size, size);
            question
        };
        let questions: Vec<Question> = [Metric::Throughput, Metric::Jitter]
            .into_iter()
            .flat_map(|metric| [64, 128, 256].map(|size| sized(metric, size)))
            .collect();
        let noise = [0.01_f64, -0.02, 0.03, 0.0, 0.02, -0.01];
        let records: Vec<_> = questions
            .iter()
            .flat_map(|question| {
                let apart = f64::from(question.baseline.size) / 10_000.0;
                let pairs = noise.map(|noise| (1.0, (apart + noise).exp()));
                let mut records = runs_of(question.metric, &pairs);
                records.iter_mut().for_each(|run| run.trial.cell.size = question.baseline.size);
                records
            })
            .collect();
        let link_config = link_config(None);
        let found = findings(&campaign(&link_config, &questions, &records));
        let tests: Vec<&Tests> = found.comparisons.iter().map(|c| c.tests.as_ref().unwrap()).collect();
        let plain: Vec<f64> = tests.iter().map(|tests| tests.p).collect();
        let adjusted: Vec<f64> = tests.iter().map(|tests| tests.adjusted_p).collect();
        assert_eq!(adjusted, [holm(&plain[..3]), benjamini_hochberg(&plain[3..])].concat());
        assert!(adjusted[2] > plain[2] && adjusted[1] != adjusted[4]);
        assert_eq!(tests[0].adjustment, Adjustment::Holm);
        assert_eq!(tests[5].adjustment, Adjustment::BenjaminiHochberg);
        assert_eq!(found.comparisons[0].question.baseline.family, Family::Ipv4);
    }
}
