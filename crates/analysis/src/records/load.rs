//! Other load as a difference between two records.

use crate::findings::RecordedCampaign;
use crate::records::unpaired::is_beyond;
use crate::runs::has_load_warning;
use stacklab_model::{Change, Lacking, MetricDiff, OtherLoad, RecordDiff, RecordLoads, read_other_load};

/// How many runs of each campaign other load disturbed, and how much of the CPUs it used.
pub fn record_loads(campaigns: [&RecordedCampaign; 2]) -> RecordLoads {
    let [a, b] = campaigns.map(sum_other_load);
    RecordLoads { a, b }
}

fn sum_other_load(campaign: &RecordedCampaign) -> OtherLoad {
    let mut load = OtherLoad::default();
    let mut used = 0;
    for run in campaign.runs.iter().filter(|run| run.is_valid()) {
        load.runs += 1;
        load.disturbed += usize::from(has_load_warning(run));
        used += run.warnings.iter().find_map(read_other_load).unwrap_or(0);
    }
    load.share = f64::from(used) / 100.0 / load.runs.max(1) as f64;
    load
}

/// The figures that are claimed to be worse by more than is allowed, and do not fail because other load disturbed the
/// runs of one record only.
pub fn not_comparable<'a>(found: &'a RecordDiff, loads: &RecordLoads) -> Vec<&'a MetricDiff> {
    let (Some(allowed), Some(_)) = (found.allowed, loads.warning()) else { return Vec::new() };
    let mut spared = Vec::new();
    for figure in &found.figures {
        let claimed = figure.effect.as_ref().and_then(|effect| effect.claimed_interval);
        if figure.change == Change::Worse
            && is_beyond(figure.metric, figure.margin, &figure.a, claimed, allowed)
        {
            spared.push(figure);
        }
    }
    spared
}

/// The figures that the second record lacks, perhaps because its runs were disturbed: whether it is worse cannot be
/// decided.
pub fn list_undecided_figures(found: &RecordDiff) -> Vec<&MetricDiff> {
    found.figures.iter().filter(|figure| figure.lacking == Some(Lacking::Disturbed)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{campaign, cell, invalid, link_config, run, with_warnings};
    use crate::records::between;
    use stacklab_model::{Cell, Family, Length, Metric, Pacing, Probe, ProbeSpec, RunRecord, Value};

    const METRIC: Metric = Metric::Throughput;

    fn probes() -> [ProbeSpec; 1] {
        [ProbeSpec {
            probe: Probe::Stream,
            pacing: Pacing::Flood,
            length: Length::Packets(1),
            warmup_ns: 0,
            interval_ns: 1,
            metrics: vec![METRIC],
        }]
    }

    /// Ten runs about a figure, the first ones disturbed.
    fn runs(middle: f64, disturbed: usize, code: &str) -> Vec<RunRecord> {
        let noise = [0.99, 1.01, 1.0, 1.005, 0.995, 1.0, 0.99, 1.01, 1.0, 1.002];
        let mut runs = Vec::new();
        for (block, noise) in (0..).zip(noise) {
            let run = run(block, &cell(Family::Ipv4, 128), METRIC, middle * noise);
            runs.push(if (block as usize) < disturbed { with_warnings(run, &[code, "other"]) } else { run });
        }
        runs
    }

    /// Ten runs, during each of which other load used a share of the CPUs, per cent.
    fn loaded_runs(middle: f64, share: u32) -> Vec<RunRecord> {
        let mut runs = runs(middle, 10, "other_load");
        for run in &mut runs {
            run.warnings[0].text = format!("other load used {share} % of the CPUs (make used 90 % of one)");
        }
        runs
    }

    /// B against A with 5 % allowed.
    fn compare_loads(a: &[RunRecord], b: &[RunRecord]) -> (RecordDiff, RecordLoads) {
        let link = link_config(None);
        let cells: [Cell; 1] = [cell(Family::Ipv4, 128)];
        let probes = probes();
        let [a, b] = [a, b].map(|runs| RecordedCampaign {
            cells: &cells,
            probes: &probes,
            ..campaign(&link, &[], runs)
        });
        (between([&a, &b], ["a", "b"], &[], Some(0.05)).unwrap(), record_loads([&a, &b]))
    }

    #[test]
    fn quiet_record_against_loaded_one_does_not_fail() {
        for (a, b) in [(1, 2), (7, 0)] {
            let (found, loads) = compare_loads(&runs(100.0, a, "other_load"), &runs(80.0, b, "cpu_quota"));
            assert_eq!((loads.a.disturbed, loads.b.disturbed, loads.b.runs), (a, b, 10));
            let figure = &found.figures[0];
            assert_eq!(
                (&figure.change, figure.fails),
                (&Change::Worse, false),
                "it is said, and fails nothing"
            );
            assert_eq!(not_comparable(&found, &loads), [figure]);
            let load = found.differences.iter().find(|of| of.what == "other load").unwrap();
            assert_eq!([load.a.clone(), load.b.clone()], [a, b].map(|n| format!("disturbed {n} of 10 runs")));
        }
    }

    #[test]
    fn records_under_the_same_load_are_comparable() {
        for (a, b) in [(0, 1), (5, 9)] {
            let (found, loads) = compare_loads(&runs(100.0, a, "other_load"), &runs(80.0, b, "other_load"));
            assert!(found.figures[0].fails && not_comparable(&found, &loads).is_empty(), "{a} and {b}");
            assert_eq!(found.differences, []);
        }
    }

    #[test]
    fn records_under_unequal_load_are_not_comparable() {
        let (found, loads) = compare_loads(&loaded_runs(100.0, 30), &loaded_runs(80.0, 75));
        assert_eq!([loads.a.share, loads.b.share], [0.3, 0.75]);
        assert!(!found.figures[0].fails, "the load may be all that differs");
        let load = found.differences.iter().find(|of| of.what == "other load").unwrap();
        assert_eq!(load.a, "disturbed 10 of 10 runs (30 % of the CPUs in the mean)");
        let (found, _) = compare_loads(&loaded_runs(100.0, 30), &loaded_runs(80.0, 40));
        assert!(found.figures[0].fails);
    }

    #[test]
    fn figure_that_vanished_fails_under_any_load() {
        let mut gone = runs(100.0, 0, "");
        for run in &mut gone {
            run.values.insert(METRIC, Value::Missing("no arrivals".into()));
        }
        let (found, loads) = compare_loads(&runs(100.0, 9, "other_load"), &gone);
        assert!(loads.warning().is_some() && found.figures[0].fails);
    }

    #[test]
    fn figure_lacking_under_load_is_undecided() {
        // A run under load has no round trip to tell.
        let mut lacking = runs(100.0, 10, "other_load");
        for run in &mut lacking {
            run.values.insert(METRIC, Value::Missing("too few round trips were not held up".into()));
        }
        let (found, _) = compare_loads(&runs(100.0, 0, ""), &lacking);
        let figure = &found.figures[0];
        assert_eq!((figure.lacking, figure.fails), (Some(Lacking::Disturbed), false));
        let Change::Nothing(reason) = &figure.change else { panic!("{:?}", figure.change) };
        assert_eq!(
            reason,
            "B: too few round trips were not held up; other load disturbed each of its runs without the figure"
        );
        assert_eq!(list_undecided_figures(&found), [figure]);
        // One run was quiet, and has none either: it is the build that has none.
        lacking[3].warnings.clear();
        let (found, _) = compare_loads(&runs(100.0, 0, ""), &lacking);
        assert_eq!((found.figures[0].lacking, found.figures[0].fails), (Some(Lacking::Gone), true));
        assert!(list_undecided_figures(&found).is_empty());
        // What the first one lacks too is not lacking.
        let (found, _) = compare_loads(&lacking, &lacking);
        assert_eq!((found.figures[0].lacking, found.figures[0].fails), (None, false));
    }

    #[test]
    fn invalid_runs_do_not_count() {
        let mut one = runs(100.0, 3, "other_load");
        let first = one.remove(0);
        one.push(invalid(first, "family is ipv4"));
        let (_, loads) = compare_loads(&one, &one);
        assert_eq!(loads.a, OtherLoad { disturbed: 2, runs: 9, share: 0.0 });
    }
}
