//! The bounds of several arms near loads that are known, a trial of each in turns.
//!
//! Each arm has its own controller. In a round each arm that is not done makes the trial that its controller asks for,
//! so what disturbs the machine for longer than a round disturbs all arms alike.

use crate::controller::{Found, Search, SearchError, TrialRequest};
use crate::goal::Goal;
use std::time::Duration;

/// The bounds lie between the load divided by this and the load times this.
const RANGE: f64 = 1.3;
/// The longest slice of a trial.
const MAX_SLICE: Duration = Duration::from_secs(1);

/// The searches of all arms.
#[derive(Debug, Clone)]
pub struct Lockstep {
    arms: Vec<ArmSearch>,
    cuts_trials: bool,
}

/// An arm's controller, and the trial that it asked for.
#[derive(Debug, Clone)]
struct ArmSearch {
    controller: Search,
    request: Option<TrialRequest>,
    sums: Sums,
    trials: u32,
}

/// Frames of the slices of a trial.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    slices: u32,
    intended: u64,
    offered: u64,
    lost: u64,
}

/// A trial that an arm is to make.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlicedTrial {
    /// Frames a second.
    pub load: f64,
    /// Its slices, between which the arms take turns.
    pub cut: Cut,
}

/// Slices of one length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// The length of a slice.
    pub slice: Duration,
    /// How many of them.
    pub slices: u32,
}

impl Lockstep {
    /// Searches the goal's bounds near each arm's load, within these limits.
    ///
    /// # Errors
    /// A goal that no search can have, or a load outside the limits.
    pub fn new(goal: &Goal, loads: &[f64], least: f64, highest: f64) -> Result<Self, SearchError> {
        let mut arms = Vec::new();
        for load in loads {
            let controller =
                Search::new(vec![goal.clone()], (load / RANGE).max(least), (load * RANGE).min(highest))?;
            arms.push(ArmSearch { controller, request: None, sums: Sums::default(), trials: 0 });
        }
        Ok(Lockstep { arms, cuts_trials: goal.loss_ratio > 0 })
    }

    /// Asks each arm for its next trial. Returns whether any needs one.
    pub fn begin_round(&mut self) -> bool {
        for arm in &mut self.arms {
            arm.request = arm.controller.next_trial();
        }
        self.arms.iter().any(|arm| arm.request.is_some())
    }

    /// The arm's trial of this round; `None` if its bounds are known.
    pub fn trial(&self, arm: usize) -> Option<SlicedTrial> {
        let TrialRequest { load, duration, .. } = self.arms[arm].request?;
        Some(SlicedTrial { load, cut: self.cut(duration) })
    }

    /// The slices of a trial of this length.
    ///
    /// A queue hides an overload until it is full. Where some loss is allowed, what waits in it at the end of a slice
    /// counts as lost; where none is, nothing does, and the trial is one slice.
    pub fn cut(&self, duration: Duration) -> Cut {
        let needed = duration.as_nanos().div_ceil(MAX_SLICE.as_nanos());
        let slices = if self.cuts_trials { u32::try_from(needed).unwrap_or(u32::MAX).max(1) } else { 1 };
        Cut { slice: duration / slices, slices }
    }

    /// Adds a slice of an arm's trial: the frames that were to be sent, those that were, and those of them that were
    /// lost or waiting.
    pub fn add_slice(&mut self, arm: usize, intended: u64, offered: u64, lost: u64) {
        let sums = &mut self.arms[arm].sums;
        sums.slices += 1;
        sums.intended = sums.intended.saturating_add(intended);
        sums.offered = sums.offered.saturating_add(offered);
        sums.lost = sums.lost.saturating_add(lost);
    }

    /// Ends a round. A trial of which a slice is missing is asked for again.
    pub fn end_round(&mut self) {
        for place in 0..self.arms.len() {
            let asked = self.trial(place).map_or(0, |trial| trial.cut.slices);
            let arm = &mut self.arms[place];
            let Sums { slices, intended, offered, lost } = std::mem::take(&mut arm.sums);
            if slices > 0 && slices == asked {
                arm.controller.add(intended, offered, lost);
                arm.trials += 1;
            }
        }
    }

    /// Trials that an arm has made.
    pub fn trials(&self, arm: usize) -> u32 {
        self.arms[arm].trials
    }

    /// The bounds of an arm, once it needs no more trials.
    pub fn bounds(&self, arm: usize) -> Option<Found> {
        let arm = &self.arms[arm];
        if arm.request.is_some() { None } else { arm.controller.results().into_iter().next() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches devices that carry these frames a second, begun at loads that are wrong by 10 %.
    fn search(goal: &Goal, capacities: [f64; 2]) -> Lockstep {
        let loads = [capacities[0] * 0.9, capacities[1] * 1.1];
        let mut lockstep = Lockstep::new(goal, &loads, 10.0, 1e9).unwrap();
        while lockstep.begin_round() {
            for (arm, capacity) in capacities.into_iter().enumerate() {
                let Some(SlicedTrial { load, cut }) = lockstep.trial(arm) else { continue };
                for _ in 0..cut.slices {
                    let [sent, carried] =
                        [load, capacity].map(|rate| (rate * cut.slice.as_secs_f64()) as u64);
                    lockstep.add_slice(arm, sent, sent, sent.saturating_sub(carried));
                }
            }
            lockstep.end_round();
        }
        lockstep
    }

    #[test]
    fn bounds_of_each_arm_enclose_its_capacity() {
        for goal in [Goal::rfc2544(), Goal::seconds(0)] {
            let capacities = [40_000.0, 25_000.0];
            let lockstep = search(&goal, capacities);
            for (arm, capacity) in capacities.into_iter().enumerate() {
                let Found { lower: Some(lower), upper: Some(upper), .. } = lockstep.bounds(arm).unwrap()
                else {
                    panic!("no bounds of {capacity}")
                };
                assert!(lower <= capacity * 1.001 && upper > capacity, "{lower} to {upper}, not {capacity}");
                assert!((upper - lower) / upper <= goal.width, "{lower} to {upper}");
                assert!(lockstep.trials(arm) > 2);
            }
        }
    }

    #[test]
    fn trials_without_allowed_loss_are_whole() {
        let [none, some] = [0, 5000].map(|loss_ratio| {
            let mut lockstep =
                Lockstep::new(&Goal { loss_ratio, ..Goal::rfc2544() }, &[1000.0], 10.0, 1e9).unwrap();
            assert!(lockstep.begin_round());
            lockstep.trial(0).unwrap()
        });
        let minute = Duration::from_secs(60);
        assert_eq!(none, SlicedTrial { load: 1300.0, cut: Cut { slice: minute, slices: 1 } });
        assert_eq!(some.cut, Cut { slice: Duration::from_secs(1), slices: 60 });
    }

    #[test]
    fn a_trial_without_a_slice_comes_again() {
        let goal = Goal { loss_ratio: 5000, ..Goal::rfc2544() };
        let mut lockstep = Lockstep::new(&goal, &[1000.0], 10.0, 1e9).unwrap();
        lockstep.begin_round();
        let first = lockstep.trial(0);
        for _ in 0..59 {
            lockstep.add_slice(0, 1300, 1300, 0);
        }
        lockstep.end_round();
        lockstep.begin_round();
        assert_eq!((lockstep.trial(0), lockstep.trials(0), lockstep.bounds(0)), (first, 0, None));
        for _ in 0..60 {
            lockstep.add_slice(0, 1300, 1300, u64::MAX);
        }
        lockstep.end_round();
        assert_eq!(lockstep.trials(0), 1);
    }

    #[test]
    fn load_outside_the_limits_is_an_error() {
        assert!(Lockstep::new(&Goal::seconds(0), &[500.0], 10.0, 100.0).is_err());
    }
}
