//! Whether runs were in steady state when they were measured (MSER-5).

use crate::findings::campaign::Series;
use crate::statistics::{Warmup, median, mser5};
use stacklab_model::{IntervalRow, Probe, RunRecord, SteadyState};
use std::collections::BTreeMap;

/// Tests the interval series of every valid run, by probe. Probes without a series are omitted, and so are arms of
/// interleaved trials: their series has the gaps in which other arms had their turns.
pub(crate) fn steady_state(runs: &[RunRecord], all: &Series) -> Vec<SteadyState> {
    let mut by_probe: BTreeMap<Probe, Vec<(Warmup, u64)>> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.is_valid() && run.spec.slicing.is_none()) {
        let series = all.get(&(run.trial.block, run.trial.position));
        if let Some(series) = series.filter(|series| series.len() > 1) {
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
    use crate::fixtures::{cell, invalid, run};
    use stacklab_model::{Family, IntervalRow, Metric};

    /// A run for each list of so many messages per row, 10 ms each; the last row is half a row.
    fn with(all: Vec<Vec<u64>>) -> (Vec<RunRecord>, Series) {
        let of = |(block, messages): (u32, Vec<u64>)| {
            let row = |(place, messages): (u64, u64)| IntervalRow {
                start_ns: place * 10_000_000,
                messages,
                bytes: 0,
                delay_mean_ns: None,
            };
            let rows = (0..).zip(messages.into_iter().chain([37])).map(row).collect();
            (run(block, &cell(Family::Ipv4, 128), Metric::Throughput, 1.0), ((block, 0), rows))
        };
        (0..).zip(all).map(of).unzip()
    }

    fn steady(n: u64) -> impl Iterator<Item = u64> {
        (0..n).map(|row| 1000 + [0, 7, 3, 9, 1, 6, 4][row as usize % 7])
    }

    #[test]
    fn runs_are_steady_late_unsettled_or_too_short() {
        let (mut runs, series) = with(vec![
            steady(70).collect(),
            (0..10).map(|row| row * 90).chain(steady(60)).collect(),
            (0..70).map(|row| 1000 + 10 * row).collect(),
            steady(20).collect(),
            steady(70).collect(),
        ]);
        let last = runs.pop().unwrap();
        runs.push(invalid(last, "family is ipv6"));
        let [found] = &steady_state(&runs, &series)[..] else { panic!("one probe") };
        assert_eq!((found.probe, found.runs, found.too_short), (Probe::Stream, 4, 1));
        assert_eq!((found.late, found.late_ns, found.unsettled), (1, Some(1e8), 1));
    }

    #[test]
    fn runs_without_a_series_say_nothing() {
        let run = run(0, &cell(Family::Ipv4, 128), Metric::Throughput, 1.0);
        assert_eq!(steady_state(&[run], &Series::new()), []);
    }
}
