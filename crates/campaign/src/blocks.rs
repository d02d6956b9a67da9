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

/// Measures until the campaign has ended; `run` gives a run for each trial that it is given together. Runs that the
/// record already holds are not repeated. What was committed before an error is kept.
pub fn measure(
    study: &Study,
    plan: &Plan,
    mut run: impl FnMut(&[Trial]) -> Result<Vec<RunRecord>, CampaignError>,
    record: &mut Record,
    mut progress: Progress,
) -> Result<(), CampaignError> {
    let mut kept: HashMap<u32, Vec<RunRecord>> = HashMap::new();
    for run in read_runs(record)? {
        kept.entry(run.trial.block).or_default().push(run);
    }
    let mut schedule = Schedule::new(study, plan);
    loop {
        let trials = schedule.trials();
        if trials.is_empty() {
            return Ok(());
        }
        progress.block(study, &schedule, &trials);
        // The runs of this block. Those before are in the record: a long campaign does not keep them in memory.
        let mut runs = kept.remove(&schedule.block).unwrap_or_default();
        let mut missing = Vec::new();
        for trial in trials {
            match runs.iter().find(|run| run.trial.position == trial.position) {
                Some(run) if (&run.trial.cell, run.trial.probe) == (&trial.cell, trial.probe) => {
                    progress.kept(run);
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
        for arms in plan.together(&missing) {
            if schedule.is_time_up(&runs) {
                break;
            }
            progress.trial(&arms[0]);
            let made = run(arms).map_err(|error| match error {
                CampaignError::Agent(AgentError::Interrupted) => {
                    CampaignError::Interrupted(record.path().to_owned())
                }
                failure => failure,
            })?;
            record.put_runs(&made)?;
            for mut run in made {
                run.host_reports = Vec::new();
                progress.done(&run);
                runs.push(run);
            }
        }
        schedule.advance(&runs);
        if let Some(warning) = schedule.warn_of_budget() {
            progress.say(&format!("stacklab: {warning}"));
        }
    }
}
