//! Whether runs were in steady state when they were measured (MSER-5).

use crate::statistics::{Warmup, median, mser5};
use stacklab_model::{IntervalRow, Probe, RunRecord, SteadyState};
use std::collections::BTreeMap;

/// Tests the interval series of every valid run, by probe. Probes without a series are omitted, and so are arms of
/// interleaved trials: their series has the gaps in which other arms had their turns.
pub fn steady_state(runs: &[RunRecord]) -> Vec<SteadyState> {
    let mut by_probe: BTreeMap<Probe, Vec<(Warmup, u64)>> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.is_valid() && run.spec.slicing.is_none()) {
        if let Some(series) = run.host_reports.iter().map(|side| &side.series).find(|series| series.len() > 1)
        {
            let found = mser5(&messages(series));
            by_probe.entry(run.trial.probe).or_default().push((found, series[1].start_ns));
        }
    }
    by_probe.into_iter().map(|(probe, found)| of_probe(probe, &found)).collect()
}

fn of_probe(probe: Probe, found: &[(Warmup, u64)]) -> SteadyState {
    let count = |what: Warmup| found.iter().filter(|(warmup, _)| *warmup == what).count();
    let late: Vec<f64> = found
        .iter()
        .filter_map(|(warmup, row_ns)| match warmup {
            Warmup::Cut(rows) if *rows > 0 => Some(*rows as f64 * *row_ns as f64),
            _ => None,
        })
        .collect();
    SteadyState {
        probe,
        runs: found.len(),
        too_short: count(Warmup::TooShort),
        late: late.len(),
        late_ns: median(&late),
        unsettled: count(Warmup::Unsettled),
    }
}

/// Messages of each interval except the last, which is incomplete.
fn messages(series: &[IntervalRow]) -> Vec<f64> {
    series[..series.len() - 1].iter().map(|row| row.messages as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{cell, invalid, run, side_with_series};
    use stacklab_model::{Family, Metric};

    /// A run with this many messages per row, 10 ms each; the last row is half a row.
    fn with(messages: impl Iterator<Item = u64>) -> RunRecord {
        let mut run = run(0, &cell(Family::Ipv4, 128), Metric::Throughput, 1.0);
        let rows: Vec<u64> = messages.chain([37]).collect();
        run.host_reports.push(side_with_series(10_000_000, &rows));
        run
    }

    fn steady(n: u64) -> impl Iterator<Item = u64> {
        (0..n).map(|row| 1000 + [0, 7, 3, 9, 1, 6, 4][row as usize % 7])
    }

    #[test]
    fn runs_are_steady_late_unsettled_or_too_short() {
        let runs = [
            with(steady(70)),
            with((0..10).map(|row| row * 90).chain(steady(60))),
            with((0..70).map(|row| 1000 + 10 * row)),
            with(steady(20)),
            invalid(with(steady(70)), "family is ipv6"),
        ];
        let [found] = &steady_state(&runs)[..] else { panic!("one probe") };
        assert_eq!((found.probe, found.runs, found.too_short), (Probe::Stream, 4, 1));
        assert_eq!((found.late, found.late_ns, found.unsettled), (1, Some(1e8), 1));
    }

    #[test]
    fn runs_without_a_series_say_nothing() {
        assert_eq!(steady_state(&[run(0, &cell(Family::Ipv4, 128), Metric::Throughput, 1.0)]), []);
    }
}
