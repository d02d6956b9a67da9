//! One trial on a rig, from the plan to its run.

use crate::failure::Failure;
use crate::rig::Rig;
use crate::trial::evidence::Evidence;
use crate::trial::figures::figures;
use crate::trial::spec::spec;
use stacklab_model::{Direction, RunRecord, Trial};
use stacklab_study::Study;

/// Runs one trial.
///
/// # Errors
/// When a host is gone, or the user interrupts.
pub fn run(rig: &mut dyn Rig, study: &Study, seed: u64, trial: &Trial) -> Result<RunRecord, Failure> {
    let cell = &trial.cell;
    let direction = Direction::of(cell);
    let path = rig.path(&study.link_config, cell);
    let pinning = rig.pinning(cell, trial.probe);
    let mut spec = spec(study, seed, trial, &rig.ends().systems, rig.cpu_scope(cell), pinning);
    rig.prepare(cell)?;
    rig.pin(pinning)?;
    let offset = rig.ends_mut().clock_offset(&path, &spec)?;
    spec.clock_offset_ns = offset.offset_ns();
    rig.begin()?;
    let collected = rig.ends_mut().collect(&path, &spec, direction);
    let evidence = rig.end(collected)?;
    let clocks = rig.ends_mut().clock_sync(offset, &path, &spec)?;
    let run = figures(trial, spec, &path, direction, Evidence { clocks, ..evidence });
    if !run.is_valid() {
        // A host that is gone takes the link down and distorts the other host's report. The trial then gives no run,
        // and can be repeated.
        rig.ends_mut().see_alive()?;
    }
    Ok(run)
}
