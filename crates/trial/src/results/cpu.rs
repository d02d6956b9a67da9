//! CPU time figures.

use stacklab_model::{CpuScope, CpuTime, HostReport, Value};

/// Divisor that turns nanoseconds of CPU time into per cent of a core per Gbit/s: one bit per nanosecond is one
/// Gbit/s.
pub(super) fn gigabits(bytes: u64) -> f64 {
    bytes as f64 * 8.0 / 100.0
}

/// CPU time of a sender for the messages of its measured window, nanoseconds. If CPU time covers the whole trial, the
/// share of the measured messages among all messages.
pub(super) fn sent_in(side: &HostReport) -> Option<f64> {
    let sent = &side.sent;
    side.cpu.as_ref().map(|time| of_measured(time, sent.measured, sent.warmup))
}

/// The same for a receiver and its arrivals.
pub(super) fn received_in(side: &HostReport) -> Option<f64> {
    let received = &side.received;
    side.cpu.as_ref().map(|time| of_measured(time, received.measured, received.warmup))
}

fn of_measured(time: &CpuTime, measured: u64, warmup: u64) -> f64 {
    let share =
        if time.scope == CpuScope::Outside { measured as f64 / (measured + warmup) as f64 } else { 1.0 };
    time.busy_ns() as f64 * share
}

pub(super) fn busy_over(busy_ns: Option<f64>, amount: f64, otherwise: &str) -> Value {
    match busy_ns {
        Some(busy_ns) => Value::finite(busy_ns / amount, otherwise),
        None => Value::Missing("the host counts no CPU time".to_owned()),
    }
}

/// A CPU time component, per cent of one core over the window.
pub(super) fn of_window(time: Option<&CpuTime>, part: fn(&CpuTime) -> u64) -> Value {
    match time {
        Some(time) => {
            Value::finite(part(time) as f64 * 100.0 / time.window_ns as f64, "the window was empty")
        }
        None => Value::Missing("the host counts no CPU time".to_owned()),
    }
}

/// A CPU time component; missing for a guest counted from outside, where kernel and programs cannot be distinguished.
pub(super) fn divided(time: Option<&CpuTime>, part: fn(&CpuTime) -> u64) -> Value {
    match time {
        Some(time) if time.scope == CpuScope::Outside => Value::Missing(
            "the guest is measured from outside, which does not separate its kernel from its programs"
                .to_owned(),
        ),
        Some(time) if time.scope == CpuScope::Threads && time.undivided => Value::Missing(
            "the system does not divide a thread's CPU time into user and kernel time".to_owned(),
        ),
        time => of_window(time, part),
    }
}

/// Software interrupts, if the host counts them separately.
pub(super) fn softirq(time: Option<&CpuTime>) -> Value {
    match time {
        Some(time) if time.undivided && !matches!(time.scope, CpuScope::Outside | CpuScope::Threads) => {
            Value::Missing("the host counts interrupts as system time".to_owned())
        }
        Some(time) if time.scope == CpuScope::Threads => {
            Value::Missing("a thread's CPU time has interrupts in its kernel time".to_owned())
        }
        time => divided(time, |time| time.softirq_ns),
    }
}

pub(super) fn own_user(time: Option<&CpuTime>) -> Value {
    match time {
        Some(time) if time.scope == CpuScope::Threads => divided(Some(time), |time| time.own_user_ns),
        time => of_window(time, |time| time.own_user_ns),
    }
}
