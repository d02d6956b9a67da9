//! A campaign: trials in the plan's order, each stored when it ends, until the stopping rule is met.

use crate::CampaignError;
use crate::progress::Progress;
use crate::schedule::{Schedule, key};
use stacklab_model::{RunRecord, Trial};
use stacklab_store::Record;
use stacklab_study::{Plan, Study};
use stacklab_traffic::protocol::AgentError;
use std::collections::HashMap;
use std::path::Path;

/// The reason why a record cannot be gone on with.
fn another_plan(path: &Path, trial: &Trial) -> String {
    format!(
        "{} was recorded with a different plan (its run here is not `{trial}`): resume it with the version that wrote it, or start a new record",
        path.display()
    )
}

/// Measures until the campaign has ended; `run` gives a run for each trial that it is given together. Runs that the
/// record already holds are not repeated.
///
/// # Errors
/// When the user interrupts, a host is gone or the record cannot be written. What was committed is kept.
pub fn measure(
    study: &Study,
    plan: &Plan,
    mut run: impl FnMut(&[Trial]) -> Result<Vec<RunRecord>, CampaignError>,
    record: &mut Record,
    progress: &mut Progress,
) -> Result<(), CampaignError> {
    let mut runs = record.runs()?;
    let kept: HashMap<(u32, u32), usize> =
        runs.iter().enumerate().map(|(place, run)| (key(run), place)).collect();
    let mut schedule = Schedule::new(study, plan);
    loop {
        let trials = schedule.trials();
        if trials.is_empty() {
            return Ok(());
        }
        progress.block(study, &schedule, &trials);
        let mut missing = Vec::new();
        for trial in trials {
            match kept.get(&(trial.block, trial.position)) {
                Some(place)
                    if (&runs[*place].trial.cell, runs[*place].trial.probe) == (&trial.cell, trial.probe) =>
                {
                    progress.kept(&runs[*place]);
                }
                Some(_) => return Err(CampaignError::Usage(another_plan(record.path(), &trial))),
                None => missing.push(trial),
            }
        }
        for arms in plan.together(&missing) {
            progress.trial(&arms[0]);
            let made = run(arms).map_err(|error| match error {
                CampaignError::Agent(AgentError::Interrupted) => {
                    CampaignError::Interrupted(record.path().to_owned())
                }
                failure => failure,
            })?;
            record.put_runs(&made)?;
            for mut run in made {
                // The host reports are in the record; a long campaign does not keep them in memory.
                run.host_reports = Vec::new();
                progress.done(&run);
                runs.push(run);
            }
        }
        schedule.advance(&runs);
    }
}
