//! The figures at the lower bounds, as RFC 8219 wants them reported: the median over at least 20 runs, with the 1st and
//! the 99th percentile.

use stacklab_model::{
    Cell, Length, Metric, Pacing, ProbeSpec, Rfc8219, RunPercentiles, RunRecord, SHORT_HEADER_BYTES,
    SearchGoal, SearchSpec, SizeOf, count, print_duration,
};

/// Runs that the RFC asks for at the least.
pub(super) const MIN_RUNS: usize = 20;
/// Nanoseconds of a trial of RFC 2544.
pub(super) const TRIAL_NS: u64 = 60_000_000_000;
/// Nanoseconds of a stream whose latencies are measured.
const STREAM_NS: u64 = 120_000_000_000;

/// `None` of a study without a goal.
pub(super) fn describe_bounds(cells: &[Cell], probes: &[ProbeSpec], runs: &[RunRecord]) -> Option<Rfc8219> {
    let goal = probes.iter().find_map(|spec| match spec.pacing {
        Pacing::Search(SearchSpec { goal, .. }) => goal,
        _ => None,
    })?;
    let stream = probes.iter().find(|spec| spec.pacing == Pacing::Searched);
    let mut metrics = vec![Metric::LowerBound];
    for metric in [Metric::BackToBack, Metric::RecoveryTime] {
        if probes.iter().any(|spec| spec.metrics.contains(&metric)) {
            metrics.push(metric);
        }
    }
    metrics.extend(stream.into_iter().flat_map(|stream| &stream.metrics));
    let mut rows = Vec::new();
    let mut lacking = Vec::new();
    for cell in cells {
        let mut labels = Vec::new();
        for metric in metrics.iter().filter(|metric| metric.is_of_cell(cell)) {
            match percentiles(cell, *metric, runs) {
                Some(row) => rows.push(row),
                None => labels.push(metric.label()),
            }
        }
        if !labels.is_empty() {
            lacking.push(format!("no run of {} has a figure: {}", cell.label(), labels.join(", ")));
        }
    }
    let least = rows.iter().map(|row| row.n).min().unwrap_or(0);
    let of_recovery = rows.iter().any(|row| row.metric == Metric::RecoveryTime).then(describe_recovery);
    let departures =
        [lacking, list_departures(cells, goal, stream, least), Vec::from_iter(of_recovery)].concat();
    Some(Rfc8219 { rows, departures })
}

fn percentiles(cell: &Cell, metric: Metric, runs: &[RunRecord]) -> Option<RunPercentiles> {
    let of_cell = runs.iter().filter(|run| run.is_valid() && run.trial.cell == *cell);
    let mut figures: Vec<f64> = of_cell.filter_map(|run| run.values.get(&metric)?.measured()).collect();
    figures.sort_by(f64::total_cmp);
    Some(RunPercentiles {
        cell: cell.clone(),
        metric,
        n: figures.len(),
        median: nearest_rank(&figures, 0.5)?,
        p1: nearest_rank(&figures, 0.01)?,
        p99: nearest_rank(&figures, 0.99)?,
    })
}

/// Of sorted figures, the least one that this share of them does not exceed.
pub(super) fn nearest_rank(sorted: &[f64], share: f64) -> Option<f64> {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

fn list_departures(cells: &[Cell], goal: SearchGoal, stream: Option<&ProbeSpec>, runs: usize) -> Vec<String> {
    let mut departures = Vec::new();
    if runs < MIN_RUNS {
        departures.push(format!("{} instead of at least {MIN_RUNS}", count(runs as u64, "run")));
    }
    if goal.loss_ppm > 0 || goal.exceed_ppm > 0 {
        departures.push(format!("the lower bound is for {goal}; the RFC allows no loss"));
    }
    if goal.trial_ns < TRIAL_NS {
        departures.push(format!("trials of {} instead of 60 s", print_duration(goal.trial_ns)));
    }
    departures.push("arms take turns of a trial, at loads near one that was searched before".to_owned());
    departures.push("messages flow in one direction, each flow from one port to one port".to_owned());
    // The least payload is that of the least frames.
    if cells.iter().any(|cell| cell.size_of != SizeOf::Frame && cell.size != SHORT_HEADER_BYTES) {
        departures.push("sizes are not those of frames".to_owned());
    }
    if let Some(stream) = stream {
        match stream.length {
            Length::Time(ns) if ns < STREAM_NS => {
                departures.push(format!("delays are of {} instead of 120 s", print_duration(ns)));
            }
            Length::Time(_) => {}
            Length::Packets(packets) => {
                departures.push(format!("delays are of {} instead of 120 s", count(packets, "message")));
            }
        }
        departures.push(
            "delays are of all messages, from the send call to the kernel's receive timestamp, and arms take turns of \
             a slice"
                .to_owned(),
        );
    }
    departures
}

fn describe_recovery() -> String {
    let [overload_ns, _] = SearchSpec::RECOVERY_NS;
    format!("a recovery is measured after an overload of {} instead of 60 s", print_duration(overload_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{cell, run};
    use stacklab_model::{Family, Probe, Value};

    const SECOND: u64 = 1_000_000_000;

    fn goal(trial_ns: u64) -> SearchGoal {
        SearchGoal { loss_ppm: 0, exceed_ppm: 0, trial_ns, sum_ns: trial_ns, width_ppm: 10_000 }
    }

    fn probe(probe: Probe, pacing: Pacing, metrics: &[Metric]) -> ProbeSpec {
        let length = Length::Time(SECOND);
        ProbeSpec { probe, pacing, length, warmup_ns: 0, interval_ns: 1, metrics: metrics.to_vec() }
    }

    fn search(goal: Option<SearchGoal>) -> ProbeSpec {
        let search = SearchSpec { goal, ..SearchSpec::new(5000) };
        probe(Probe::Search, Pacing::Search(search), &[Metric::LowerBound])
    }

    #[test]
    fn percentiles_of_20_runs_are_least_and_greatest() {
        let ipv4 = cell(Family::Ipv4, 64);
        let mut runs: Vec<RunRecord> =
            (0..20).map(|n| run(n, &ipv4, Metric::LowerBound, f64::from(n + 1))).collect();
        runs.push(run(20, &cell(Family::Ipv6, 64), Metric::LowerBound, 1000.0));
        let found = percentiles(&ipv4, Metric::LowerBound, &runs).unwrap();
        assert_eq!((found.n, found.p1, found.median, found.p99), (20, 1.0, 10.0, 20.0));
        runs[0].values.insert(Metric::LowerBound, Value::Missing("disturbed".to_owned()));
        assert_eq!(percentiles(&ipv4, Metric::LowerBound, &runs).unwrap().n, 19);
        assert_eq!(percentiles(&ipv4, Metric::Pdv, &runs), None);
    }

    #[test]
    fn rows_are_of_bounds_and_streams_at_them() {
        let ipv4 = cell(Family::Ipv4, 64);
        let runs = [run(0, &ipv4, Metric::LowerBound, 100.0), run(0, &ipv4, Metric::Pdv, 0.5)];
        let stream = probe(Probe::Paced, Pacing::Searched, &[Metric::Pdv]);
        let elsewhere = probe(Probe::Paced, Pacing::Schedule(5.0), &[Metric::Pdv]);
        let cells = std::slice::from_ref(&ipv4);
        let both = describe_bounds(cells, &[search(Some(goal(SECOND))), stream], &runs).unwrap();
        let metrics: Vec<Metric> = both.rows.iter().map(|row| row.metric).collect();
        assert_eq!(metrics, [Metric::LowerBound, Metric::Pdv]);
        for departure in ["1 run instead of at least 20", "trials of 1 s instead of 60 s"] {
            assert!(both.departures.contains(&departure.to_owned()), "{:?}", both.departures);
        }
        let mut recovering = search(Some(goal(TRIAL_NS)));
        recovering.metrics.push(Metric::RecoveryTime);
        let recovered = [run(0, &ipv4, Metric::RecoveryTime, 0.1)];
        let recovering = describe_bounds(cells, &[recovering], &recovered).unwrap();
        let departure = "a recovery is measured after an overload of 4 s instead of 60 s";
        assert!(recovering.departures.contains(&departure.to_owned()), "{:?}", recovering.departures);
        let alone = describe_bounds(cells, &[search(Some(goal(TRIAL_NS))), elsewhere], &runs).unwrap();
        assert_eq!(alone.rows.len(), 1);
        assert!(!alone.departures.iter().any(|departure| departure.contains("60 s")));
        assert_eq!(describe_bounds(cells, &[search(None)], &runs), None);
        let none = describe_bounds(cells, &[search(Some(goal(SECOND)))], &[]).unwrap();
        assert!(none.rows.is_empty());
        assert_eq!(none.departures[0], "no run of IPv4 UDP 64 B has a figure: lower bound");
    }
}
