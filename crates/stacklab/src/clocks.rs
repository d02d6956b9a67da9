//! Figures that need both ends' clocks: taken by an offset, corrected for drift, or missing with the reason.

use stacklab_model::{Buckets, Compared, HostFacts, HostReport, Metric, RunRecord, Value};
use stacklab_traffic::stats::clock::{Clocks, Offset};

/// Whether two hosts run on one kernel, and so share processors, and their clock too but for time namespaces.
pub fn one_machine(one: &HostFacts, other: &HostFacts) -> bool {
    one.boot_id.is_some() && one.boot_id == other.boot_id
}

/// Whether two hosts read the same clock, as their kernel says; an older one knows no time namespaces.
pub fn one_clock(one: &HostFacts, other: &HostFacts) -> bool {
    one_machine(one, other) && one.time_namespace.is_some() && one.time_namespace == other.time_namespace
}

/// What is known of two hosts' clocks before a trial.
#[derive(Debug, Clone, PartialEq)]
pub enum Known {
    /// They are one clock.
    One,
    /// The second one is ahead of the first one by so much.
    Apart(Offset),
    /// Nothing, and why.
    Nothing(String),
}

impl Known {
    /// From their comparison, for hosts on one machine or not. A time namespace on one machine has a clock of its own.
    pub fn of(one_machine: bool, compared: Result<Offset, String>) -> Self {
        match compared {
            Ok(offset) if one_machine && offset.offset_ns.unsigned_abs() <= offset.bound_ns => Known::One,
            // To agents 0 says that the clocks are one. A nanosecond is less than any bound.
            Ok(offset) if offset.offset_ns == 0 => Known::Apart(Offset { offset_ns: 1, ..offset }),
            Ok(offset) => Known::Apart(offset),
            Err(_) if one_machine => Known::One,
            Err(reason) => Known::Nothing(reason),
        }
    }

    /// What the agents are told.
    pub fn offset_ns(&self) -> i64 {
        match self {
            Known::Apart(offset) => offset.offset_ns,
            Known::One | Known::Nothing(_) => 0,
        }
    }

    /// Finishes the one-way figures of a run that was taken by this: with the clocks compared again, where there are two.
    ///
    /// # Errors
    /// The comparison's; inside is the reason where it did not work.
    pub fn finish<E>(
        self,
        run: &mut RunRecord,
        compare: impl FnOnce() -> Result<Result<Offset, String>, E>,
    ) -> Result<(), E> {
        match self {
            Known::One => {}
            Known::Apart(before) => match compare()? {
                Ok(after) => settle(run, before, after),
                Err(reason) => forget_one_way(run, &reason),
            },
            Known::Nothing(reason) => forget_one_way(run, &reason),
        }
        Ok(())
    }
}

/// Takes out of a run what was made of the difference of two clocks of which too little is known.
pub fn forget_one_way(run: &mut RunRecord, reason: &str) {
    for metric in Metric::ALL.iter().copied().filter(|metric| metric.is_one_way_delay()) {
        if let Some(value) = run.values.get_mut(&metric) {
            *value = missing(reason);
        }
    }
    for side in run.host_reports.iter_mut().skip(1).step_by(2) {
        (side.delays, side.delay_points) = (None, None);
        side.received.least_delays.clear();
        side.series.iter_mut().for_each(|row| row.delay_mean_ns = None);
    }
}

fn missing(reason: &str) -> Value {
    Value::Missing(format!("clock: {reason}"))
}

/// Finishes the one-way figures of a run that was taken by the offset before it, now that the clocks were compared
/// again: takes the drift out, states the bound, and leaves out what is smaller than it.
pub fn settle(run: &mut RunRecord, before: Offset, after: Offset) {
    let clocks = Clocks { before, after };
    for (number, side) in run.host_reports.iter_mut().skip(1).step_by(2).enumerate() {
        let clocks = if number == 0 { clocks } else { clocks.reversed() };
        let corrected = correct(side, &clocks);
        // The figures are the first stream's.
        if number > 0 {
            continue;
        }
        match corrected {
            Ok(left) => judge(&mut run.values, side, &left),
            Err(reason) => {
                forget_one_way(run, &reason);
                return;
            }
        }
    }
}

/// How wrong figures may still be, nanoseconds.
struct Left {
    /// A delay's mean.
    mean_ns: f64,
    /// A percentile of delays, from which the drift was taken as if all had arrived at their mean time.
    median_ns: f64,
    /// The difference of two delays at both ends of the window.
    spread_ns: f64,
    /// That of two messages in a row.
    step_ns: f64,
}

/// Takes the drift out of a receiver's delays.
fn correct(side: &mut HostReport, clocks: &Clocks) -> Result<Left, String> {
    let minima = std::mem::take(&mut side.received.least_delays);
    let Some(delays) = &mut side.delays else { return Err("no delay was measured".to_owned()) };
    let offset_ns = clocks.before.offset_ns;
    let points = side.delay_points.as_mut();
    let Some(compared) =
        points.and_then(|points| points.compared.as_mut()).filter(|told| told.offset_ns == offset_ns)
    else {
        return Err(
            "the receiver's agent is older and takes no offset: install the same stacklab on both".to_owned()
        );
    };
    let drift = clocks.drift(&minima);
    if drift.skew != 0.0 && minima.iter().any(|least| least.1 == 0) {
        return Err(format!(
            "one gains {:.1} us a second on the other, and delays are shorter than what that came to: shorten the run, or discipline both (chrony)",
            drift.skew.abs() * 1e6
        ));
    }
    let (first_ns, last_ns) = (side.received.first_ns, side.received.last_ns);
    let window_ns = last_ns.saturating_sub(first_ns);
    // By how much a delay that ended so long after the first arrival is too long.
    let gained =
        |since_ns: f64| drift.skew * (first_ns.saturating_sub(clocks.before.at_ns) as f64 + since_ns);
    let ends: Vec<u64> = side.series.iter().skip(1).map(|row| row.start_ns).chain([window_ns]).collect();
    let (mut weight, mut moment) = (0.0, 0.0);
    for (row, end_ns) in side.series.iter_mut().zip(ends) {
        let middle = (row.start_ns + end_ns.max(row.start_ns)) as f64 / 2.0;
        weight += row.messages as f64;
        moment += row.messages as f64 * middle;
        row.delay_mean_ns = row.delay_mean_ns.map(|ns| ns - gained(middle));
    }
    let mean_time = if weight > 0.0 { moment / weight } else { window_ns as f64 / 2.0 };
    let shift = gained(mean_time);
    delays.mean_ns -= shift;
    delays.buckets = shifted(&delays.buckets, -shift);
    let bound = drift.bound_ns as f64;
    let median_ns = bound + drift.skew.abs() * mean_time.max(window_ns as f64 - mean_time);
    let compared_for = clocks.after.at_ns.saturating_sub(clocks.before.at_ns).max(1) as f64;
    let open = (clocks.before.bound_ns + clocks.after.bound_ns) as f64 / compared_for;
    let spread_ns = (drift.skew.abs() + open) * window_ns as f64;
    let step_ns = spread_ns / side.received.measured.max(1) as f64;
    *compared = Compared {
        offset_ns,
        bound_ns: median_ns.ceil() as u64,
        skew_ns_per_s: (drift.skew * 1e9).round() as i64,
    };
    Ok(Left { mean_ns: bound, median_ns, spread_ns, step_ns })
}

fn shifted(buckets: &Buckets, by_ns: f64) -> Buckets {
    let mut moved: Vec<(u64, u64)> = Vec::new();
    for (value, count) in &buckets.0 {
        let value = value.saturating_add_signed(by_ns.round() as i64);
        match moved.last_mut() {
            Some(last) if last.0 == value => last.1 += count,
            _ => moved.push((value, *count)),
        }
    }
    Buckets(moved)
}

/// Puts the corrected figures in their places, and leaves out those that are smaller than what they may be wrong by.
fn judge(values: &mut std::collections::BTreeMap<Metric, Value>, side: &mut HostReport, left: &Left) {
    let Some(delays) = &side.delays else { return };
    let median = delays.buckets.percentile(0.5).map(|ns| ns as f64);
    for (metric, corrected, wrong_ns) in [
        (Metric::OneWayDelay, median, left.median_ns),
        (Metric::OneWayDelayMean, Some(delays.mean_ns), left.mean_ns),
        (Metric::Jitter, None, left.step_ns),
        (Metric::JitterRfc3550, None, left.step_ns),
        (Metric::Pdv, None, left.spread_ns),
    ] {
        let Some(Value::Measured(figure)) = values.get_mut(&metric) else { continue };
        if let Some(ns) = corrected {
            *figure = ns / 1e6;
        }
        if *figure * 1e6 <= wrong_ns {
            let reason = format!(
                "the two hosts' are known to {:.4} ms for it, and it would be {:.4} ms",
                wrong_ns / 1e6,
                *figure
            );
            values.insert(metric, missing(&reason));
        }
    }
    if !matches!(values.get(&Metric::OneWayDelayMean), Some(Value::Measured(_))) {
        side.series.iter_mut().for_each(|row| row.delay_mean_ns = None);
    }
}
