//! The blocks of a campaign, one after the other, until every question is settled or the rule ends them. The budget
//! ends them between two trials.

use crate::CampaignError;
use crate::progress::Progress;
use crate::runs::read_runs;
use crate::schedule::Schedule;
use stacklab_model::{RunRecord, Trial};
use stacklab_store::Record;
use stacklab_study::{Plan, Study};
use stacklab_traffic::protocol::AgentError;
use std::collections::HashMap;

/// Blocks that are measured if no run is valid: more would be as invalid, for the same reasons.
const MAX_INVALID_BLOCKS: u32 = 3;

/// Measures until the campaign has ended; `run` gives a run for each trial that it is given together, and is given the
/// runs of the same block so far. Runs that the
/// record already holds are not repeated. What was committed before an error is kept.
pub fn measure(
    study: &Study,
    plan: &Plan,
    mut run: impl FnMut(&[Trial], &[RunRecord]) -> Result<Vec<RunRecord>, CampaignError>,
    record: &mut Record,
    mut progress: Progress,
) -> Result<(), CampaignError> {
    let mut kept: HashMap<u32, Vec<RunRecord>> = HashMap::new();
    for run in read_runs(record)? {
        kept.entry(run.trial.block).or_default().push(run);
    }
    let mut schedule = Schedule::new(study, plan);
    progress.prepare(study);
    let mut is_any_valid = false;
    let mut blocks_measured = 0;
    loop {
        let trials = schedule.trials();
        if trials.is_empty() {
            if blocks_measured == 0 {
                progress.say("stacklab: the campaign had ended: nothing is left to measure");
            }
            return Ok(());
        }
        // The runs of this block. Those before are in the record: a long campaign does not keep them in memory.
        let mut runs = kept.remove(&schedule.block).unwrap_or_default();
        let all = trials.len() as u64;
        let missing = leave_out_kept(trials, &runs, record, &mut progress)?;
        if !missing.is_empty() {
            blocks_measured += 1;
            progress.block(study, &schedule, all, missing.len() as u64);
        }
        for arms in plan.together(&missing) {
            if schedule.is_time_up(&runs) {
                break;
            }
            progress.trial(&arms[0]);
            let made = run(arms, &runs).map_err(|error| name_record(error, record))?;
            record.put_runs(&made)?;
            for mut run in made {
                run.host_reports = Vec::new();
                progress.done(&run);
                runs.push(run);
            }
        }
        is_any_valid |= runs.iter().any(RunRecord::is_valid);
        if !is_any_valid && blocks_measured == MAX_INVALID_BLOCKS {
            progress.say(&format!(
                "stacklab: no run of {blocks_measured} blocks was valid: nothing more is measured"
            ));
            return Ok(());
        }
        schedule.advance(&runs);
        if !missing.is_empty()
            && let Some(warning) = schedule.warn_of_budget()
        {
            progress.say(&format!("stacklab: {warning}"));
        }
    }
}

/// An interruption names the record, so that the campaign can be resumed.
fn name_record(error: CampaignError, record: &Record) -> CampaignError {
    match error {
        CampaignError::Agent(AgentError::Interrupted) => CampaignError::Interrupted(record.path().to_owned()),
        failure => failure,
    }
}

/// The trials of a block without those whose runs are kept. An error if a run is of another plan.
fn leave_out_kept(
    trials: Vec<Trial>,
    runs: &[RunRecord],
    record: &Record,
    progress: &mut Progress,
) -> Result<Vec<Trial>, CampaignError> {
    let mut missing = Vec::new();
    for trial in trials {
        match runs.iter().find(|run| run.trial.position == trial.position) {
            Some(run) if (&run.trial.cell, run.trial.probe) == (&trial.cell, trial.probe) => {
                progress.count_kept_run(run);
            }
            Some(_) => {
                return Err(CampaignError::Usage(format!(
                    "{} was recorded with a different plan (its run here is not `{trial}`): resume it with the version that wrote it, or start a new record",
                    record.path().display()
                )));
            }
            None => missing.push(trial),
        }
    }
    Ok(missing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::StudySource;
    use stacklab_model::{Metric, RunStatus, Value};

    fn runs_of(trials: &[Trial], valid_from: u32) -> Vec<RunRecord> {
        let mut runs = Vec::new();
        for trial in trials {
            let is_valid = trial.block >= valid_from;
            let reasons = if is_valid { Vec::new() } else { vec!["no such module".to_owned()] };
            let run = RunRecord::with_value(trial.clone(), Metric::Throughput, Value::Measured(1.0));
            runs.push(RunRecord { status: RunStatus::of(reasons), ..run });
        }
        runs
    }

    /// How many blocks are measured whose runs are valid from a block on.
    fn blocks_of(valid_from: u32) -> u32 {
        let source = StudySource::read(Some("quickstart".as_ref())).unwrap();
        let study =
            source.check(Some("quick"), &["blocks.min=5".to_owned(), "blocks.max=5".to_owned()]).unwrap();
        let plan = Plan::new(&study, 1);
        let mut record = Record::in_memory("blocks", &source.campaign()).unwrap();
        measure(&study, &plan, |trials, _| Ok(runs_of(trials, valid_from)), &mut record, Progress::hidden())
            .unwrap();
        let runs = read_runs(&record).unwrap();
        1 + runs.iter().map(|run| run.trial.block).max().unwrap()
    }

    #[test]
    fn nothing_is_measured_on_where_nothing_is_valid() {
        assert_eq!(blocks_of(u32::MAX), MAX_INVALID_BLOCKS);
        assert_eq!(blocks_of(2), 5);
    }
}
