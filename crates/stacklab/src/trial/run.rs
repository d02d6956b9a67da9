//! Trials on a rig, from the plan to their runs.

use crate::failure::Failure;
use crate::rig::Rig;
use crate::trial::clock_offset::ClockOffset;
use crate::trial::evidence::Evidence;
use crate::trial::figures::figures;
use crate::trial::spec::spec;
use stacklab_model::{Direction, RunRecord, Trial, TrialSpec};
use stacklab_study::Study;
use stacklab_traffic::results::interleaved::{self, Arm};
use stacklab_traffic::trial::Path;

/// Runs one trial, or the arms of an interleaved trial together. Gives a run for each.
///
/// # Errors
/// When a host is gone, or the user interrupts.
pub fn run(rig: &mut dyn Rig, study: &Study, seed: u64, trials: &[Trial]) -> Result<Vec<RunRecord>, Failure> {
    let runs = match trials {
        [trial] => vec![alone(rig, study, seed, trial)?],
        arms => together(rig, study, seed, arms)?,
    };
    if !runs.iter().all(RunRecord::is_valid) {
        // A host that is gone takes the link down and distorts the other host's report. The trial then gives no run,
        // and can be repeated.
        rig.ends_mut().see_alive()?;
    }
    Ok(runs)
}

/// A trial and what it needs before it begins.
struct Prepared<'a> {
    trial: &'a Trial,
    path: Path,
    spec: TrialSpec,
    offset: ClockOffset,
}

impl<'a> Prepared<'a> {
    /// Configures the path, and compares the clocks.
    fn new(rig: &mut dyn Rig, study: &Study, seed: u64, trial: &'a Trial) -> Result<Self, Failure> {
        let cell = &trial.cell;
        let path = rig.path(&study.link_config, cell);
        let pinning = rig.pinning(cell, trial.probe);
        let mut spec = spec(study, seed, trial, &rig.ends().systems, rig.cpu_scope(cell), pinning);
        rig.prepare(cell)?;
        rig.pin(pinning)?;
        let offset = rig.ends_mut().clock_offset(&path, &spec)?;
        spec.clock_offset_ns = offset.offset_ns();
        Ok(Prepared { trial, path, spec, offset })
    }

    /// The run of the trial.
    fn run(self, rig: &mut dyn Rig, evidence: Evidence) -> Result<RunRecord, Failure> {
        let Prepared { trial, path, spec, offset } = self;
        let clocks = rig.ends_mut().clock_sync(offset, &path, &spec)?;
        let direction = Direction::of(&trial.cell);
        Ok(figures(trial, spec, &path, direction, Evidence { clocks, ..evidence }))
    }
}

/// One trial by itself.
fn alone(rig: &mut dyn Rig, study: &Study, seed: u64, trial: &Trial) -> Result<RunRecord, Failure> {
    let prepared = Prepared::new(rig, study, seed, trial)?;
    rig.begin()?;
    let collected = rig.ends_mut().collect(&prepared.path, &prepared.spec, Direction::of(&trial.cell));
    let evidence = rig.end(collected.map(|collected| vec![collected]))?;
    let evidence = evidence.into_iter().next().expect("each trial has its evidence");
    prepared.run(rig, evidence)
}

/// The arms of an interleaved trial.
fn together(
    rig: &mut dyn Rig,
    study: &Study,
    seed: u64,
    trials: &[Trial],
) -> Result<Vec<RunRecord>, Failure> {
    let arms = trials.iter().map(|trial| Prepared::new(rig, study, seed, trial));
    let mut arms = arms.collect::<Result<Vec<_>, Failure>>()?;
    arms.iter_mut().for_each(|arm| arm.spec.slicing = study.slicing);
    let Some(first) = arms.first() else { return Ok(Vec::new()) };
    let order = seed ^ u64::from(first.spec.token);
    rig.begin()?;
    let asked: Vec<(&Path, &TrialSpec)> = arms.iter().map(|arm| (&arm.path, &arm.spec)).collect();
    let collected = rig.ends_mut().collect_in_turns(&asked, Direction::of(&first.trial.cell), order);
    let mut evidence = rig.end(collected)?;
    let owed = interleaved::together(&reported(&arms, &evidence));
    for (arm, owed) in evidence.iter_mut().zip(owed) {
        arm.together = owed;
    }
    arms.into_iter().zip(evidence).map(|(arm, evidence)| arm.run(rig, evidence)).collect()
}

/// Path, spec and reports of each arm; none if an agent failed.
fn reported<'a>(arms: &'a [Prepared<'_>], evidence: &'a [Evidence]) -> Vec<Arm<'a>> {
    let reports =
        arms.iter().zip(evidence).map(|(arm, evidence)| match evidence.collected.reports.as_deref() {
            Ok([reports]) => Some((&arm.path, &arm.spec, reports)),
            _ => None,
        });
    reports.collect::<Option<Vec<_>>>().unwrap_or_default()
}
