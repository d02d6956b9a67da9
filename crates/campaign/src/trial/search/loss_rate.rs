//! What each arm loses at 100 %, 90 % .. of the highest load, which the arms of a trial have in common (RFC 2544,
//! section 26.3).

use crate::CampaignError;
use crate::rig::Rig;
use crate::trial::prepared::find_rig;
use crate::trial::search::balance::{MAX_LATE, MIN_HELD_UP};
use crate::trial::search::slice::{ReportedSlice, count, send_and_count, slice_spec};
use crate::trial::search::{Arm, carried_per_second, repeat_until_valid};
use stacklab_model::{
    Length, Metric, Pacing, SearchDevice, SearchOutcome, SearchSlice, SearchSpec, Value, print_duration,
};
use stacklab_search::loss_curve::LossCurve;
use stacklab_search::paired::Slice;

/// The share of the messages that the receiver's socket may have no room for, in millionths. The path has carried them.
const MAX_AT_RECEIVER_PPM: u32 = 10_000;

/// A trial that is to be made.
#[derive(Clone, Copy)]
struct LossTrial {
    percent: u32,
    /// Messages per second.
    load: f64,
    length_ns: u64,
    round: u32,
    /// From 1.
    number: u32,
}

/// Measures the loss of each arm that is asked for it: a trial of each in turns, from the highest load down. The figure
/// is the loss at the highest load.
pub(super) fn measure_losses(
    rigs: &mut [&mut Rig],
    arms: &mut [Arm<'_>],
    search: &SearchSpec,
) -> Result<Vec<Option<Value>>, CampaignError> {
    if !arms.iter().any(|arm| arm.asks_for(Metric::FrameLossRate)) {
        return Ok(vec![None; arms.len()]);
    }
    let rounds = arms.iter().filter_map(|arm| arm.slices.last()).map(|slice| slice.round);
    let first_round = rounds.max().unwrap_or(0);
    let highest = arms.iter().filter_map(carried_per_second).fold(0.0, f64::max).min(search.highest_load());
    let length_ns = search.loss_trial_ns();
    let mut curves = vec![LossCurve::default(); arms.len()];
    let mut order: Vec<usize> = (0..arms.len()).collect();
    let mut number = 0;
    loop {
        number += 1;
        let mut is_done = true;
        for place in &order {
            let arm = &mut arms[*place];
            let can_be_judged = arm.asks_for(Metric::FrameLossRate) && carried_per_second(arm).is_some();
            let Some(percent) = curves[*place].next_percent().filter(|_| can_be_judged) else { continue };
            if arm.failure.is_some() {
                continue;
            }
            is_done = false;
            let load = highest * f64::from(percent) / 100.0;
            let trial = LossTrial { percent, load, length_ns, round: first_round + number, number };
            let measured = measure_trial(find_rig(rigs, *place), arm, search, trial)?;
            curves[*place].add(measured.and_then(|slice| slice.trial_loss(search.loss_ppm)));
        }
        if is_done {
            break;
        }
        order.reverse();
    }
    let mut figures = Vec::new();
    for (arm, curve) in arms.iter().zip(&curves) {
        figures.push(arm.asks_for(Metric::FrameLossRate).then(|| find_figure(arm, curve)));
    }
    Ok(figures)
}

/// Sends a trial. Returns the valid one; `None` if none was, or an agent failed.
fn measure_trial(
    rig: &mut Rig,
    arm: &mut Arm<'_>,
    search: &SearchSpec,
    trial: LossTrial,
) -> Result<Option<SearchSlice>, CampaignError> {
    let LossTrial { percent, load, length_ns, round, number } = trial;
    let may_hold_up = arm.prepared.path.rate.is_some() || search.device == SearchDevice::Path;
    let limit = carried_per_second(arm).filter(|_| may_hold_up);
    repeat_until_valid(arm, |prepared, slice_number| {
        let spec = slice_spec(prepared, Pacing::Shifted(load), Length::Time(length_ns), slice_number);
        let reported = send_and_count(rig, prepared, &spec)?;
        Ok(reported.map(|ReportedSlice { ends, drops }| {
            let counted = count(&ends, load, length_ns, drops);
            let outcome = judge_trial(&counted, length_ns, search.loss_ppm, limit);
            SearchSlice { round, trial: Some(number), percent: Some(percent), outcome, ..counted }
        }))
    })
}

/// Whether a trial of this length had its load. A slice of a search must only be good or bad: one that loses much need
/// not have been sent in time, but a trial must. `limit` is what a path carries that can hold its sender up.
fn judge_trial(trial: &SearchSlice, length_ns: u64, loss_ppm: u32, limit: Option<f64>) -> SearchOutcome {
    let SearchSlice { offered, late_ns, lost_at_receiver, .. } = *trial;
    if offered == 0 {
        return SearchOutcome::Invalid("nothing was sent".to_owned());
    }
    let at_receiver = Slice { offered, lost: lost_at_receiver, waiting: 0 };
    if at_receiver.is_bad(MAX_AT_RECEIVER_PPM) {
        let reason = format!("the receiver's socket had no room for {lost_at_receiver} messages");
        return SearchOutcome::Invalid(reason);
    }
    let late = print_duration(late_ns);
    if late_ns as f64 <= MAX_LATE * length_ns as f64 {
        // What waits in a queue may count as well.
        let has_lost = trial.trial_loss(loss_ppm).is_some_and(|loss| loss > 0.0);
        if has_lost { SearchOutcome::Bad } else { SearchOutcome::Good }
    } else if trial.waited_ns.unwrap_or(0) >= late_ns / 2 {
        SearchOutcome::Invalid(format!("the sender was {late} late and waited for a processor"))
    } else if limit.is_some_and(|limit| trial.load >= MIN_HELD_UP * limit) {
        SearchOutcome::NotSent
    } else {
        SearchOutcome::Invalid(format!("the sender was {late} late though it could run"))
    }
}

fn find_figure(arm: &Arm<'_>, curve: &LossCurve) -> Value {
    if carried_per_second(arm).is_none() {
        return Value::Missing("nothing of a flood arrived".to_owned());
    }
    let reason = "the tester disturbed all trials at the highest load";
    curve.loss_at_highest().map_or_else(|| Value::Missing(reason.to_owned()), Value::Measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn judge(trial: &SearchSlice, limit: Option<f64>) -> SearchOutcome {
        judge_trial(trial, SECOND_NS, 5000, limit)
    }

    #[test]
    fn a_trial_must_have_had_its_load() {
        let trial = SearchSlice { load: 1000.0, offered: 1000, received: 600, ..SearchSlice::default() };
        assert_eq!(judge(&trial, None), SearchOutcome::Bad);
        assert_eq!(judge(&SearchSlice { received: 1000, ..trial.clone() }, None), SearchOutcome::Good);
        let late = SearchSlice { late_ns: 100_000_000, ..trial.clone() };
        assert!(matches!(judge(&late, None), SearchOutcome::Invalid(_)), "though much was lost");
        let waited = SearchSlice { waited_ns: Some(90_000_000), ..late.clone() };
        assert!(matches!(judge(&waited, Some(1000.0)), SearchOutcome::Invalid(_)));
        // The link carries less than its sender is to send.
        assert_eq!(judge(&late, Some(1000.0)), SearchOutcome::NotSent);
        assert!(matches!(judge(&late, Some(2000.0)), SearchOutcome::Invalid(_)));
        assert!(matches!(judge(&SearchSlice::default(), None), SearchOutcome::Invalid(_)));
    }

    #[test]
    fn a_trial_that_fills_a_queue_has_lost() {
        let trial = SearchSlice { load: 1000.0, offered: 1000, received: 1000, ..SearchSlice::default() };
        for (waiting, outcome) in [(5, SearchOutcome::Good), (6, SearchOutcome::Bad)] {
            let trial = SearchSlice { waiting, ..trial.clone() };
            assert_eq!(judge(&trial, None), outcome);
            let has_lost = trial.trial_loss(5000).is_some_and(|loss| loss > 0.0);
            assert_eq!(has_lost, outcome == SearchOutcome::Bad, "as its loss says");
        }
    }

    #[test]
    fn the_receivers_losses_are_carried_up_to_a_per_cent() {
        let trial = SearchSlice {
            load: 1000.0,
            offered: 1000,
            received: 990,
            lost_at_receiver: 10,
            ..SearchSlice::default()
        };
        assert_eq!(judge(&trial, None), SearchOutcome::Good);
        assert_eq!(trial.trial_loss(0), Some(0.0));
        let starved = SearchSlice { lost_at_receiver: 11, received: 989, ..trial };
        assert!(matches!(judge(&starved, None), SearchOutcome::Invalid(_)));
    }
}
