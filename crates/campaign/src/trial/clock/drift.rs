//! Removes the drift of two hosts' clocks from the one-way delays of a report, and states what error remains.

use stacklab_model::{
    Buckets, Compared, DelayPoints, HostReport, IntervalRow, MAX_NUMBER, Slice, is_in_bounds,
};
use stacklab_traffic::stats::clock::{Clocks, Drift};

/// Clocks that drift further apart are no clocks: a second each second, in nanoseconds.
const MAX_SKEW: f64 = 1e9;

/// What was taken from the figures, and their maximum errors, nanoseconds.
pub(super) struct Uncertainty {
    /// What was taken from each delay, at the mean time of the arrivals.
    pub taken_ns: f64,
    /// For a mean delay.
    pub mean_ns: f64,
    /// For a percentile of delays; the drift was removed as if all messages had arrived at their mean time.
    pub median_ns: f64,
    /// For the difference of two delays at both ends of the window.
    pub spread_ns: f64,
    pub step_ns: f64,
}

/// Corrects the delays of a report: of its series and slices by the time of each, of its distribution at the mean time
/// of all arrivals. Fails if no delay of the report can be trusted.
pub(super) fn correct(report: &mut HostReport, clocks: &Clocks) -> Result<Uncertainty, String> {
    let minima = std::mem::take(&mut report.received.least_delays);
    let Some(delays) = &mut report.delays else { return Err("no delay was measured".to_owned()) };
    let compared = find_comparison(report.delay_points.as_mut(), clocks.before.offset_ns)?;
    let drift = clocks.drift(&minima);
    check_drift(&drift, &minima)?;
    let first_ns = report.received.first_ns;
    let window_ns = report.received.last_ns.saturating_sub(first_ns);
    let gain =
        Gain { skew: drift.skew, since_compared_ns: first_ns.saturating_sub(clocks.before.at_ns) as f64 };
    let mean_time = correct_series(&mut report.series, window_ns, &gain);
    correct_slices(&mut report.slices, first_ns, &gain);
    let taken_ns = gain.at(mean_time);
    delays.mean_ns -= taken_ns;
    delays.buckets = shift(&delays.buckets, -taken_ns);
    let uncertainty = Uncertainty {
        taken_ns,
        ..bound_errors(clocks, &drift, window_ns as f64, mean_time, report.received.measured)
    };
    *compared = Compared {
        offset_ns: clocks.before.offset_ns,
        bound_ns: (uncertainty.median_ns.ceil() as u64).min(MAX_NUMBER),
        skew_ns_per_s: (drift.skew * 1e9).round().clamp(-MAX_SKEW, MAX_SKEW) as i64,
    };
    let mean_ns = delays.mean_ns;
    let is_possible = report.series.iter().filter_map(|row| row.delay_mean_ns).all(is_in_bounds);
    if !is_in_bounds(mean_ns) || !is_possible {
        report.delays = None;
        report.series.iter_mut().for_each(|row| row.delay_mean_ns = None);
        return Err(
            "a delay is longer than 30 years without the clocks' difference: set the clocks".to_owned()
        );
    }
    Ok(uncertainty)
}

/// The place in a report for the comparison of the clocks, if the agent has applied this offset.
fn find_comparison(points: Option<&mut DelayPoints>, offset_ns: i64) -> Result<&mut Compared, String> {
    let compared = points.and_then(|points| points.compared.as_mut());
    compared.filter(|given| given.offset_ns == offset_ns).ok_or_else(|| {
        "the receiver's agent is older and does not support clock offsets: install the same stacklab on both"
            .to_owned()
    })
}

/// A delay of 0 was cut off there, so that the drift cannot be removed from it.
fn check_drift(drift: &Drift, minima: &[(u64, u64)]) -> Result<(), String> {
    if drift.skew != 0.0 && minima.iter().any(|least| least.1 == 0) {
        return Err(format!(
            "the clocks drift by {:.1} us/s, more than the delays over this run: shorten the run, or discipline both (chrony)",
            drift.skew.abs() * 1e6
        ));
    }
    Ok(())
}

/// How far the receiver's clock has moved since the comparison before the trial.
struct Gain {
    /// Nanoseconds per nanosecond.
    skew: f64,
    /// From the comparison to the first arrival.
    since_compared_ns: f64,
}

impl Gain {
    /// The error of a delay, by the time of its arrival since the first one.
    fn at(&self, since_ns: f64) -> f64 {
        self.skew * (self.since_compared_ns + since_ns)
    }
}

/// Returns the mean time of the arrivals since the first one, nanoseconds.
fn correct_series(series: &mut [IntervalRow], window_ns: u64, gain: &Gain) -> f64 {
    let ends: Vec<u64> = series.iter().skip(1).map(|row| row.start_ns).chain([window_ns]).collect();
    let mut weight = 0.0;
    let mut moment = 0.0;
    for (row, end_ns) in series.iter_mut().zip(ends) {
        let middle = (row.start_ns + end_ns.max(row.start_ns)) as f64 / 2.0;
        weight += row.messages as f64;
        moment += row.messages as f64 * middle;
        row.delay_mean_ns = row.delay_mean_ns.map(|ns| ns - gain.at(middle));
    }
    if weight > 0.0 { moment / weight } else { window_ns as f64 / 2.0 }
}

fn correct_slices(slices: &mut [Slice], first_ns: u64, gain: &Gain) {
    for slice in slices {
        let gained_ns = gain.at(slice.first_ns.saturating_sub(first_ns) as f64);
        slice.delay_ns = slice.delay_ns.map(|ns| (ns as f64 - gained_ns).round() as u64);
    }
}

/// The maximum errors of the figures of a window with this many messages.
fn bound_errors(
    clocks: &Clocks,
    drift: &Drift,
    window_ns: f64,
    mean_time: f64,
    messages: u64,
) -> Uncertainty {
    let bound = drift.bound_ns as f64;
    let compared_for = clocks.after.at_ns.saturating_sub(clocks.before.at_ns).max(1) as f64;
    let open = (clocks.before.bound_ns + clocks.after.bound_ns) as f64 / compared_for;
    let spread_ns = (drift.skew.abs() + open) * window_ns;
    Uncertainty {
        taken_ns: 0.0,
        mean_ns: bound,
        median_ns: bound + drift.skew.abs() * mean_time.max(window_ns - mean_time),
        spread_ns,
        step_ns: spread_ns / messages.max(1) as f64,
    }
}

fn shift(buckets: &Buckets, by_ns: f64) -> Buckets {
    let mut moved: Vec<(u64, u64)> = Vec::new();
    for (value, count) in &buckets.0 {
        let value = value.saturating_add_signed(by_ns.round() as i64).min(MAX_NUMBER);
        match moved.last_mut() {
            Some(last) if last.0 == value => {
                last.1 = last.1.saturating_add(*count).min(MAX_NUMBER);
            }
            _ => moved.push((value, *count)),
        }
    }
    Buckets(moved)
}
