//! Trials on a rig, from the plan to their runs.

use crate::CampaignError;
use crate::generator;
use crate::program;
use crate::rig::Rig;
use crate::trial::other_load::LoadSample;
use crate::trial::prepared::{Prepared, find_rig};
use crate::trial::search;
use crate::trial::searched::{find_loads, make_runs_without_load};
use crate::trial::sockets;
use crate::trial::spec::{spec_without_rig, trial_seed};
use crate::trial::{Evidence, SingleRun};
use stacklab_model::{
    ArmSchedule, CpuScope, Direction, Generator, Length, Pacing, Probe, RunRecord, Trial, TrialSpec,
};
use stacklab_study::{Plan, Study};
use stacklab_traffic::protocol::AgentError;
use stacklab_traffic::timing::{SLACK, longest};
use stacklab_trial::results::interleaved;
use stacklab_trial::validate::ArmReports;
use stacklab_trial::{Collected, Path, PathLimits, SlotLengths, collect, collect_arms};
use std::time::Instant;

/// The time of an interrupted measurement is rounded to it.
const ROUNDED_NS: u64 = 1_000_000;

/// Runs one trial, or the arms of an interleaved trial together, on the rig of all of them or on one for each. Gives a
/// run for each. `earlier` are the runs of the same block so far.
pub(crate) fn run(
    rigs: &mut [&mut Rig],
    study: &Study,
    plan: &Plan,
    trials: &[Trial],
    earlier: &[RunRecord],
) -> Result<Vec<RunRecord>, CampaignError> {
    if trials.first().is_some_and(|trial| trial.probe == Probe::Search) {
        return search::run(rigs, study, plan.seed(), trials);
    }
    let loads = match find_loads(study, trials, earlier) {
        Ok(loads) => loads,
        Err(no_load) => return Ok(make_runs_without_load(study, trials, &no_load)),
    };
    let schedule = plan.schedule(trials);
    let mut arms = Vec::new();
    for (place, trial) in trials.iter().enumerate() {
        let mut arm = Prepared::new(find_rig(rigs, place), study, plan.seed(), schedule, trial)?;
        if let Some(load) = loads[place] {
            arm.spec.probe.pacing = Pacing::Schedule(load);
        }
        arms.push(arm);
    }
    let evidence = match schedule {
        ArmSchedule::Alone => vec![alone(rigs[0], study, plan.seed(), &arms[0])?],
        _ => run_interleaved_arms(rigs, study, plan.seed(), schedule, &mut arms)?,
    };
    let mut runs = Vec::new();
    for (place, (arm, evidence)) in arms.into_iter().zip(evidence).enumerate() {
        runs.push(arm.run(find_rig(rigs, place), evidence)?);
    }
    if !runs.iter().all(RunRecord::is_valid) {
        // A host that is gone takes the link down and distorts the other host's report. The trial then gives no run,
        // and can be repeated.
        rigs.iter_mut().try_for_each(|rig| rig.ends.ensure_alive())?;
    }
    Ok(runs)
}

/// Runs one trial by itself. What was sent until an interruption is the whole trial; one that had sent nothing is an
/// error. Both ends poll for `poll_ns` before they sleep.
pub(crate) fn run_once(
    rig: &mut Rig,
    study: &Study,
    seed: u64,
    trial: &Trial,
    poll_ns: u64,
) -> Result<SingleRun, CampaignError> {
    // On a path that loses much, each step may take long.
    let ends = Instant::now() + longest(&spec_without_rig(study, 0, trial)) + SLACK;
    for agent in rig.ends.agents() {
        agent.keep_figures();
        agent.must_end(ends);
    }
    let mut arm = Prepared::new(rig, study, seed, ArmSchedule::Alone, trial)?;
    arm.spec.poll_ns = poll_ns;
    let evidence = alone(rig, study, seed, &arm)?;
    let mut interrupted_after_ns = None;
    if rig.ends.is_interrupted() {
        let sent_ns = evidence.collected.sent_ns() / ROUNDED_NS * ROUNDED_NS;
        if sent_ns == 0 {
            return Err(AgentError::Interrupted.into());
        }
        arm.spec.probe.length = Length::Time(sent_ns);
        interrupted_after_ns = Some(sent_ns);
        for agent in rig.ends.agents() {
            agent.go_on();
        }
    }
    let run = arm.run(rig, evidence)?;
    if !run.is_valid() {
        rig.ends.ensure_alive()?;
    }
    Ok(SingleRun { run, interrupted_after_ns })
}

fn alone(rig: &mut Rig, study: &Study, seed: u64, arm: &Prepared<'_>) -> Result<Evidence, CampaignError> {
    let cell = &arm.trial.cell;
    let seed = trial_seed(seed, arm.trial);
    let mut generator = None;
    let mut of_program = None;
    let mut evidence = collect_evidence(&mut [rig], seed, |rigs| {
        if let Some(program) = study.program_of(cell) {
            let (collected, found) = program::run(rigs[0], program, &arm.path, &arm.spec)?;
            of_program = Some(found);
            return Ok(vec![collected]);
        }
        if arm.trial.probe == Probe::Sockets {
            return Ok(vec![sockets::hold(rigs[0], &arm.path, &arm.spec)?]);
        }
        if Generator::of(cell).is_other() {
            let (collected, found) = generator::run(rigs[0], cell, &arm.path, &arm.spec)?;
            generator = Some(found);
            return Ok(vec![collected]);
        }
        let [sender, receiver] = rigs[0].ends.agents();
        Ok(vec![collect(sender, receiver, &arm.path, &arm.spec, Direction::of(cell))?])
    })?;
    Ok(Evidence { generator, program: of_program, ..evidence.remove(0) })
}

fn run_interleaved_arms(
    rigs: &mut [&mut Rig],
    study: &Study,
    seed: u64,
    schedule: ArmSchedule,
    arms: &mut [Prepared<'_>],
) -> Result<Vec<Evidence>, CampaignError> {
    let first = arms[0].trial;
    let order = seed ^ u64::from(arms[0].spec.token);
    let direction = Direction::of(&first.cell);
    let seed = trial_seed(seed, first);
    let mut slots = None;
    if let ArmSchedule::TimeSlots(slice_ns) = schedule {
        let rate = study.topology.slowest(&study.link_config);
        let wake_up_ns = rigs.iter().map(|rig| rig.ends.wake_up_ns()).max().unwrap_or(0);
        let limits = PathLimits { rate, round_trip_ns: study.topology.round_trip_ns(), wake_up_ns };
        let lengths = SlotLengths::of(&list_specs(arms), limits, slice_ns);
        arms.iter_mut().for_each(|arm| arm.spec.schedule = ArmSchedule::TimeSlots(Some(lengths.slice_ns)));
        slots = Some(lengths);
    }
    let mut evidence = collect_evidence(rigs, seed, |rigs| {
        let mut pairs: Vec<_> = rigs.iter_mut().map(|rig| rig.ends.agents()).collect();
        Ok(collect_arms(&mut pairs, &list_specs(arms), direction, order, slots)?)
    })?;
    let is_shared = matches!(schedule, ArmSchedule::TokenPassing(_));
    let without_cpu = is_shared && rigs[0].cpu_scope(&first.cell) == CpuScope::Outside;
    for arm in &mut evidence {
        // The processes of guests worked for all arms.
        arm.guest_cpu = [None, None];
        for report in arm.collected.reports.iter_mut().flatten().flatten().filter(|_| without_cpu) {
            report.cpu = None;
            report.slices.iter_mut().for_each(|slice| slice.cpu_ns = None);
        }
    }
    let joint = interleaved::joint_figures(&list_arm_reports(arms, &evidence));
    evidence.iter_mut().zip(joint).for_each(|(arm, joint)| arm.joint = joint);
    Ok(evidence)
}

fn list_specs<'a>(arms: &'a [Prepared<'_>]) -> Vec<(&'a Path, &'a TrialSpec)> {
    arms.iter().map(|arm| (&arm.path, &arm.spec)).collect()
}

/// The evidence of the trials that `collect` runs: all on one rig, or one on each.
fn collect_evidence(
    rigs: &mut [&mut Rig],
    seed: u64,
    collect: impl FnOnce(&mut [&mut Rig]) -> Result<Vec<Collected>, CampaignError>,
) -> Result<Vec<Evidence>, CampaignError> {
    rigs.iter_mut().try_for_each(|rig| rig.begin(seed))?;
    let before = rigs.iter().any(|rig| rig.is.here).then(LoadSample::now);
    let collected = collect(rigs)?;
    let other_load = before.map(|before| before.until(&LoadSample::now()));
    let mut evidence: Vec<Evidence> = collected.into_iter().map(Evidence::of).collect();
    let of_rig = evidence.len() / rigs.len();
    for (rig, arms) in rigs.iter_mut().zip(evidence.chunks_mut(of_rig)) {
        rig.end(arms)?;
    }
    evidence.iter_mut().for_each(|arm| arm.other_load.clone_from(&other_load));
    Ok(evidence)
}

/// Path, spec and reports of each arm; none if an agent failed.
fn list_arm_reports<'a>(arms: &'a [Prepared<'_>], evidence: &'a [Evidence]) -> Vec<ArmReports<'a>> {
    let reports =
        arms.iter().zip(evidence).map(|(arm, evidence)| match evidence.collected.reports.as_deref() {
            Ok([reports]) => Some((&arm.path, &arm.spec, reports)),
            _ => None,
        });
    reports.collect::<Option<Vec<_>>>().unwrap_or_default()
}
