//! Clocks of two hosts: their offset before and after a trial, and the figures that depend on both: computed with an
//! offset, corrected for drift, or missing with the reason.

mod drift;

use crate::trial::clock::drift::{Uncertainty, correct};
use crate::trial::source::ReportSource;
use stacklab_model::{HostFacts, HostReport, Metric, TrialSpec, Value};
use stacklab_traffic::stats::clock::{Clocks, Offset};
use stacklab_trial::Figures;
use std::collections::BTreeMap;

/// Whether two hosts run on one kernel, and so share processors, and (except with time namespaces) a clock.
pub fn one_machine(one: &HostFacts, other: &HostFacts) -> bool {
    one.boot_id.is_some() && one.boot_id == other.boot_id
}

/// Whether two hosts read the same clock, as their kernel reports; an older kernel has no time namespaces.
pub(crate) fn one_clock(one: &HostFacts, other: &HostFacts) -> bool {
    one_machine(one, other) && one.time_namespace.is_some() && one.time_namespace == other.time_namespace
}

/// How two hosts' clocks are synchronised for a trial.
#[derive(Debug, Clone, PartialEq)]
pub enum ClockSync {
    /// Both hosts read the same clock.
    Same,
    /// How far the second clock is ahead of the first one.
    Compared {
        /// Before the trial: delays are computed with it.
        before: Offset,
        /// After the trial, for the correction of drift; or why it is missing.
        after: Result<Offset, String>,
    },
    /// No offset is known, with the reason.
    Unknown(String),
}

impl ClockSync {
    /// The result of a clock comparison before a trial, for hosts on one machine or not. Hosts on one machine have two
    /// clocks only with time namespaces.
    pub fn of(one_machine: bool, compared: Result<Offset, String>) -> Self {
        let before = match compared {
            Ok(offset) if one_machine && offset.offset_ns.unsigned_abs() <= offset.bound_ns => {
                return ClockSync::Same;
            }
            // For agents, 0 means that the hosts share a clock. One nanosecond is less than any bound.
            Ok(offset) if offset.offset_ns == 0 => Offset { offset_ns: 1, ..offset },
            Ok(offset) => offset,
            Err(_) if one_machine => return ClockSync::Same,
            Err(reason) => return ClockSync::Unknown(reason),
        };
        ClockSync::Compared { before, after: Err("not compared after the trial".to_owned()) }
    }

    /// The synchronisation where it need not be measured: of one clock, or where no figure that is asked for needs it.
    pub fn without_comparison(one: &HostFacts, other: &HostFacts, spec: &TrialSpec) -> Option<Self> {
        if one_clock(one, other) {
            return Some(ClockSync::Same);
        }
        let is_asked = spec.probe.metrics.iter().copied().any(Metric::is_one_way_delay);
        let reason = "not compared, because no one-way figure is requested";
        (!is_asked).then(|| ClockSync::Unknown(reason.to_owned()))
    }

    /// The offset that the agents are given, nanoseconds; 0 if they share a clock.
    pub fn offset_ns(&self) -> i64 {
        if let ClockSync::Compared { before, .. } = self { before.offset_ns } else { 0 }
    }

    /// Adds the comparison after the trial, which is made if there are two clocks. Its inner result is the reason if it
    /// failed.
    pub fn with_after<E>(
        mut self,
        compare: impl FnOnce() -> Result<Result<Offset, String>, E>,
    ) -> Result<Self, E> {
        if let ClockSync::Compared { after, .. } = &mut self {
            *after = compare()?;
        }
        Ok(self)
    }
}

/// Corrects the figures that depend on both clocks, by the clock synchronisation of the trial.
pub(crate) fn correct_for_clocks(made: Figures, sources: &[ReportSource], clocks: &ClockSync) -> Figures {
    match clocks {
        ClockSync::Same => made,
        ClockSync::Compared { before, after: Ok(after) } => without_drift(made, sources, *before, *after),
        ClockSync::Compared { after: Err(reason), .. } | ClockSync::Unknown(reason) => {
            without_one_way(made, reason)
        }
    }
}

/// Removes the figures that depend on both clocks, because the clock offset is not known well enough.
fn without_one_way(mut made: Figures, reason: &str) -> Figures {
    for metric in Metric::ALL.iter().copied().filter(|metric| metric.is_one_way_delay()) {
        if let Some(value) = made.values.get_mut(&metric) {
            *value = missing(reason);
        }
    }
    for report in made.host_reports.iter_mut().skip(1).step_by(2) {
        (report.delays, report.delay_points) = (None, None);
        report.received.least_delays.clear();
        report.series.iter_mut().for_each(|row| row.delay_mean_ns = None);
        report.slices.iter_mut().for_each(|slice| (slice.delay_ns, slice.jitter_ns) = (None, None));
    }
    made
}

fn missing(reason: &str) -> Value {
    Value::Missing(format!("clock: {reason}"))
}

/// Corrects one-way figures computed with the offset from before the trial: removes the drift, states the bound, and
/// omits figures smaller than the bound.
fn without_drift(mut made: Figures, sources: &[ReportSource], before: Offset, after: Offset) -> Figures {
    let clocks = Clocks { before, after };
    let Figures { values, host_reports, .. } = &mut made;
    let receivers = host_reports.iter_mut().zip(sources).skip(1).step_by(2);
    for (number, (report, source)) in receivers.enumerate() {
        let clocks = if source.forward { clocks } else { clocks.reversed() };
        let corrected = correct(report, &clocks);
        // Only the first stream gives figures.
        if number > 0 {
            continue;
        }
        match corrected {
            Ok(uncertainty) => keep_significant(values, report, &uncertainty),
            Err(reason) => return without_one_way(made, &reason),
        }
    }
    made
}

/// Replaces the figures by the corrected ones, and omits those that are smaller than their error.
fn keep_significant(
    values: &mut BTreeMap<Metric, Value>,
    report: &mut HostReport,
    uncertainty: &Uncertainty,
) {
    let Some(delays) = &report.delays else { return };
    let median = match values.get(&Metric::OneWayDelay).and_then(Value::measured) {
        // The figure of an arm is of the rounds that no arm was held up in, not of all messages.
        Some(joint_ms) if !report.slices.is_empty() => Some(joint_ms * 1e6 - uncertainty.taken_ns),
        _ => delays.buckets.percentile(0.5).map(|ns| ns as f64),
    };
    let p999 = delays.buckets.percentile(0.999).map(|ns| ns as f64);
    for (metric, corrected, wrong_ns) in [
        (Metric::OneWayDelay, median, uncertainty.median_ns),
        (Metric::OneWayDelayP999, p999, uncertainty.median_ns),
        (Metric::OneWayDelayMean, Some(delays.mean_ns), uncertainty.mean_ns),
        (Metric::Jitter, None, uncertainty.step_ns),
        (Metric::JitterRfc3550, None, uncertainty.step_ns),
        (Metric::Pdv, None, uncertainty.spread_ns),
    ] {
        let Some(Value::Measured(figure)) = values.get_mut(&metric) else { continue };
        if let Some(ns) = corrected {
            *figure = ns / 1e6;
        }
        if *figure * 1e6 <= wrong_ns {
            let reason =
                format!("the clock error bound is {:.4} ms, the figure {:.4} ms", wrong_ns / 1e6, *figure);
            values.insert(metric, missing(&reason));
        }
    }
    if !matches!(values.get(&Metric::OneWayDelayMean), Some(Value::Measured(_))) {
        report.series.iter_mut().for_each(|row| row.delay_mean_ns = None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::fixtures::{make_receiver_report, stream_of};
    use crate::trial::source::report_sources;
    use stacklab_model::{Direction, Slice};

    #[test]
    fn clocks_that_were_not_compared_tell_no_delay() {
        let (_, made) = stream_of(Vec::new());
        let run = correct_for_clocks(
            made,
            &report_sources(Direction::Forward),
            &ClockSync::Unknown("nobody answered".to_owned()),
        );
        for metric in
            [Metric::OneWayDelay, Metric::OneWayDelayMean, Metric::Jitter, Metric::JitterRfc3550, Metric::Pdv]
        {
            assert_eq!(run.values[&metric], Value::Missing("clock: nobody answered".to_owned()));
        }
        assert_eq!(run.values[&Metric::Throughput], Value::Measured(1.0));
    }

    /// The figures when the clocks were compared a second before and a second after the trial.
    fn figures_of(report: HostReport, gained_ns: i64, bound_ns: u64) -> Figures {
        figures_in(Direction::Forward, report, gained_ns, bound_ns)
    }

    /// The same for a stream in a direction; the offset is that of the testbed's receiver.
    fn figures_in(direction: Direction, report: HostReport, gained_ns: i64, bound_ns: u64) -> Figures {
        let offset_ns = 5_000_000_000;
        let before = Offset { offset_ns, bound_ns, at_ns: 20_000_000_000 };
        let after = Offset { offset_ns: offset_ns + gained_ns, bound_ns, at_ns: 32_000_000_000 };
        let (_, made) = stream_of(vec![make_receiver_report(0, 0.0), report]);
        correct_for_clocks(
            made,
            &report_sources(direction),
            &ClockSync::Compared { before, after: Ok(after) },
        )
    }

    #[test]
    fn in_reverse_the_offset_is_the_other_way_round() {
        let run = figures_in(Direction::Reverse, make_receiver_report(-5_000_000_000, 0.0), 0, 900_000);
        assert_eq!(run.values[&Metric::OneWayDelay], Value::Measured(1.0));
        assert_eq!(run.host_reports[1].delay_points.unwrap().compared.unwrap().offset_ns, -5_000_000_000);
    }

    #[test]
    fn drift_is_removed_from_delays_and_its_bound_stated() {
        let run = figures_of(make_receiver_report(5_000_000_000, 20_000.0), 240_000, 10_000);
        let figure = |metric: Metric| run.values[&metric].measured().unwrap();
        assert!((figure(Metric::OneWayDelayMean) - 1.0).abs() < 1e-5);
        // Of ten seconds, the fifth is just below the middle.
        assert!((figure(Metric::OneWayDelay) - 0.99).abs() < 1e-5);
        let side = &run.host_reports[1];
        let compared = side.delay_points.unwrap().compared.unwrap();
        assert_eq!((compared.offset_ns, compared.skew_ns_per_s), (5_000_000_000, 20_000));
        // The bound, and half of the clock's gain in the window.
        assert!((110_000..=111_000).contains(&compared.bound_ns), "{compared:?}");
        for row in &side.series {
            assert!((row.delay_mean_ns.unwrap() - 1e6).abs() < 2.0, "{row:?}");
        }
        assert!(side.received.least_delays.is_empty());
    }

    #[test]
    fn interleaved_joint_figure_and_slices_are_corrected() {
        let gained = 20_000.0;
        let mut report = make_receiver_report(5_000_000_000, gained);
        for second in 0..10_u32 {
            report.slices.push(Slice {
                round: second,
                messages: 100,
                first_ns: report.received.first_ns + u64::from(second) * 1_000_000_000,
                delay_ns: Some(1_000_000 + (gained * (f64::from(second) + 1.0)) as u64),
                jitter_ns: Some(5.0),
                ..Slice::default()
            });
        }
        let run = figures_of(report.clone(), 240_000, 10_000);
        // The joint figure was 1 ms; the clock had gained 20 us a second for 1 s before and 5 s of the window.
        let delay = run.values[&Metric::OneWayDelay].measured().unwrap();
        assert!((delay - (1.0 - 0.12)).abs() < 1e-3, "{delay}");
        for slice in &run.host_reports[1].slices {
            assert!(slice.delay_ns.unwrap().abs_diff(1_000_000) <= 1, "{slice:?}");
        }
        let (_, made) = stream_of(vec![make_receiver_report(0, 0.0), report]);
        let unknown = ClockSync::Unknown("nobody answered".to_owned());
        let run = correct_for_clocks(made, &report_sources(Direction::Forward), &unknown);
        for slice in &run.host_reports[1].slices {
            assert_eq!((slice.delay_ns, slice.jitter_ns), (None, None));
        }
    }

    #[track_caller]
    fn explain_missing(run: &Figures, metric: Metric) -> &str {
        match &run.values[&metric] {
            Value::Missing(reason) => reason,
            other => panic!("{metric}: {other:?}"),
        }
    }

    #[test]
    fn what_is_smaller_than_the_clocks_bound_is_missing() {
        let run = figures_of(make_receiver_report(5_000_000_000, 0.0), 0, 1_100_000);
        for metric in [Metric::OneWayDelay, Metric::OneWayDelayMean, Metric::Pdv] {
            assert!(explain_missing(&run, metric).starts_with("clock: "), "{metric}");
        }
        // Two successive messages differ by far less than the clocks could drift between them.
        assert_eq!(run.values[&Metric::Jitter], Value::Measured(1.0));
        assert!(run.host_reports[1].series.iter().all(|row| row.delay_mean_ns.is_none()));
        let run = figures_of(make_receiver_report(5_000_000_000, 0.0), 0, 900_000);
        assert_eq!(run.values[&Metric::OneWayDelay], Value::Measured(1.0));
        assert_eq!(run.host_reports[1].delay_points.unwrap().compared.unwrap().bound_ns, 900_000);
        // Delays cut off at 0 by a slow clock, and an agent that applied no offset.
        let cut = figures_of(make_receiver_report(5_000_000_000, -200_000.0), -2_400_000, 10_000);
        assert!(explain_missing(&cut, Metric::OneWayDelay).contains("more than the delays"));
        let older = figures_of(make_receiver_report(0, 0.0), 0, 10_000);
        assert!(explain_missing(&older, Metric::Jitter).contains("older"));
    }

    fn make_offset(offset_ns: i64) -> Offset {
        Offset { offset_ns, bound_ns: 40, at_ns: 9 }
    }

    #[test]
    fn clocks_are_one_on_one_machine_without_a_difference() {
        assert_eq!(ClockSync::of(true, Ok(make_offset(-40))), ClockSync::Same);
        assert_eq!(ClockSync::of(true, Ok(make_offset(41))).offset_ns(), 41);
        assert_eq!(ClockSync::of(false, Ok(make_offset(-40))).offset_ns(), -40);
        // 0 would mean that the hosts share a clock.
        assert_eq!(ClockSync::of(false, Ok(make_offset(0))).offset_ns(), 1);
        assert_eq!(ClockSync::of(true, Err("no".to_owned())), ClockSync::Same);
        assert_eq!(ClockSync::of(false, Err("no".to_owned())), ClockSync::Unknown("no".to_owned()));
    }
}
