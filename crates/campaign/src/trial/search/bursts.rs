//! The longest burst of each arm, as fast as its sender can, of which nothing is lost.

use crate::CampaignError;
use crate::rig::Rig;
use crate::trial::prepared::find_rig;
use crate::trial::search::slice::{ReportedSlice, count, send_and_count, slice_spec};
use crate::trial::search::{Arm, first_load, repeat_until_valid};
use stacklab_model::{
    Ends, HostReport, Length, Metric, Pacing, SearchOutcome, SearchSlice, Value, print_duration,
};
use stacklab_search::burst::{BurstSearch, LongestBurst};

const FIRST_BURST: u64 = 64;
/// RFC 2544 asks for bursts of at least 2 s where none loses anything.
const MAX_BURST_S: f64 = 2.0;
/// More than any search needs: the tester disturbs some bursts, which are sent again.
const MAX_ROUNDS: u32 = 100;
/// The share of a burst that the path may carry while the sender pauses.
const MAX_PAUSE: f64 = 0.01;

/// Searches the longest burst of each arm that is asked for it, a burst of each in turns.
pub(super) fn search_bursts(
    rigs: &mut [&mut Rig],
    arms: &mut [Arm<'_>],
) -> Result<Vec<Option<Value>>, CampaignError> {
    let first_round = arms.iter().map(Arm::last_round).max().unwrap_or(0);
    let mut searches = Vec::new();
    for arm in arms.iter_mut() {
        arm.never_valid = 0;
        let can_be_judged = arm.asks_for(Metric::BackToBack) && first_load(arm).is_some();
        let rate = sent_per_second(arm).filter(|_| can_be_judged);
        searches.push(rate.map(|rate| BurstSearch::new(FIRST_BURST, (rate * MAX_BURST_S) as u64)));
    }
    for round in 1..=MAX_ROUNDS {
        let mut is_done = true;
        for (place, search) in searches.iter_mut().enumerate() {
            let arm = &mut arms[place];
            let Some(search) = search else { continue };
            let Some(frames) = search.next_burst() else { continue };
            if arm.failure.is_some() || arm.lacks_slices() {
                continue;
            }
            is_done = false;
            let numbers = [first_round + round, round];
            if let Some(burst) = measure_burst(find_rig(rigs, place), arm, frames, numbers)? {
                search.add(burst.offered, burst.is_bad());
            }
        }
        if is_done {
            break;
        }
    }
    let mut figures = Vec::new();
    for (arm, search) in arms.iter().zip(&searches) {
        let figure = match search {
            Some(search) => find_figure(search, arm.never_valid),
            None => Value::Missing("nothing of a flood arrived".to_owned()),
        };
        figures.push(arm.asks_for(Metric::BackToBack).then_some(figure));
    }
    Ok(figures)
}

/// Messages per second of the arm's flood.
fn sent_per_second(arm: &Arm<'_>) -> Option<f64> {
    let ends = arm.flood.reports.as_ref().ok()?.first()?;
    rate_of(ends.as_ref())
}

fn rate_of(ends: Ends<&HostReport>) -> Option<f64> {
    let sent = &ends.sender.sent;
    let took_ns = sent.last_ns.saturating_sub(sent.first_ns);
    (took_ns > 0).then(|| sent.measured as f64 * 1e9 / took_ns as f64)
}

/// Bursts of fewer messages may all be in buffers when the sender is done.
const MIN_TIMED_BURST: u64 = 1000;

/// The fastest that the sender was so far: a flood or a burst may have been interrupted.
fn find_fastest(arm: &Arm<'_>) -> f64 {
    let bursts = arm.slices.iter().filter(|slice| slice.trial.is_some() && slice.offered >= MIN_TIMED_BURST);
    bursts.map(|burst| burst.load).fold(sent_per_second(arm).unwrap_or(f64::INFINITY), f64::max)
}

/// Sends a burst. Returns the valid one; `None` if none was, or an agent failed. The numbers are those of its round and
/// of the burst.
fn measure_burst(
    rig: &mut Rig,
    arm: &mut Arm<'_>,
    frames: u64,
    [round, burst]: [u32; 2],
) -> Result<Option<SearchSlice>, CampaignError> {
    let carried_per_second = first_load(arm).unwrap_or(0.0);
    let fastest = find_fastest(arm);
    repeat_until_valid(arm, |prepared, number| {
        let spec = slice_spec(prepared, Pacing::Flood, Length::Packets(frames), number);
        let reported = send_and_count(rig, prepared, &spec)?;
        Ok(reported.map(|ReportedSlice { ends, drops }| {
            let rate = rate_of(ends.as_ref()).unwrap_or(1e9);
            let sent = &ends.sender.sent;
            let took_ns = sent.last_ns.saturating_sub(sent.first_ns);
            let late_ns = took_ns.saturating_sub((frames as f64 / fastest * 1e9) as u64);
            let counted = SearchSlice { late_ns, ..count(&ends, rate, took_ns, drops) };
            let outcome = judge_burst(&counted, frames, carried_per_second);
            SearchSlice { round, trial: Some(burst), outcome, ..counted }
        }))
    })
}

/// While a sender pauses, the path carries what waits in its queue: the burst has a gap. It is late beside a flood.
fn judge_burst(burst: &SearchSlice, frames: u64, carried_per_second: f64) -> SearchOutcome {
    let late_ns = burst.late_ns;
    let carried = carried_per_second * late_ns as f64 / 1e9;
    if burst.offered < frames {
        SearchOutcome::Invalid(format!("{} of {frames} messages were sent", burst.offered))
    } else if burst.lost_at_receiver > 0 {
        let lost = burst.lost_at_receiver;
        SearchOutcome::Invalid(format!("the receiver's socket had no room for {lost} messages"))
    } else if burst.lost() > 0 {
        SearchOutcome::Bad
    } else if carried > (MAX_PAUSE * frames as f64).max(1.0) {
        SearchOutcome::Invalid(format!("the sender paused for {}", print_duration(late_ns)))
    } else {
        SearchOutcome::Good
    }
}

fn find_figure(search: &BurstSearch, never_valid: u32) -> Value {
    match search.find_longest() {
        Some(LongestBurst::Frames(frames)) => Value::Measured(frames as f64),
        Some(LongestBurst::NotReached(frames)) => {
            Value::Missing(format!("at least {frames} messages: nothing of a burst of that length was lost"))
        }
        Some(LongestBurst::None) => Value::Missing("of each burst a message was lost".to_owned()),
        None if never_valid > 0 => {
            Value::Missing(format!("the tester disturbed {never_valid} of its bursts"))
        }
        None => Value::Missing(format!("it was not found in {MAX_ROUNDS} bursts")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(bursts: &[(u64, bool)], never_valid: u32) -> Value {
        let mut search = BurstSearch::new(100, 1000);
        for (frames, lost_some) in bursts {
            search.add(*frames, *lost_some);
        }
        find_figure(&search, never_valid)
    }

    #[test]
    fn a_figure_that_is_missing_has_a_reason() {
        assert_eq!(find(&[(100, false), (101, true), (101, true)], 3), Value::Measured(100.0));
        for (bursts, never_valid, reason) in [
            (&[(1000, false)][..], 0, "at least 1000 messages: nothing of a burst of that length was lost"),
            (&[(1, true), (1, true)], 0, "of each burst a message was lost"),
            (&[(100, false), (200, true)], 8, "the tester disturbed 8 of its bursts"),
            (&[(100, false), (200, true)], 0, "it was not found in 100 bursts"),
        ] {
            assert_eq!(find(bursts, never_valid), Value::Missing(reason.to_owned()));
        }
    }

    #[test]
    fn a_gap_makes_a_burst_without_loss_invalid() {
        let whole = SearchSlice { offered: 1000, received: 1000, ..SearchSlice::default() };
        let gap = SearchSlice { late_ns: 2_000_000, ..whole.clone() };
        for (burst, outcome) in [
            (whole.clone(), SearchOutcome::Good),
            (SearchSlice { late_ns: 900_000, ..whole.clone() }, SearchOutcome::Good),
            (gap.clone(), SearchOutcome::Invalid("the sender paused for 2 ms".to_owned())),
            // With a gap or without: a shorter burst would have been carried.
            (SearchSlice { received: 999, ..gap }, SearchOutcome::Bad),
        ] {
            assert_eq!(judge_burst(&burst, 1000, 10_000.0), outcome);
        }
        let at_receiver = SearchSlice { received: 998, lost_at_receiver: 2, ..whole };
        assert!(matches!(judge_burst(&at_receiver, 1000, 10_000.0), SearchOutcome::Invalid(_)));
    }
}
