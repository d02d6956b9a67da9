//! Streams at the load that a search of the same block found for their arm.

use crate::trial::spec::spec_without_rig;
use stacklab_model::{Cell, Drops, Metric, Pacing, Probe, RunRecord, RunStatus, Trial, Value, Values};
use stacklab_study::Study;
use stacklab_traffic::host::now_unix_ns;

/// The load of each trial that has its arm's lower bound, messages per second. An error is the reason why one has none.
pub(super) fn find_loads(
    study: &Study,
    trials: &[Trial],
    earlier: &[RunRecord],
) -> Result<Vec<Option<f64>>, String> {
    let mut loads = Vec::new();
    for trial in trials {
        let is_searched = study.probe(trial.probe).is_some_and(|spec| spec.pacing == Pacing::Searched);
        loads.push(if is_searched { Some(find_load(&trial.cell, earlier)?) } else { None });
    }
    Ok(loads)
}

/// An arm against itself may have no search in this block: the other one's load is its own.
fn find_load(cell: &Cell, earlier: &[RunRecord]) -> Result<f64, String> {
    let searches = earlier.iter().filter(|run| run.trial.probe == Probe::Search);
    let mut of_arm: Vec<&RunRecord> = searches.filter(|run| is_same(&run.trial.cell, cell)).collect();
    of_arm.sort_by_key(|run| run.trial.cell != *cell);
    let mut reason = "its search was not run in this block".to_owned();
    for run in of_arm {
        match run.values.get(&Metric::LowerBound) {
            Some(Value::Measured(load)) if run.is_valid() => return Ok(*load),
            Some(Value::Missing(why)) => reason = format!("its search found no lower bound: {why}"),
            _ => reason = "its search of this block is invalid".to_owned(),
        }
    }
    Err(reason)
}

fn is_same(one: &Cell, other: &Cell) -> bool {
    without_replica(one) == without_replica(other)
}

fn without_replica(cell: &Cell) -> Cell {
    Cell { replica: String::new(), ..cell.clone() }
}

/// Valid runs without figures: nothing is sent at an unknown load.
pub(super) fn make_runs_without_load(study: &Study, trials: &[Trial], reason: &str) -> Vec<RunRecord> {
    let mut runs = Vec::new();
    for trial in trials {
        let spec = spec_without_rig(study, 0, trial);
        let missing = Value::Missing(reason.to_owned());
        runs.push(RunRecord {
            trial: trial.clone(),
            started_unix_ns: now_unix_ns(),
            wall_ns: 0,
            status: RunStatus::Valid,
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
        let cell = &none.trial.cell;
        assert_eq!(find_load(cell, &[]).unwrap_err(), "its search was not run in this block");
        let reason = find_load(cell, std::slice::from_ref(&none)).unwrap_err();
        assert_eq!(reason, "its search found no lower bound: nothing arrived");
        let invalid = RunRecord {
            status: RunStatus::Invalid(vec!["x".to_owned()]),
            ..run(Family::Ipv4, "", Value::Measured(400.0))
        };
        assert_eq!(find_load(cell, &[invalid]).unwrap_err(), "its search of this block is invalid");
    }
}
