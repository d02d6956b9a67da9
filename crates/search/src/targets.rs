//! The way to a goal through coarser targets, and what the trials so far say of one.

use crate::class::{Class, Criterion, Trial, classify};
use crate::goal::Goal;
use crate::grid::LoadGrid;
use std::collections::BTreeMap;
use std::time::Duration;

/// One stage on the way to a goal: wider and shorter than the goal, or the goal itself.
#[derive(Debug, Clone)]
pub(crate) struct TargetSpec {
    pub(crate) criterion: Criterion,
    /// In steps of the grid.
    pub(crate) width: i64,
    pub(crate) expansion: i64,
}

/// The greatest lower bound below the least upper bound, and that, in steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) lower: Option<i64>,
    pub(crate) upper: Option<i64>,
}

/// The targets of a goal, the coarsest first and the goal itself last.
///
/// Each is twice as wide as the next, and its duration sum falls geometrically from that of the goal to one first
/// trial.
pub(crate) fn list_targets(goal: &Goal, grid: &LoadGrid) -> Vec<TargetSpec> {
    let mut targets = Vec::new();
    let mut width = grid.steps_of(goal.width);
    for coarser in 0..=goal.coarser_targets {
        let sum = duration_sum(goal, coarser);
        targets.push(TargetSpec {
            criterion: Criterion {
                loss_ratio: goal.loss_ratio,
                exceed_ratio: goal.exceed_ratio,
                full_trial: goal.final_trial.min(sum),
                duration_sum: sum,
            },
            width,
            expansion: i64::from(goal.expansion),
        });
        width *= 2;
    }
    targets.reverse();
    targets
}

fn duration_sum(goal: &Goal, coarser: u32) -> Duration {
    if coarser == 0 {
        return goal.duration_sum;
    }
    if coarser == goal.coarser_targets {
        return goal.initial_trial;
    }
    let whole = goal.duration_sum.as_secs_f64();
    let share = f64::from(coarser) / f64::from(goal.coarser_targets);
    Duration::from_secs_f64(whole * (goal.initial_trial.as_secs_f64() / whole).powf(share))
}

/// All trials so far, by load.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trials {
    by_step: BTreeMap<i64, Vec<Trial>>,
}

impl Trials {
    pub(crate) fn add(&mut self, step: i64, trial: Trial) {
        self.by_step.entry(step).or_default().push(trial);
    }

    pub(crate) fn at(&self, step: i64) -> &[Trial] {
        self.by_step.get(&step).map_or(&[], Vec::as_slice)
    }

    /// Loads that pass above one that does not are left out: a higher load may lose less by chance.
    pub(crate) fn find_bounds(&self, criterion: &Criterion) -> Bounds {
        let mut lower = None;
        for (step, trials) in &self.by_step {
            match classify(trials, criterion) {
                Class::Upper => return Bounds { lower, upper: Some(*step) },
                Class::Lower => lower = Some(*step),
                Class::Undecided => {}
            }
        }
        Bounds { lower, upper: None }
    }
}
