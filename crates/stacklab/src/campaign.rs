//! A campaign: trials in the plan's order, each stored when it ends, until the stopping rule is content.

use crate::course::{Course, key};
use crate::failure::Failure;
use crate::lab::Lab;
use crate::progress::Progress;
use crate::remote::Machine;
use crate::rows::Rows;
use stacklab_model::{CpuScope, RunRecord, Systems, Trial};
use stacklab_store::{HostRow, Record};
use stacklab_study::{Plan, Study};
use stacklab_testbed::GuestLab;
use stacklab_traffic::protocol::AgentError;
use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

/// The labs of a study: one for each pair of systems and for each set of services, or for each mechanism between
/// routers and pair of systems; all up until the campaign ends, so that blocks hold all of them.
pub struct Labs(Vec<Lab>, Option<GuestLab>);

impl Labs {
    /// Builds them all, but for the machines that were reached. Call it from the main thread.
    ///
    /// # Errors
    /// The first that cannot be had; those before it are gone again.
    pub fn build(
        study: &Study,
        mut reached: Vec<(Systems, [Machine; 2])>,
        rows: Option<Rows>,
        interrupted: &'static AtomicBool,
    ) -> Result<Self, Failure> {
        let mut labs = Labs(Vec::new(), None);
        if let Some(rows) = rows {
            rows.build(&mut labs.0, &mut labs.1, interrupted)?;
            return Ok(labs);
        }
        for which in study.labs() {
            let place = reached.iter().position(|(known, _)| *known == which.0);
            let machines = place.map(|place| reached.swap_remove(place).1);
            labs.0.push(Lab::build(study, &which, machines, interrupted)?);
        }
        labs.0.iter_mut().try_for_each(|lab| lab.try_processors(study))?;
        Ok(labs)
    }

    /// The places in a sentence each.
    pub fn describe(&self, study: &Study) -> String {
        let said: Vec<String> = self.0.iter().map(|lab| lab.describe(&study.link_config)).collect();
        said.join(if self.0.iter().any(|lab| lab.is_row()) { "\n" } else { "; " })
    }

    /// Each host's facts.
    pub fn hosts(&mut self) -> Result<Vec<HostRow>, Failure> {
        let mut rows = Vec::new();
        for lab in &mut self.0 {
            rows.extend(lab.hosts()?);
        }
        Ok(rows)
    }

    /// Whose CPU the hosts' CPU figures are in all of a study's runs.
    pub fn cpu_scope(&self, study: &Study) -> CpuScope {
        let mut scopes = self.0.iter().map(|lab| lab.cpu_scope(study));
        let first = scopes.next().unwrap_or(CpuScope::Shared);
        if scopes.all(|scope| scope == first) { first } else { CpuScope::Various }
    }

    fn measure(&mut self, study: &Study, seed: u64, trial: &Trial) -> Result<RunRecord, Failure> {
        let lab = self.0.iter_mut().find(|lab| lab.is_for(&trial.cell));
        lab.expect("a lab was built for each of the study's cells").measure(study, seed, trial)
    }
}

/// Measures until the campaign has ended; runs that the record holds already are not measured again.
///
/// # Errors
/// When the user interrupts, a host is gone or the record cannot be written; what was committed is kept.
pub fn measure(
    study: &Study,
    plan: &Plan,
    labs: &mut Labs,
    record: &mut Record,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let mut runs = record.runs()?;
    let kept: HashMap<(u32, u32), usize> =
        runs.iter().enumerate().map(|(place, run)| (key(run), place)).collect();
    let mut course = Course::new(study, plan);
    loop {
        let trials = course.trials();
        if trials.is_empty() {
            return Ok(());
        }
        progress.block(study, &course, &trials);
        for trial in &trials {
            if let Some(place) = kept.get(&(trial.block, trial.position)) {
                progress.kept(&runs[*place]);
                continue;
            }
            progress.trial(trial);
            let mut run = labs.measure(study, plan.seed(), trial).map_err(|error| match error {
                Failure::Agent(AgentError::Interrupted) => Failure::Interrupted(record.path().to_owned()),
                failure => failure,
            })?;
            record.put_run(&run)?;
            // What the hosts saw is in the record; a long campaign need not carry it along.
            run.host_reports = Vec::new();
            progress.done(&run);
            runs.push(run);
        }
        course.advance(&runs);
    }
}
