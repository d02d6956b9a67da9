//! How long an arm still loses messages after an overload (RFC 2544, section 26.5).

use crate::CampaignError;
use crate::rig::Rig;
use crate::trial::prepared::find_rig;
use crate::trial::search::balance::MAX_LATE;
use crate::trial::search::slice::{ReportedSlice, count, send_and_count, slice_spec};
use crate::trial::search::{Arm, carried_per_second, repeat_until_valid};
use stacklab_model::{
    Length, LoadStep, Metric, Pacing, Recovery, SearchOutcome, SearchSlice, SearchSpec, Value, print_duration,
};

/// Of the load that the arm carries, as the RFC has it.
const OVERLOAD: f64 = 1.1;
const HALF: f64 = 0.5;

/// Measures the recovery of each arm that is asked for it, a trial of each in turns. `loads` are those that were
/// searched before.
pub(super) fn measure_recoveries(
    rigs: &mut [&mut Rig],
    arms: &mut [Arm<'_>],
    search: &SearchSpec,
    loads: Option<&[f64]>,
) -> Result<Vec<Option<Value>>, CampaignError> {
    let first_round = arms.iter().map(Arm::last_round).max().unwrap_or(0);
    let mut measured = vec![Vec::new(); arms.len()];
    for number in 1..=SearchSpec::RECOVERIES as u32 {
        for (place, arm) in arms.iter_mut().enumerate() {
            let searched = loads.map(|loads| loads[place]);
            let load = choose_load(arm, searched, search.highest_load());
            let Some(load) = load.filter(|_| arm.asks_for(Metric::RecoveryTime)) else { continue };
            if arm.failure.is_some() {
                continue;
            }
            let rounds = [first_round + number, number];
            let trial = measure_trial(find_rig(rigs, place), arm, plan_step(load), rounds)?;
            measured[place].extend(trial);
        }
    }
    let mut figures = Vec::new();
    for (arm, trials) in arms.iter().zip(&measured) {
        figures.push(arm.asks_for(Metric::RecoveryTime).then(|| find_figure(arm, trials)));
    }
    Ok(figures)
}

/// What the arm carries, messages per second, or less if the overload would be above the highest load. A flood may
/// leave less of a device than a load that it can carry.
fn choose_load(arm: &Arm<'_>, searched: Option<f64>, highest: f64) -> Option<f64> {
    let carried = carried_per_second(arm)?;
    let load = searched.map_or(carried, |load| load.max(carried));
    Some(load.clamp(SearchSpec::MIN_LOAD, highest / OVERLOAD))
}

fn plan_step(load: f64) -> LoadStep {
    let first = OVERLOAD * load;
    let [overload_ns, _] = SearchSpec::RECOVERY_NS;
    LoadStep { first_messages: (first * overload_ns as f64 / 1e9).ceil() as u64, first, second: HALF * load }
}

/// Sends a trial. Returns the valid one; `None` if none was, or an agent failed. The numbers are those of its round and
/// of the trial.
fn measure_trial(
    rig: &mut Rig,
    arm: &mut Arm<'_>,
    step: LoadStep,
    [round, trial]: [u32; 2],
) -> Result<Option<SearchSlice>, CampaignError> {
    let length_ns: u64 = SearchSpec::RECOVERY_NS.iter().sum();
    let [overload_ns, half_ns] = SearchSpec::RECOVERY_NS.map(|ns| ns as f64);
    let mean_load = (step.first * overload_ns + step.second * half_ns) / length_ns as f64;
    repeat_until_valid(arm, |prepared, number| {
        let spec = slice_spec(prepared, Pacing::Stepped(step), Length::Time(length_ns), number);
        let reported = send_and_count(rig, prepared, &spec)?;
        Ok(reported.map(|ReportedSlice { ends, drops }| {
            let counted = count(&ends, mean_load, length_ns, drops);
            let outcome = judge_trial(&counted, length_ns);
            let recovery = find_recovery(&counted, step, ends.receiver.received.last_missing);
            SearchSlice { round, trial: Some(trial), recovery: Some(recovery), outcome, ..counted }
        }))
    })
}

/// What the trial shows. The receiver says which message was lost last.
fn find_recovery(trial: &SearchSlice, step: LoadStep, last_missing: Option<u64>) -> Recovery {
    match last_missing {
        _ if trial.lost() == 0 => Recovery::NothingLost,
        // From the last message on nothing shows that it has recovered.
        Some(last) if last.saturating_add(1) >= trial.offered => Recovery::StillLost,
        Some(last) => Recovery::After { ns: step.recovery_ns(last) },
        None => Recovery::Unknown,
    }
}

/// Whether the trial had its loads, and the receiver room for all that came.
fn judge_trial(trial: &SearchSlice, length_ns: u64) -> SearchOutcome {
    let SearchSlice { offered, late_ns, lost_at_receiver, .. } = *trial;
    if offered == 0 {
        SearchOutcome::Invalid("nothing was sent".to_owned())
    } else if lost_at_receiver > 0 {
        SearchOutcome::Invalid(format!("the receiver's socket had no room for {lost_at_receiver} messages"))
    } else if late_ns as f64 > MAX_LATE * length_ns as f64 {
        SearchOutcome::Invalid(format!("the sender was {} late", print_duration(late_ns)))
    } else if trial.lost() > 0 {
        SearchOutcome::Bad
    } else {
        SearchOutcome::Good
    }
}

/// The median of the trials, or why there is none.
fn find_figure(arm: &Arm<'_>, trials: &[SearchSlice]) -> Value {
    if carried_per_second(arm).is_none() {
        return Value::Missing("nothing of a flood arrived".to_owned());
    }
    let mut trials_of_all = arm.slices.iter().rev().filter(|slice| slice.recovery.is_some());
    let reason = trials_of_all.find_map(|slice| match &slice.outcome {
        SearchOutcome::Invalid(reason) => Some(reason.as_str()),
        _ => None,
    });
    find_median(trials, reason.unwrap_or("an agent failed"))
}

/// `disturbed` is why others are not valid.
fn find_median(trials: &[SearchSlice], disturbed: &str) -> Value {
    let [_, half_ns] = SearchSpec::RECOVERY_NS;
    let mut times_ns = Vec::new();
    for recovery in trials.iter().filter_map(|trial| trial.recovery) {
        let reason = match recovery {
            Recovery::After { ns } => {
                times_ns.push(ns);
                continue;
            }
            Recovery::NothingLost => format!("at {OVERLOAD} times the load that it carries, it lost nothing"),
            Recovery::StillLost => {
                format!("after {} at half its load it still lost messages", print_duration(half_ns))
            }
            Recovery::Unknown => "the receiver does not know which message was lost last".to_owned(),
        };
        return Value::Missing(reason);
    }
    let all = SearchSpec::RECOVERIES;
    let lacking = all - times_ns.len().min(all);
    if lacking > 0 {
        return Value::Missing(format!(
            "{lacking} of {all} trials were not valid, the last because {disturbed}"
        ));
    }
    times_ns.sort_unstable();
    Value::Measured(times_ns[times_ns.len() / 2] as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(offered: u64, lost: u64) -> SearchSlice {
        SearchSlice { offered, received: offered - lost, ..SearchSlice::default() }
    }

    fn show(recovery: Recovery) -> SearchSlice {
        SearchSlice { recovery: Some(recovery), ..trial(100, 9) }
    }

    #[test]
    fn time_ends_where_nothing_is_lost_any_more() {
        // 4400 messages 1 / 1100 s apart, and then 2 ms apart.
        let step = plan_step(1000.0);
        assert_eq!(step.first_messages, 4400);
        let gap_ns = 909_090;
        for (last_lost, after_ns) in [(0, 0), (4399, 0), (4400, 2_000_000), (4449, 100_000_000)] {
            let recovery_ns = step.recovery_ns(last_lost);
            assert!(recovery_ns.abs_diff(gap_ns + after_ns) <= 1, "{last_lost}: {recovery_ns}");
        }
        assert!(step.recovery_ns(u64::MAX) > 0, "a host may say anything");
    }

    #[test]
    fn trial_shows_what_was_lost_last() {
        let step = plan_step(1000.0);
        let after = Recovery::After { ns: step.recovery_ns(4500) };
        for (lost, last_missing, recovery) in [
            (0, None, Recovery::NothingLost),
            (9, Some(4500), after),
            (9, Some(4898), Recovery::After { ns: step.recovery_ns(4898) }),
            (9, Some(4899), Recovery::StillLost),
            (9, Some(u64::MAX), Recovery::StillLost),
            (9, None, Recovery::Unknown),
        ] {
            assert_eq!(find_recovery(&trial(4900, lost), step, last_missing), recovery);
        }
    }

    #[test]
    fn a_figure_is_the_median_or_a_reason() {
        let some = [7_000_000, 2_000_000, 3_000_000].map(|ns| show(Recovery::After { ns }));
        assert_eq!(find_median(&some, ""), Value::Measured(3.0));
        for (last, reason) in [
            (Some(Recovery::NothingLost), "at 1.1 times the load that it carries, it lost nothing"),
            (Some(Recovery::StillLost), "after 1 s at half its load it still lost messages"),
            (Some(Recovery::Unknown), "the receiver does not know which message was lost last"),
            (None, "1 of 3 trials were not valid, the last because the sender was late"),
        ] {
            let trials: Vec<SearchSlice> = some[..2].iter().cloned().chain(last.map(show)).collect();
            assert_eq!(find_median(&trials, "the sender was late"), Value::Missing(reason.to_owned()));
        }
    }

    #[test]
    fn a_trial_must_have_had_its_loads() {
        assert_eq!(judge_trial(&trial(100, 0), 5_000_000_000), SearchOutcome::Good);
        assert_eq!(judge_trial(&trial(100, 1), 5_000_000_000), SearchOutcome::Bad);
        let late = SearchSlice { late_ns: 26_000_000, ..trial(100, 1) };
        let at_receiver = SearchSlice { lost_at_receiver: 1, ..trial(100, 1) };
        for disturbed in [trial(0, 0), late, at_receiver] {
            assert!(matches!(judge_trial(&disturbed, 5_000_000_000), SearchOutcome::Invalid(_)));
        }
    }
}
