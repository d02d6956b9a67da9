//! An arm of a trial that is ready to be measured, and what becomes of it.

use crate::CampaignError;
use crate::rig::Rig;
use crate::trial::Evidence;
use crate::trial::clock::ClockSync;
use crate::trial::figures::figures;
use crate::trial::spec::spec;
use stacklab_model::{ArmSchedule, Direction, RunRecord, Trial, TrialSpec};
use stacklab_study::Study;
use stacklab_trial::Path;

/// The rig of an arm: that of all of them, or its own.
pub(super) fn find_rig<'r>(rigs: &'r mut [&mut Rig], place: usize) -> &'r mut Rig {
    let last = rigs.len() - 1;
    rigs[place.min(last)]
}

pub(super) struct Prepared<'a> {
    pub(super) trial: &'a Trial,
    pub(super) path: Path,
    pub(super) spec: TrialSpec,
    offset: ClockSync,
}

impl<'a> Prepared<'a> {
    pub(super) fn new(
        rig: &mut Rig,
        study: &Study,
        seed: u64,
        schedule: ArmSchedule,
        trial: &'a Trial,
    ) -> Result<Self, CampaignError> {
        let cell = &trial.cell;
        let path = rig.network.path(&study.link_config, cell);
        let affinity = rig.affinity(cell, trial.probe);
        let mut spec = spec(study, seed, trial, rig, affinity);
        if let Err(error) = rig.network.configure(cell, affinity) {
            // If a host has died, that is the error: its namespace is gone with it.
            rig.ends.ensure_alive()?;
            return Err(error.into());
        }
        let offset = rig.ends.clock_offset(&path, &spec)?;
        spec.clock_offset_ns = offset.offset_ns();
        if !schedule.is_alone() {
            (spec.schedule, spec.bucket) = (schedule, rig.bucket(cell));
        }
        Ok(Prepared { trial, path, spec, offset })
    }

    pub(super) fn run(self, rig: &mut Rig, evidence: Evidence) -> Result<RunRecord, CampaignError> {
        let Prepared { trial, path, spec, offset } = self;
        let clocks = offset.with_after(|| rig.ends.measure_offset(&path, &spec))?;
        let direction = Direction::of(&trial.cell);
        Ok(figures(trial, spec, &path, direction, Evidence { clocks, ..evidence }))
    }
}
