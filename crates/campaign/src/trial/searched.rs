//! Streams at the load that a search of the same block found for their arm.

use crate::trial::spec::spec_without_rig;
use stacklab_model::{Cell, Drops, Metric, Pacing, Probe, RunRecord, RunStatus, Trial, Value, Values};
use stacklab_study::Study;
use stacklab_traffic::host::now_unix_ns;

/// Why a stream has no load.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NoLoad {
    reason: String,
    /// Whether the search itself was not as planned.
    is_invalid: bool,
}

/// The load of each trial that has its arm's lower bound, messages per second. An error says of which arm it is.
pub(super) fn find_loads(
    study: &Study,
    trials: &[Trial],
    earlier: &[RunRecord],
) -> Result<Vec<Option<f64>>, NoLoad> {
    let mut loads = Vec::new();
    for trial in trials {
        let is_searched = study.probe(trial.probe).is_some_and(|spec| spec.pacing == Pacing::Searched);
        loads.push(if is_searched { Some(find_load(&trial.cell, earlier)?) } else { None });
    }
    Ok(loads)
}

/// An arm against itself may have no search in this block: the other one's load is its own.
fn find_load(cell: &Cell, earlier: &[RunRecord]) -> Result<f64, NoLoad> {
    let searches = earlier.iter().filter(|run| run.trial.probe == Probe::Search);
    let mut of_arm: Vec<&RunRecord> = searches.filter(|run| is_same(&run.trial.cell, cell)).collect();
    of_arm.sort_by_key(|run| run.trial.cell != *cell);
    let mut why = "was not run in this block".to_owned();
    let mut is_invalid = false;
    for run in of_arm {
        is_invalid = !run.is_valid();
        match run.values.get(&Metric::LowerBound) {
            _ if is_invalid => why = "is invalid in this block".to_owned(),
            Some(Value::Measured(load)) => return Ok(*load),
            Some(Value::Missing(reason)) => why = format!("found no lower bound: {reason}"),
            Some(Value::Invalid(_)) | None => why = "has no lower bound".to_owned(),
        }
    }
    Err(NoLoad { reason: format!("the search of {} {why}", cell.label()), is_invalid })
}

fn is_same(one: &Cell, other: &Cell) -> bool {
    without_replica(one) == without_replica(other)
}

fn without_replica(cell: &Cell) -> Cell {
    Cell { replica: String::new(), ..cell.clone() }
}

/// Runs without figures: nothing is sent at an unknown load. They are as valid as the search.
pub(super) fn make_runs_without_load(study: &Study, trials: &[Trial], no_load: &NoLoad) -> Vec<RunRecord> {
    let NoLoad { reason, is_invalid } = no_load;
    let reasons = if *is_invalid { vec![reason.clone()] } else { Vec::new() };
    let mut runs = Vec::new();
    for trial in trials {
        let spec = spec_without_rig(study, 0, trial);
        let missing = Value::Missing(reason.clone());
        runs.push(RunRecord {
            trial: trial.clone(),
            started_unix_ns: now_unix_ns(),
            wall_ns: 0,
            status: RunStatus::of(reasons.clone()),
            values: spec.probe.metrics.iter().map(|metric| (*metric, missing.clone())).collect::<Values>(),
            drops: Drops::default(),
            host_reports: Vec::new(),
            warnings: Vec::new(),
            spec,
        });
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::{Family, SizeOf, Transport};

    fn run(family: Family, replica: &str, value: Value) -> RunRecord {
        let mut cell = Cell::new(family, Transport::Udp, SizeOf::Payload, 64);
        cell.replica = replica.to_owned();
        let trial = Trial { block: 0, position: 0, cell, probe: Probe::Search };
        RunRecord::with_value(trial, Metric::LowerBound, value)
    }

    #[test]
    fn load_is_that_of_the_same_arm() {
        let earlier = [
            run(Family::Ipv6, "", Value::Measured(600.0)),
            run(Family::Ipv4, "", Value::Measured(400.0)),
            run(Family::Ipv4, "b", Value::Measured(401.0)),
        ];
        let of_other_arm = run(Family::Ipv6, "a", Value::Measured(0.0));
        for (run, load) in earlier.iter().zip([600.0, 400.0, 401.0]).chain([(&of_other_arm, 600.0)]) {
            assert_eq!(find_load(&run.trial.cell, &earlier), Ok(load));
        }
    }

    #[test]
    fn says_why_there_is_no_load() {
        let none = run(Family::Ipv4, "", Value::Missing("nothing arrived".to_owned()));
        let invalid = RunRecord {
            status: RunStatus::Invalid(vec!["x".to_owned()]),
            ..run(Family::Ipv4, "", Value::Missing("y".to_owned()))
        };
        for (earlier, why, is_invalid) in [
            (vec![], "was not run in this block", false),
            (vec![none.clone()], "found no lower bound: nothing arrived", false),
            (vec![invalid], "is invalid in this block", true),
        ] {
            let reason = format!("the search of {} {why}", none.trial.cell.label());
            assert_eq!(find_load(&none.trial.cell, &earlier), Err(NoLoad { reason, is_invalid }));
        }
    }
}
