//! The runs of a record. Of one that was made by an earlier version, the figures of interleaved trials are computed
//! again from their slices: all rounds counted alike, and on a busy machine round trips said nothing.

use stacklab_model::{Ends, HostReport, RunRecord, RunStatus, Value};
use stacklab_store::{Record, StoreError};
use stacklab_trial::results::interleaved::locate_arms;
use stacklab_trial::validate::finished_run;
use std::iter::{Peekable, from_fn};
use std::mem::take;

/// A run of a record with its host reports. One whose numbers contradict each other is invalid, whatever the record
/// says.
pub fn with_reports(record: &Record, mut run: RunRecord) -> Result<RunRecord, StoreError> {
    add_reports(record, &mut run)?;
    Ok(run)
}

/// Adds the host reports of a run of a record. One whose numbers contradict each other is invalid, whatever the record
/// says.
pub(crate) fn add_reports(record: &Record, run: &mut RunRecord) -> Result<(), StoreError> {
    run.host_reports = record.host_reports(&run.trial)?;
    if let Some(reasons) = contradictions(run) {
        run.status = RunStatus::Invalid(reasons);
    }
    Ok(())
}

/// What a run contradicts that somebody else made and calls valid; `None` if nothing.
pub fn contradictions(run: &RunRecord) -> Option<Vec<String>> {
    let reasons = if run.is_valid() { finished_run(run) } else { Vec::new() };
    if reasons.is_empty() { None } else { Some(reasons) }
}

/// Every run in the order of measuring, with its figures and warnings but without its host reports.
pub fn read_runs(record: &Record) -> Result<Vec<RunRecord>, StoreError> {
    read_runs_in_turn(record)?.collect()
}

/// The same, one after the other: few are in memory at a time.
pub fn read_runs_in_turn(
    record: &Record,
) -> Result<Box<dyn Iterator<Item = Result<RunRecord, StoreError>> + '_>, StoreError> {
    let runs = record.runs_in_turn();
    if !record.has_earlier_reports()? {
        return Ok(Box::new(runs));
    }
    let mut runs = runs.peekable();
    let mut located = Vec::new().into_iter();
    Ok(Box::new(from_fn(move || {
        if let Some(run) = located.next() {
            return Some(Ok(run));
        }
        match next_trial(&mut runs)?.and_then(|trial| locate_again(record, trial)) {
            Ok(trial) => {
                located = trial.into_iter();
                located.next().map(Ok)
            }
            Err(error) => Some(Err(error)),
        }
    })))
}

/// The next run and those that were measured together with it.
fn next_trial(
    runs: &mut Peekable<impl Iterator<Item = Result<RunRecord, StoreError>>>,
) -> Option<Result<Vec<RunRecord>, StoreError>> {
    let mut trial = match runs.next()? {
        Ok(run) => vec![run],
        Err(error) => return Some(Err(error)),
    };
    while let Some(Ok(other)) =
        runs.next_if(|next| next.as_ref().is_ok_and(|next| is_beside(next, &trial[0])))
    {
        trial.push(other);
    }
    Some(Ok(trial))
}

fn is_beside(run: &RunRecord, first: &RunRecord) -> bool {
    !run.spec.schedule.is_alone()
        && (run.trial.block, run.started_unix_ns) == (first.trial.block, first.started_unix_ns)
}

/// Reads the reports of a trial, if all of its arms are valid, and replaces its figures.
fn locate_again(record: &Record, mut trial: Vec<RunRecord>) -> Result<Vec<RunRecord>, StoreError> {
    if trial.len() < 2 || !trial.iter().all(RunRecord::is_valid) {
        return Ok(trial);
    }
    let mut reports = Vec::new();
    for run in &mut trial {
        add_reports(record, run)?;
        match <[HostReport; 2]>::try_from(take(&mut run.host_reports)) {
            Ok([sender, receiver]) if run.is_valid() => reports.push(Ends { sender, receiver }),
            _ => return Ok(trial),
        }
    }
    replace_figures(&mut trial, &reports);
    Ok(trial)
}

/// Replaces the measured figures of the arms of a trial that their slices have.
fn replace_figures(trial: &mut [RunRecord], reports: &[Ends<HostReport>]) {
    let arms: Vec<_> = trial.iter().map(|run| &run.spec).zip(reports).collect();
    let figures = locate_arms(&arms);
    for (run, figures) in trial.iter_mut().zip(figures) {
        for (metric, figure) in figures {
            if matches!(run.values.get(&metric), Some(Value::Measured(_))) {
                run.values.insert(metric, figure);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::fixtures::make_receiver_report;
    use stacklab_model::{ArmSchedule, Cell, Family, Metric, Probe, Role, SizeOf, Slice, Transport, Trial};

    /// A record of an earlier version, whose runs are of an honest testbed.
    const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/records/kept.stacklab");

    #[test]
    fn kept_runs_contradict_nothing() {
        let record = Record::read(KEPT.as_ref()).unwrap();
        let mut reports = 0;
        for run in read_runs_in_turn(&record).unwrap() {
            let whole = with_reports(&record, run.unwrap()).unwrap();
            assert_eq!(contradictions(&whole), None, "{}", whole.trial);
            assert!(whole.is_valid(), "{}: {:?}", whole.trial, whole.status);
            reports += whole.host_reports.len();
        }
        assert!(reports > 10, "{reports}");
    }

    #[test]
    fn record_that_contradicts_itself_has_invalid_runs() {
        let run = arm(Family::Ipv6, 0, 1);
        assert_eq!(contradictions(&run), None);
        let mut lie = run.clone();
        lie.host_reports = echo_reports(20_000, 0).into_iter().collect();
        lie.host_reports[0].received.bytes = 1;
        let reasons = contradictions(&lie).unwrap();
        assert!(reasons.iter().any(|reason| reason.contains("1 bytes received")), "{reasons:?}");
        lie.status = RunStatus::Invalid(vec!["it says so".to_owned()]);
        assert_eq!(contradictions(&lie), None);
    }

    /// An arm of an echo, which began at a time.
    fn arm(family: Family, position: u32, started_unix_ns: u64) -> RunRecord {
        let cell = Cell::new(family, Transport::Udp, SizeOf::Payload, 128);
        let trial = Trial { block: 0, position, cell, probe: Probe::Echo };
        let mut run = RunRecord::with_value(trial, Metric::Rtt, Value::Measured(1.0));
        run.spec.schedule = ArmSchedule::TokenPassing(None);
        RunRecord { started_unix_ns, ..run }
    }

    /// Slices of 25 round trips; in three of ten rounds one that took 4 ms.
    fn echo_reports(round_trip_ns: u64, first_held_up: u32) -> Ends<HostReport> {
        let mut sender = HostReport { role: Role::Sender, ..make_receiver_report(0, 0.0) };
        sender.sent.measured = sender.received.measured;
        for round in 0..20 {
            let is_held_up = (round + first_held_up) % 10 < 3;
            sender.slices.push(Slice {
                round,
                messages: if is_held_up { 1 } else { 25 },
                delay_ns: Some(if is_held_up { 4_000_000 } else { round_trip_ns }),
                ..Slice::default()
            });
        }
        Ends { sender, receiver: make_receiver_report(0, 0.0) }
    }

    #[test]
    fn rounds_of_one_late_round_trip_hardly_count() {
        let mut trial = [arm(Family::Ipv4, 0, 7), arm(Family::Ipv6, 1, 7)];
        trial[0].values.insert(Metric::Loss, Value::Measured(0.5));
        replace_figures(&mut trial, &[echo_reports(20_000, 0), echo_reports(20_600, 4)]);
        let [ipv4, ipv6] = trial.each_ref().map(|run| run.values[&Metric::Rtt].measured().unwrap());
        assert!((ipv6 / ipv4 - 1.03).abs() < 0.01, "{ipv4} and {ipv6} ms");
        assert_eq!(trial[0].values[&Metric::Loss], Value::Measured(0.5), "slices have none");
    }

    #[test]
    fn arms_of_one_trial_began_together() {
        let mut alone = arm(Family::Ipv4, 4, 9);
        alone.spec.schedule = ArmSchedule::Alone;
        let runs = [arm(Family::Ipv4, 0, 7), arm(Family::Ipv6, 1, 7), arm(Family::Ipv4, 2, 8), alone];
        let mut runs = runs.map(Ok).into_iter().peekable();
        let mut lengths = Vec::new();
        while let Some(trial) = next_trial(&mut runs) {
            lengths.push(trial.unwrap().len());
        }
        assert_eq!(lengths, [2, 1, 1]);
    }
}
