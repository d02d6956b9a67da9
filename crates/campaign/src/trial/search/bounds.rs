//! The bounds of each arm's throughput (RFC 9971), near the load that the search in turns has found.

use crate::CampaignError;
use crate::rig::Rig;
use crate::trial::prepared::find_rig;
use crate::trial::search::{Arm, Turn, measure_turn};
use stacklab_model::{SearchGoal, SearchOutcome, SearchSlice, SearchSpec, count};
use stacklab_search::controller::Found;
use stacklab_search::goal::Goal;
use stacklab_search::lockstep::Lockstep;
use std::time::Duration;

/// Trials of less than a full one only find the region.
const FIRST_TRIAL: Duration = Duration::from_secs(1);
const COARSER_TARGETS: u32 = 2;
/// A goal that is not reached after this many rounds has no bounds.
const MAX_TRIALS: u32 = 400;

/// What was found for an arm, and the length of the slices of a full trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bounds {
    pub found: Found,
    pub slice_ns: u64,
}

/// Searches the bounds of all arms, a trial of each in turns. The reason of an arm without bounds stands in its place.
pub(super) fn search_bounds(
    rigs: &mut [&mut Rig],
    arms: &mut [Arm<'_>],
    search: &SearchSpec,
    goal: SearchGoal,
    loads: &[f64],
) -> Result<Vec<Result<Bounds, String>>, CampaignError> {
    let search = SearchSpec { loss_ppm: goal.loss_ppm, ..*search };
    let begun = Lockstep::new(&as_goal(goal), loads, SearchSpec::MIN_LOAD, search.highest_load());
    let mut lockstep = match begun {
        Ok(lockstep) => lockstep,
        Err(error) => return Ok(vec![Err(error.to_string()); arms.len()]),
    };
    let slices_before = arms.iter().filter_map(|arm| arm.slices.last());
    let first_round = slices_before.map(|slice| slice.round).max().unwrap_or(0);
    let full_trial = lockstep.cut(Duration::from_nanos(goal.trial_ns)).slice;
    for trial in 1..=MAX_TRIALS {
        if !lockstep.begin_round() {
            break;
        }
        run_trials(rigs, arms, &search, &mut lockstep, first_round + trial, trial)?;
        if arms.iter().any(|arm| arm.failure.is_some() || arm.lacks_slices()) {
            break;
        }
        lockstep.end_round();
    }
    let is_disturbed = arms.iter().any(Arm::lacks_slices);
    let mut bounds = Vec::new();
    for (place, arm) in arms.iter().enumerate() {
        bounds.push(if arm.lacks_slices() {
            Err(format!("the tester disturbed {} slices of its trials", arm.never_valid))
        } else if let Some(found) = lockstep.bounds(place) {
            Ok(Bounds { found, slice_ns: full_trial.as_nanos() as u64 })
        } else {
            Err(explain_end(lockstep.trials(place), is_disturbed))
        });
    }
    Ok(bounds)
}

fn explain_end(trials: u32, is_disturbed: bool) -> String {
    let after = count(trials, "trial");
    if is_disturbed {
        format!("they were given up after {after}: the tester disturbed the other arm")
    } else {
        format!("they were not found in {after}")
    }
}

fn as_goal(goal: SearchGoal) -> Goal {
    let trial = Duration::from_nanos(goal.trial_ns);
    Goal {
        loss_ratio: goal.loss_ppm,
        exceed_ratio: goal.exceed_ppm,
        width: f64::from(goal.width_ppm) / 1e6,
        initial_trial: trial.min(FIRST_TRIAL),
        final_trial: trial,
        duration_sum: Duration::from_nanos(goal.sum_ns),
        coarser_targets: COARSER_TARGETS,
        expansion: 2,
    }
}

/// Makes the trial of each arm in this round, a slice of each arm in turns.
fn run_trials(
    rigs: &mut [&mut Rig],
    arms: &mut [Arm<'_>],
    search: &SearchSpec,
    lockstep: &mut Lockstep,
    round: u32,
    trial: u32,
) -> Result<(), CampaignError> {
    let mut order: Vec<usize> = (0..arms.len()).collect();
    if round.is_multiple_of(2) {
        order.reverse();
    }
    let most = order.iter().filter_map(|place| lockstep.trial(*place)).map(|trial| trial.cut.slices).max();
    for part in 0..most.unwrap_or(0) {
        for place in &order {
            let Some(sliced) = lockstep.trial(*place).filter(|sliced| part < sliced.cut.slices) else {
                continue;
            };
            let arm = &mut arms[*place];
            let slice_ns = sliced.cut.slice.as_nanos() as u64;
            let turn = Turn { load: sliced.load, slice_ns, round, trial: Some(trial), state: None };
            if let Some(slice) = measure_turn(find_rig(rigs, *place), arm, search, turn)? {
                let [intended, offered, lost] = count_frames(&slice, search.loss_ppm);
                lockstep.add_slice(*place, intended, offered, lost);
            }
            if arm.failure.is_some() || arm.lacks_slices() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Frames that were to be sent, those that were, and those of them that count as lost.
fn count_frames(slice: &SearchSlice, loss_ppm: u32) -> [u64; 3] {
    let unsent = if slice.outcome == SearchOutcome::NotSent { slice.unsent() } else { 0 };
    // A host says how many waited: no more than were sent.
    let lost = slice.lost().saturating_add(slice.late(loss_ppm)).min(slice.offered);
    [slice.offered.saturating_add(unsent), slice.offered, lost]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_that_was_not_sent_lacks_the_rest() {
        let slice =
            SearchSlice { load: 1000.0, offered: 900, received: 890, waiting: 5, ..SearchSlice::default() };
        assert_eq!(count_frames(&slice, 5000), [900, 900, 15]);
        let not_sent = SearchSlice { late_ns: 100_000_000, outcome: SearchOutcome::NotSent, ..slice };
        assert_eq!(count_frames(&not_sent, 0), [1000, 900, 10]);
    }

    #[test]
    fn first_trials_are_no_longer_than_a_full_one() {
        let goal = SearchGoal {
            loss_ppm: 0,
            exceed_ppm: 0,
            trial_ns: 200_000_000,
            sum_ns: 200_000_000,
            width_ppm: 10_000,
        };
        let short = as_goal(goal);
        assert_eq!(
            (short.initial_trial, short.final_trial),
            (Duration::from_millis(200), Duration::from_millis(200))
        );
        let minute = as_goal(SearchGoal { trial_ns: 60_000_000_000, sum_ns: 60_000_000_000, ..goal });
        assert_eq!(minute.initial_trial, FIRST_TRIAL);
        assert_eq!((minute.loss_ratio, minute.exceed_ratio, minute.width), (0, 0, 0.01));
        assert!(short.check().is_ok() && minute.check().is_ok());
    }

    #[test]
    fn an_end_without_bounds_has_a_reason() {
        assert_eq!(
            explain_end(1, true),
            "they were given up after 1 trial: the tester disturbed the other arm"
        );
        assert_eq!(explain_end(400, false), "they were not found in 400 trials");
    }
}
