//! The trials of the frame loss rate, by their share of the highest load.

use crate::findings::rfc8219::{MIN_RUNS, TRIAL_NS, nearest_rank};
use stacklab_model::{
    Cell, FrameLoss, FrameLossArm, FrameLossPoint, POSSIBLE_RATES, Pacing, RunRecord, SearchSpec, count,
    print_duration,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

const PERCENTS: RangeInclusive<u32> = 1..=100;

/// The valid trials at one load.
#[derive(Default)]
struct Trials {
    loads: Vec<f64>,
    /// The share that each has lost.
    losses: Vec<f64>,
}

/// What each of these cells lost at which load; `None` without any trial. Runs without host reports have none.
pub(super) fn collect_frame_losses(cells: &[Cell], runs: &[RunRecord]) -> Option<FrameLoss> {
    let mut arms = Vec::new();
    let mut groups = Vec::new();
    let mut found = None;
    for cell in cells {
        let mut by_percent: BTreeMap<Reverse<u32>, Trials> = BTreeMap::new();
        let mut starts = Starts::new();
        for run in runs.iter().filter(|run| run.is_valid() && run.trial.cell == *cell) {
            let Pacing::Search(search) = run.spec.probe.pacing else { continue };
            if add_trials(&mut by_percent, run, &search) {
                found = found.or(Some(search));
                starts.insert(run.trial.block, run.started_unix_ns);
            }
        }
        let points: Vec<FrameLossPoint> = by_percent
            .into_iter()
            .filter_map(|(Reverse(percent), trials)| describe(percent, trials))
            .collect();
        if !points.is_empty() {
            arms.push(FrameLossArm { cell: cell.clone(), group: find_group(&mut groups, starts), points });
        }
    }
    let search = found?;
    let departures = list_departures(&arms, &search);
    Some(FrameLoss { arms, departures })
}

/// When an arm's run of each block started. Arms that take turns in a trial start together.
type Starts = BTreeMap<u32, u64>;

/// The number of the arms that were measured together with one that started at these times. `groups` has those of the
/// first arm of each.
fn find_group(groups: &mut Vec<Starts>, starts: Starts) -> usize {
    let known = groups.iter().position(|first| are_together(first, &starts));
    known.unwrap_or_else(|| {
        groups.push(starts);
        groups.len() - 1
    })
}

fn are_together(first: &Starts, other: &Starts) -> bool {
    let mut has_common_block = false;
    for (block, start) in other {
        match first.get(block) {
            Some(first) if first != start => return false,
            Some(_) => has_common_block = true,
            None => {}
        }
    }
    has_common_block
}

/// Adds the trials of a run. Returns whether it has any, valid or not.
fn add_trials(by_percent: &mut BTreeMap<Reverse<u32>, Trials>, run: &RunRecord, search: &SearchSpec) -> bool {
    let mut has_trials = false;
    for slice in run.host_reports.first().map_or(&[][..], |sender| &sender.search) {
        let Some(percent) = slice.percent.filter(|percent| PERCENTS.contains(percent)) else { continue };
        if !POSSIBLE_RATES.contains(&slice.load) {
            continue;
        }
        has_trials = true;
        if let Some(loss) = slice.trial_loss(search.loss_ppm) {
            let trials = by_percent.entry(Reverse(percent)).or_default();
            trials.loads.push(slice.load);
            trials.losses.push(loss);
        }
    }
    has_trials
}

fn describe(percent: u32, trials: Trials) -> Option<FrameLossPoint> {
    let Trials { mut loads, mut losses } = trials;
    loads.sort_by(f64::total_cmp);
    losses.sort_by(f64::total_cmp);
    Some(FrameLossPoint {
        percent,
        load: nearest_rank(&loads, 0.5)?,
        n: losses.len(),
        median: nearest_rank(&losses, 0.5)?,
        p1: nearest_rank(&losses, 0.01)?,
        p99: nearest_rank(&losses, 0.99)?,
    })
}

fn list_departures(arms: &[FrameLossArm], search: &SearchSpec) -> Vec<String> {
    let mut departures = Vec::new();
    let runs = arms.iter().filter_map(|arm| arm.points.first()).map(|point| point.n).min().unwrap_or(0);
    if runs < MIN_RUNS {
        departures.push(format!("{} instead of at least {MIN_RUNS}", count(runs as u64, "trial")));
    }
    let trial_ns = search.loss_trial_ns();
    if trial_ns < TRIAL_NS {
        departures.push(format!("trials of {} instead of 60 s", print_duration(trial_ns)));
    }
    let groups: BTreeSet<usize> = arms.iter().map(|arm| arm.group).collect();
    if groups.len() < arms.len() {
        departures.push(
            "100 % is the rate of the link of the fastest arm among those measured together, or what came out of its \
             flood, not the medium's rate"
                .to_owned(),
        );
        departures.push(
            "arms that are measured together take turns of a trial, at the same messages per second"
                .to_owned(),
        );
    } else {
        departures.push(
            "100 % is the rate of an arm's own link, or what came out of its flood, not the medium's rate"
                .to_owned(),
        );
    }
    departures.push("messages have one direction".to_owned());
    if search.loss_ppm > 0 {
        let percent = f64::from(search.loss_ppm) / 10_000.0;
        departures.push(format!(
            "messages that wait in a queue at a trial's end count as lost, if they are more than {percent} %"
        ));
    }
    departures.push("messages for which the receiver's socket had no room count as carried".to_owned());
    departures
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{cell, empty_report, run};
    use stacklab_model::{Family, HostReport, Metric, Role, SearchOutcome, SearchSlice};

    const SEARCH: SearchSpec = SearchSpec::new(5000);

    /// A trial at this share of 1000 messages per second that loses this many of 1000 messages.
    fn trial(percent: u32, lost: u64) -> SearchSlice {
        let outcome = if lost > 0 { SearchOutcome::Bad } else { SearchOutcome::Good };
        let load = 10.0 * f64::from(percent);
        let trial = SearchSlice { load, offered: 1000, received: 1000 - lost, ..SearchSlice::default() };
        SearchSlice { percent: Some(percent), trial: Some(1), outcome, ..trial }
    }

    fn run_with(block: u32, family: Family, slices: Vec<SearchSlice>) -> RunRecord {
        let mut run = run(block, &cell(family, 64), Metric::FrameLossRate, 0.1);
        run.spec.probe.pacing = Pacing::Search(SEARCH);
        run.host_reports = vec![HostReport { search: slices, ..empty_report(Role::Sender) }];
        run
    }

    #[test]
    fn trials_of_all_blocks_are_put_together_by_load() {
        let of_search = SearchSlice { percent: None, trial: None, ..trial(95, 500) };
        let invalid = SearchOutcome::Invalid("the sender waited".to_owned());
        let disturbed = SearchSlice { outcome: invalid, ..trial(100, 900) };
        let mut runs = vec![run_with(0, Family::Ipv4, vec![of_search, disturbed])];
        for block in 1..=20 {
            let slices = vec![trial(100, 200 + u64::from(block)), trial(90, 0)];
            runs.push(run_with(block, Family::Ipv4, slices));
        }
        let cells = [Family::Ipv4, Family::Ipv6].map(|family| cell(family, 64));
        let found = collect_frame_losses(&cells, &runs).unwrap();
        let [arm] = &found.arms[..] else { panic!("{found:?}") };
        let [highest, lower] = &arm.points[..] else { panic!("{arm:?}") };
        assert_eq!((highest.percent, highest.load, highest.n), (100, 1000.0, 20));
        assert_eq!((highest.p1, highest.median, highest.p99), (0.201, 0.21, 0.22));
        assert_eq!((lower.percent, lower.median, lower.n), (90, 0.0, 20));
        assert_eq!(found.departures[0], "trials of 500 ms instead of 60 s");
        assert_eq!(collect_frame_losses(&cells[1..], &runs), None);
    }

    #[test]
    fn arms_of_one_trial_have_one_table() {
        let cells = [Family::Ipv4, Family::Ipv6].map(|family| cell(family, 64));
        for (starts, groups) in [([5, 5], vec![0, 0]), ([5, 6], vec![0, 1])] {
            let mut runs = Vec::new();
            for (family, start) in [Family::Ipv4, Family::Ipv6].into_iter().zip(starts) {
                for block in 0..2 {
                    let started_unix_ns = start + 10 * u64::from(block);
                    let run = run_with(block, family, vec![trial(100, 200)]);
                    runs.push(RunRecord { started_unix_ns, ..run });
                }
            }
            let found = collect_frame_losses(&cells, &runs).unwrap();
            let numbers: Vec<usize> = found.arms.iter().map(|arm| arm.group).collect();
            assert_eq!(numbers, groups);
            let turns = found.departures.iter().any(|departure| departure.contains("take turns"));
            assert_eq!(turns, groups == [0, 0], "{:?}", found.departures);
            let own = found.departures.iter().any(|departure| departure.contains("an arm's own link"));
            assert_ne!(own, turns, "{:?}", found.departures);
        }
    }

    #[test]
    fn hostile_trials_say_nothing() {
        let mut slices = vec![trial(0, 1), trial(101, 1), trial(u32::MAX, 1)];
        slices.push(SearchSlice { load: f64::NAN, ..trial(50, 1) });
        slices.push(SearchSlice { offered: 0, ..trial(50, 0) });
        let found = collect_frame_losses(&[cell(Family::Ipv4, 64)], &[run_with(0, Family::Ipv4, slices)]);
        let found = found.unwrap();
        assert!(found.arms.is_empty(), "{found:?}");
        assert_eq!(found.departures[0], "0 trials instead of at least 20");
    }
}
