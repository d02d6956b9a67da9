//! Whether a result is that of the order: its runs are the plan's trials of the block, and were made after it was
//! ordered. An agent may be broken into, or answer with what it measured before.

use crate::FleetError;
use crate::message::BlockResult;
use crate::store::Lease;
use crate::study::FleetStudy;
use stacklab_campaign::runs::contradictions;
use stacklab_model::{HostReport, RunRecord, TrialSpec, count, too_large};
use stacklab_study::{Plan, Study};
use std::time::Duration;

/// Longest description of a path, bytes: what a record may have.
const MAX_PATH: usize = 1 << 16;
/// How far a run may seem to begin before its order: two clocks do not agree better.
const CLOCK_SLACK: Duration = Duration::from_millis(100);
/// And this part of the time since the order: a clock that nobody sets may run as wrong as this.
const CLOCK_DRIFT: i64 = 1000;
/// How far a run may seem to end after now: clocks of usable agents do not differ by more.
pub(crate) const MAX_AHEAD: Duration = Duration::from_secs(60);

/// A campaign's study as its results are checked with it.
pub(crate) struct CheckedStudy {
    pub study: Study,
    plan: Plan,
    /// For how long a block of it is leased.
    lease: Duration,
}

/// When a result came, by the coordinator's clock, and how much the sender's clock is ahead of it; nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    pub now_ns: i64,
    pub ahead_ns: i64,
}

impl CheckedStudy {
    pub(crate) fn new(study: &FleetStudy) -> Result<Self, FleetError> {
        let lease = study.lease()?;
        let (study, plan) = study.check()?;
        Ok(CheckedStudy { study, plan, lease })
    }

    /// Refuses a result that is not what was ordered with this lease. The reason is a sentence about the result.
    pub(crate) fn check(&self, lease: &Lease, result: &BlockResult, times: Times) -> Result<(), String> {
        let names = [&lease.sender, &lease.receiver];
        if !result.hosts.iter().map(|host| &host.kind).eq(names) {
            return Err(format!("its hosts are not {} and {}", lease.sender, lease.receiver));
        }
        if result.path.len() > MAX_PATH {
            return Err(format!("its path is described with {} bytes", result.path.len()));
        }
        self.check_trials(lease, &result.runs)?;
        result.runs.iter().try_for_each(check_numbers)?;
        let ordered_ns = lease.deadline_ns.saturating_sub(to_ns(self.lease));
        result.runs.iter().try_for_each(|run| check_times(run, ordered_ns, times))
    }

    /// The runs must be the plan's trials of the block, each once.
    fn check_trials(&self, lease: &Lease, runs: &[RunRecord]) -> Result<(), String> {
        let block = lease.key.block;
        let questions = self.study.questions();
        let planned = self.plan.active(&self.study, self.plan.block(block), &[], &questions);
        if runs.len() != planned.len() {
            return Err(format!("it has {}, and {} were ordered", count(runs.len(), "run"), planned.len()));
        }
        let mut runs: Vec<&RunRecord> = runs.iter().collect();
        runs.sort_by_key(|run| (run.trial.block, run.trial.position));
        for (run, trial) in runs.into_iter().zip(&planned) {
            if run.trial != *trial {
                return Err(format!("it has a run of `{}`, and `{trial}` was ordered", run.trial));
            }
            if !fits_cell(&self.study, run) {
                return Err(format!("its run of `{trial}` was made with other settings"));
            }
        }
        Ok(())
    }
}

/// Whether a run's traffic was that of its cell.
fn fits_cell(study: &Study, run: &RunRecord) -> bool {
    let Some(probe) = study.probe(run.trial.probe) else { return false };
    let found = &run.spec;
    let ordered = TrialSpec::new(found.token, &run.trial.cell, probe.clone());
    found.family == ordered.family
        && found.transport == ordered.transport
        && found.size_of == ordered.size_of
        && found.message_bytes == ordered.message_bytes
        && found.flows == ordered.flows
        && found.probe.probe == ordered.probe.probe
}

/// The numbers of a run that says it is valid contradict neither each other nor its time.
fn check_numbers(run: &RunRecord) -> Result<(), String> {
    let json = serde_json::to_string(&run.host_reports).map_err(|error| error.to_string())?;
    if let Some(number) = too_large(&json) {
        return Err(format!(
            "its run of `{}` has the number {number}, which is not a count or a time",
            run.trial
        ));
    }
    if let Some(figure) = run.host_reports.iter().find_map(HostReport::impossible_figure) {
        return Err(format!("its run of `{}` has the time {figure:e}", run.trial));
    }
    match contradictions(run) {
        Some(reasons) => {
            Err(format!("its run of `{}` contradicts itself: {}", run.trial, reasons.join("; ")))
        }
        None => Ok(()),
    }
}

fn check_times(run: &RunRecord, ordered_ns: i64, times: Times) -> Result<(), String> {
    let Times { now_ns, ahead_ns } = times;
    let since_ns = now_ns.saturating_sub(ordered_ns).max(0);
    let slack_ns = to_ns(CLOCK_SLACK) + since_ns / CLOCK_DRIFT;
    let began_ns = i64::try_from(run.started_unix_ns).unwrap_or(i64::MAX);
    let early_ns = ordered_ns.saturating_add(ahead_ns).saturating_sub(began_ns);
    if early_ns > slack_ns {
        return Err(format!(
            "its run of `{}` began {:.1} s before it was ordered",
            run.trial,
            early_ns as f64 / 1e9
        ));
    }
    let ended_ns = began_ns.saturating_add(i64::try_from(run.wall_ns).unwrap_or(i64::MAX));
    if ended_ns > now_ns.saturating_add(to_ns(MAX_AHEAD)) {
        return Err(format!("its run of `{}` ends in the future", run.trial));
    }
    Ok(())
}

fn to_ns(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{BEGAN_NS, WALL_NS, result, study};
    use crate::store::BlockKey;
    use stacklab_model::{Metric, Value};

    /// Why a result of block 0, changed like this, is refused, or nothing. It was ordered at the first run's beginning.
    fn refusal(change: impl FnOnce(&mut BlockResult)) -> String {
        refusal_at(0, 0, change)
    }

    /// The same if it was ordered later by this time, by a coordinator whose sender has a clock that is ahead.
    fn refusal_at(later_ns: i64, ahead_ns: i64, change: impl FnOnce(&mut BlockResult)) -> String {
        let checked = CheckedStudy::new(&study()).unwrap();
        let ordered_ns = BEGAN_NS as i64 + later_ns;
        let lease = Lease {
            key: BlockKey { campaign: "lab".to_owned(), pair: 0, block: 0, attempt: 1 },
            sender: "a".to_owned(),
            receiver: "b".to_owned(),
            deadline_ns: ordered_ns + to_ns(checked.lease),
        };
        let mut result = result(0);
        change(&mut result);
        let now_ns = ordered_ns + result.runs.len() as i64 * WALL_NS as i64;
        checked.check(&lease, &result, Times { now_ns, ahead_ns }).err().unwrap_or_default()
    }

    fn insert(result: &mut BlockResult, loss: f64) {
        result.runs[0].values.insert(Metric::Loss, Value::Measured(loss));
    }

    #[test]
    fn only_the_runs_of_the_order_are_taken() {
        assert_eq!(refusal(|_| {}), "");
        // In any order.
        assert_eq!(refusal(|result| result.runs.reverse()), "");
        let refusals = [
            (refusal(|result| *result = crate::fixtures::result(1)), "was ordered"),
            (refusal(|result| result.runs.iter_mut().for_each(|run| run.trial.block = 77)), "was ordered"),
            (refusal(|result| result.runs.extend(result.runs.clone())), "runs, and"),
            (refusal(|result| result.runs[1] = result.runs[0].clone()), "was ordered"),
            (refusal(|result| drop(result.runs.pop())), "runs, and"),
            (refusal(|result| result.runs.clear()), "it has 0 runs, and"),
            (refusal(|result| result.runs[0].trial.cell.size += 1), "was ordered"),
            (refusal(|result| result.runs[0].spec.message_bytes += 1), "with other settings"),
            (refusal(|result| result.runs[0].spec.flows += 1), "with other settings"),
            (refusal(|result| insert(result, 2.0)), "a figure of loss is not possible: 2"),
            (refusal(|result| insert(result, f64::MAX)), "a figure of loss is not possible"),
            (refusal(|result| result.hosts.reverse()), "its hosts are not a and b"),
            (refusal(|result| result.hosts[0].kind = "c".to_owned()), "its hosts are not a and b"),
            (refusal(|result| result.hosts.extend(result.hosts.clone())), "its hosts are not a and b"),
            (refusal(|result| result.path = "x".repeat(MAX_PATH + 1)), "its path is described with"),
        ];
        for (refused, expected) in refusals {
            assert!(refused.contains(expected), "{refused:?} has not {expected:?}");
        }
    }

    const SECOND: i64 = 1_000_000_000;

    fn begin_later(result: &mut BlockResult) {
        result.runs.iter_mut().for_each(|run| run.started_unix_ns += SECOND as u64);
    }

    #[test]
    fn runs_begin_after_their_order_by_the_senders_clock() {
        assert!(refusal_at(SECOND, 0, |_| {}).contains("began 1.0 s before it was ordered"));
        // A clock that is behind by that much.
        assert_eq!(refusal_at(SECOND, -SECOND, |_| {}), "");
        // One that is ahead says a later time than this coordinator's.
        assert_eq!(refusal_at(SECOND, 0, begin_later), "");
        assert!(refusal_at(SECOND, SECOND, begin_later).contains("before it was ordered"));
        assert!(refusal(|result| result.runs[0].started_unix_ns = u64::MAX).contains("ends in the future"));
        assert!(refusal(|result| result.runs[0].started_unix_ns = 0).contains("before it was ordered"));
        assert!(
            refusal(|result| result.runs[0].wall_ns = 3600 * SECOND as u64).contains("ends in the future")
        );
    }
}
