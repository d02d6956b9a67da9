//! An index of the record's runs, and the summary of one cell's runs of one metric.

use crate::statistics::{Moments, mean, median, median_interval};
use stacklab_model::{Cell, Estimate, Metric, Probe, RunRecord, RunStatus, Value};
use std::collections::HashMap;

/// The codes of warnings about CPU time that a run's hosts did not get.
const LOAD_WARNINGS: [&str; 2] = ["other_load", "cpu_quota"];

/// Runs by cell and probe, in the order of their blocks. Built once, used by every question.
#[derive(Debug, Default)]
pub struct Runs<'a> {
    by_cell: HashMap<&'a Cell, HashMap<Probe, Vec<&'a RunRecord>>>,
}

impl<'a> Runs<'a> {
    /// Indexes runs, valid and invalid, in whatever order they come.
    pub fn new(records: impl IntoIterator<Item = &'a RunRecord>) -> Self {
        let mut by_cell: HashMap<&Cell, HashMap<Probe, Vec<&RunRecord>>> = HashMap::new();
        for record in records {
            let by_probe = by_cell.entry(&record.trial.cell).or_default();
            by_probe.entry(record.trial.probe).or_default().push(record);
        }
        for runs in by_cell.values_mut().flat_map(HashMap::values_mut) {
            runs.sort_by_key(|run| (run.trial.block, run.trial.position));
        }
        Runs { by_cell }
    }

    /// The runs of a cell that took a metric, in the order of their blocks: those of a paced stream, or of an open
    /// loop, where it was to measure the metric.
    pub fn of(&self, cell: &Cell, metric: Metric) -> &[&'a RunRecord] {
        let Some(by_probe) = self.by_cell.get(cell) else { return &[] };
        for probe in [Probe::Paced, Probe::EchoOpenLoop] {
            if let Some(runs) = by_probe.get(&probe)
                && runs.iter().any(|run| run.takes_over(metric))
            {
                return runs;
            }
        }
        by_probe.get(&metric.probe()).map_or(&[], Vec::as_slice)
    }
}

pub(crate) fn figure(run: &RunRecord, metric: Metric) -> Option<f64> {
    let figure = run.values.get(&metric)?.measured()?;
    (run.is_valid() && figure.is_finite()).then_some(figure)
}

/// Summarises the runs of one cell, in the metric's unit. Only valid runs with a figure count. `missing` is the first
/// reason if any valid run has no figure, or says why there is no valid run. The interval is one of possible figures.
pub fn estimate(runs: &[&RunRecord], metric: Metric) -> Estimate {
    let figures: Vec<f64> = runs.iter().filter_map(|run| figure(run, metric)).collect();
    let found = estimate_of(&figures);
    let interval = found.interval.map(|interval| interval.clip_to(metric.possible_figures()));
    Estimate { missing: missing(runs, metric), interval, ..found }
}

/// Summarises finite figures: mean, standard deviation (n - 1), median, and the 95 % t interval of the mean. Standard
/// deviation and interval need two figures.
pub fn estimate_of(figures: &[f64]) -> Estimate {
    let moments = Moments::of(figures);
    Estimate {
        n: figures.len(),
        mean: mean(figures),
        sd: moments.map(|moments| moments.sd),
        median: median(figures),
        interval: moments.map(|moments| moments.interval(0.95)),
        median_interval: median_interval(figures, 0.95).map(|found| found.interval),
        missing: None,
    }
}

/// Whether other load or a CPU quota disturbed a run.
pub(crate) fn has_load_warning(run: &RunRecord) -> bool {
    run.warnings.iter().any(|warning| LOAD_WARNINGS.contains(&warning.code.as_str()))
}

/// Why an arm has fewer figures than runs, if it has.
pub(crate) fn missing(runs: &[&RunRecord], metric: Metric) -> Option<String> {
    let mut valid = runs.iter().filter(|run| run.is_valid()).peekable();
    if valid.peek().is_none() {
        return Some(match runs.first().map(|run| &run.status) {
            Some(RunStatus::Invalid(reasons)) if !reasons.is_empty() => {
                format!("no run is valid: {}", reasons.join("; "))
            }
            Some(_) => "no run is valid".to_owned(),
            None => "not measured".to_owned(),
        });
    }
    valid.find_map(|run| match run.values.get(&metric) {
        Some(Value::Measured(figure)) if figure.is_finite() => None,
        Some(Value::Measured(_)) => Some("the figure recorded is not finite".to_owned()),
        Some(Value::Missing(reason) | Value::Invalid(reason)) => Some(reason.clone()),
        None => Some("not recorded".to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{cell, invalid, run, run_with};
    use stacklab_model::Family;

    #[test]
    fn the_interval_is_students() {
        let estimate = estimate_of(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!((estimate.n, estimate.mean, estimate.median), (5, Some(3.0), Some(3.0)));
        assert!((estimate.sd.unwrap() - 1.5811388).abs() < 1e-6);
        // 3 -+ 2.776445 * 1.5811388 / sqrt(5)
        let interval = estimate.interval.unwrap();
        assert!((interval.low - 1.0367568).abs() < 1e-6, "{interval:?}");
        assert!((interval.high - 4.9632432).abs() < 1e-6, "{interval:?}");
    }

    #[test]
    fn one_figure_has_no_interval_and_none_has_nothing() {
        let one = estimate_of(&[7.0]);
        assert_eq!((one.n, one.mean, one.sd, one.interval), (1, Some(7.0), None, None));
        let none = estimate_of(&[]);
        assert_eq!((none.n, none.mean, none.median, none.interval), (0, None, None, None));
    }

    #[test]
    fn an_interval_has_possible_figures_only() {
        fn of(metric: Metric, figures: [f64; 2]) -> (f64, f64) {
            let cell = cell(Family::Ipv4, 128);
            let records: Vec<RunRecord> =
                (0..).zip(figures).map(|(block, figure)| run(block, &cell, metric, figure)).collect();
            let found = estimate(&records.iter().collect::<Vec<_>>(), metric);
            let interval = found.interval.unwrap();
            (interval.low, interval.high)
        }
        assert_eq!(of(Metric::Loss, [0.075, 0.284]), (0.0, 1.0));
        let (low, high) = of(Metric::Throughput, [1.2, 4.8]);
        assert_eq!(low, 0.0);
        assert!((high - 25.87).abs() < 0.01, "{high}");
        assert!(of(Metric::PacingError, [1.0, 5.0]).0 < 0.0);
    }

    #[test]
    fn invalid_runs_and_missing_figures_do_not_count() {
        let cell = cell(Family::Ipv4, 128);
        let records = [
            run(0, &cell, Metric::Throughput, 10.0),
            invalid(run(1, &cell, Metric::Throughput, 1000.0), "family is ipv4"),
            run_with(2, &cell, Metric::Throughput, Value::Missing("no arrivals".into())),
            run_with(3, &cell, Metric::Throughput, Value::Invalid("clock".into())),
            run(4, &cell, Metric::Throughput, 12.0),
        ];
        let runs: Vec<&RunRecord> = records.iter().collect();
        let estimate = estimate(&runs, Metric::Throughput);
        assert_eq!((estimate.n, estimate.mean), (2, Some(11.0)));
        assert_eq!(estimate.missing.as_deref(), Some("no arrivals"));
    }

    #[test]
    fn loss_of_an_open_loop_is_that_of_its_runs() {
        let cell = cell(Family::Ipv4, 128);
        let closed = run(0, &cell, Metric::EchoLoss, 0.5);
        let mut open = run(0, &cell, Metric::EchoLoss, 0.1);
        open.trial.probe = Probe::EchoOpenLoop;
        let records = [closed, open];
        assert_eq!(Runs::new(&records).of(&cell, Metric::EchoLoss), [&records[1]]);
        assert_eq!(Runs::new(&records[..1]).of(&cell, Metric::EchoLoss), [&records[0]]);
    }

    #[test]
    fn an_estimate_without_runs_says_why() {
        let cell = cell(Family::Ipv4, 128);
        assert_eq!(estimate(&[], Metric::Rtt).missing.as_deref(), Some("not measured"));
        let record = invalid(run(0, &cell, Metric::Rtt, 1.0), "MTU is 1280");
        assert_eq!(
            estimate(&[&record], Metric::Rtt).missing.as_deref(),
            Some("no run is valid: MTU is 1280")
        );
        let other = run(0, &cell, Metric::Rtt, 1.0);
        assert_eq!(estimate(&[&other], Metric::RttMean).missing.as_deref(), Some("not recorded"));
    }
}
