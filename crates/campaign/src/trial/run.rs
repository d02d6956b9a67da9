//! Trials on a rig, from the plan to their runs.

use crate::CampaignError;
use crate::generator;
use crate::rig::Rig;
use crate::rig::host_pair::HostPair;
use crate::trial::clock_offset::ClockOffset;
use crate::trial::evidence::Evidence;
use crate::trial::figures::figures;
use crate::trial::spec::{spec, trial_seed};
use stacklab_model::{ArmSchedule, CpuScope, Direction, Generator, RunRecord, Trial, TrialSpec};
use stacklab_study::{Plan, Study};
use stacklab_testbed::TestbedError;
use stacklab_traffic::host::other_load::LoadSample;
use stacklab_traffic::protocol::AgentError;
use stacklab_trial::results::interleaved::{self, Arm};
use stacklab_trial::{Collected, Path, PathLimits, SlotArm, SlotLengths, collect_in_slots};

/// Runs one trial, or the arms of an interleaved trial together, on the rig of all of them or on one for each. Gives a
/// run for each.
///
/// # Errors
/// When a host is gone, or the user interrupts.
pub(crate) fn run(
    rigs: &mut [&mut dyn Rig],
    study: &Study,
    plan: &Plan,
    trials: &[Trial],
) -> Result<Vec<RunRecord>, CampaignError> {
    let seed = plan.seed();
    let runs = match plan.schedule(trials) {
        ArmSchedule::Alone => {
            let runs = trials.iter().map(|trial| alone(&mut *rigs[0], study, seed, trial));
            runs.collect::<Result<_, _>>()?
        }
        schedule @ ArmSchedule::TokenPassing(_) => in_turns(&mut *rigs[0], study, seed, schedule, trials)?,
        schedule @ ArmSchedule::TimeSlots(_) => in_slots(rigs, study, seed, schedule, trials)?,
    };
    if !runs.iter().all(RunRecord::is_valid) {
        // A host that is gone takes the link down and distorts the other host's report. The trial then gives no run,
        // and can be repeated.
        rigs.iter_mut().try_for_each(|rig| rig.ends_mut().ensure_alive())?;
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
    fn new(
        rig: &mut dyn Rig,
        study: &Study,
        seed: u64,
        schedule: ArmSchedule,
        trial: &'a Trial,
    ) -> Result<Self, CampaignError> {
        let cell = &trial.cell;
        let path = rig.path(&study.link_config, cell);
        let pinning = rig.pinning(cell, trial.probe);
        let mut spec = spec(study, seed, trial, &rig.ends().systems, rig.cpu_scope(cell), pinning);
        configured(rig, |rig| rig.prepare(cell).and_then(|()| rig.pin(pinning)))?;
        let offset = rig.ends_mut().clock_offset(&path, &spec)?;
        spec.clock_offset_ns = offset.offset_ns();
        if !schedule.is_alone() {
            (spec.schedule, spec.bucket) = (schedule, rig.bucket(&study.link_config, cell));
        }
        Ok(Prepared { trial, path, spec, offset })
    }

    /// The run of the trial.
    fn run(self, rig: &mut dyn Rig, evidence: Evidence) -> Result<RunRecord, CampaignError> {
        let Prepared { trial, path, spec, offset } = self;
        let clocks = rig.ends_mut().clock_sync(offset, &path, &spec)?;
        let direction = Direction::of(&trial.cell);
        Ok(figures(trial, spec, &path, direction, Evidence { clocks, ..evidence }))
    }
}

/// Configures a rig. Where that fails because a host has died, the dead host is the error: its namespace is gone with
/// it.
fn configured(
    rig: &mut dyn Rig,
    configure: impl FnOnce(&mut dyn Rig) -> Result<(), TestbedError>,
) -> Result<(), CampaignError> {
    if let Err(error) = configure(rig) {
        rig.ends_mut().ensure_alive()?;
        return Err(error.into());
    }
    Ok(())
}

/// One trial by itself.
fn alone(rig: &mut dyn Rig, study: &Study, seed: u64, trial: &Trial) -> Result<RunRecord, CampaignError> {
    let prepared = Prepared::new(rig, study, seed, ArmSchedule::Alone, trial)?;
    if Generator::of(&trial.cell).is_other() {
        let seed = trial_seed(seed, trial);
        let evidence = generator::run(rig, &trial.cell, &prepared.path, &prepared.spec, seed)?;
        return prepared.run(rig, evidence);
    }
    let evidence = observed(rig, trial_seed(seed, trial), |ends| {
        let collected = ends.collect(&prepared.path, &prepared.spec, Direction::of(&trial.cell));
        collected.map(|collected| vec![collected])
    })?;
    let evidence = evidence.into_iter().next().expect("each trial has its evidence");
    prepared.run(rig, evidence)
}

/// The arms of an interleaved trial on one rig.
fn in_turns(
    rig: &mut dyn Rig,
    study: &Study,
    seed: u64,
    schedule: ArmSchedule,
    trials: &[Trial],
) -> Result<Vec<RunRecord>, CampaignError> {
    let arms = trials.iter().map(|trial| Prepared::new(rig, study, seed, schedule, trial));
    let arms = arms.collect::<Result<Vec<_>, CampaignError>>()?;
    let Some(first) = arms.first() else { return Ok(Vec::new()) };
    let order = seed ^ u64::from(first.spec.token);
    let asked: Vec<(&Path, &TrialSpec)> = arms.iter().map(|arm| (&arm.path, &arm.spec)).collect();
    let direction = Direction::of(&first.trial.cell);
    let mut evidence =
        observed(rig, trial_seed(seed, first.trial), |ends| ends.collect_in_turns(&asked, direction, order))?;
    if rig.cpu_scope(&first.trial.cell) == CpuScope::Outside {
        evidence.iter_mut().for_each(without_cpu);
    }
    let joint = interleaved::joint_figures(&reported(&arms, &evidence));
    for (arm, joint) in evidence.iter_mut().zip(joint) {
        arm.joint = joint;
    }
    arms.into_iter().zip(evidence).map(|(arm, evidence)| arm.run(rig, evidence)).collect()
}

/// Leaves out what a guest that does not count all of its CPU time says of it. Its processes worked for all arms.
fn without_cpu(evidence: &mut Evidence) {
    for report in evidence.collected.reports.iter_mut().flatten().flatten() {
        report.cpu = None;
        report.slices.iter_mut().for_each(|slice| slice.cpu_ns = None);
    }
}

/// The arms of an interleaved trial, each on a separate rig.
fn in_slots(
    rigs: &mut [&mut dyn Rig],
    study: &Study,
    seed: u64,
    schedule: ArmSchedule,
    trials: &[Trial],
) -> Result<Vec<RunRecord>, CampaignError> {
    let arms =
        rigs.iter_mut().zip(trials).map(|(rig, trial)| Prepared::new(*rig, study, seed, schedule, trial));
    let mut arms = arms.collect::<Result<Vec<_>, CampaignError>>()?;
    let order = seed ^ u64::from(arms[0].spec.token);
    let asked: Vec<(&Path, &TrialSpec)> = arms.iter().map(|arm| (&arm.path, &arm.spec)).collect();
    let rate = study.topology.slowest(&study.link_config);
    let wake_up_ns = rigs.iter().map(|rig| rig.ends().wake_up_ns()).max().unwrap_or(0);
    let limits = PathLimits { rate, round_trip_ns: study.topology.round_trip_ns(), wake_up_ns };
    let lengths = SlotLengths::of(&asked, limits, schedule.slice_ns());
    let schedule = ArmSchedule::TimeSlots(Some(lengths.slice_ns));
    arms.iter_mut().for_each(|arm| arm.spec.schedule = schedule);
    let direction = Direction::of(&trials[0].cell);
    rigs.iter_mut().try_for_each(|rig| rig.begin(trial_seed(seed, &trials[0])))?;
    let before = rigs.iter().any(|rig| rig.is_here()).then(LoadSample::now);
    let asked = rigs.iter_mut().zip(&arms).map(|(rig, arm)| SlotArm {
        agents: rig.ends_mut().agents(),
        path: &arm.path,
        spec: &arm.spec,
    });
    let collected = collect_in_slots(asked.collect(), direction, order, lengths);
    let other_load = before.map(|before| before.until(&LoadSample::now()));
    let mut evidence = Vec::new();
    for (rig, collected) in rigs.iter_mut().zip(collected?) {
        evidence.extend(rig.end(Ok(vec![collected]))?);
    }
    let joint = interleaved::joint_figures(&reported(&arms, &evidence));
    for (arm, joint) in evidence.iter_mut().zip(joint) {
        // The processes of a guest that holds all testbeds worked for all arms.
        arm.guest_cpu = [None, None];
        (arm.joint, arm.other_load) = (joint, other_load.clone());
    }
    let runs = arms.into_iter().zip(evidence).zip(rigs.iter_mut());
    runs.map(|((arm, evidence), rig)| arm.run(*rig, evidence)).collect()
}

/// The evidence of the trials that `collect` runs.
fn observed(
    rig: &mut dyn Rig,
    seed: u64,
    collect: impl FnOnce(&mut HostPair) -> Result<Vec<Collected>, AgentError>,
) -> Result<Vec<Evidence>, CampaignError> {
    rig.begin(seed)?;
    let before = rig.is_here().then(LoadSample::now);
    let collected = collect(rig.ends_mut());
    let other_load = before.map(|before| before.until(&LoadSample::now()));
    let mut evidence = rig.end(collected)?;
    evidence.iter_mut().for_each(|arm| arm.other_load.clone_from(&other_load));
    Ok(evidence)
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
