//! Rules of times: each window is within the trial, by the clock of the host that reports.

use super::Host;
use crate::validate::Rule;
use stacklab_model::{HostReport, print_duration};

/// By how much the last time may be before the first, nanoseconds. A reflector keeps the times of its first and its
/// last message in the order in which they were read, and kernel timestamps of two processors differ by microseconds.
const MAX_BACKWARDS_NS: u64 = 1_000_000;

pub(super) fn time_rules(host: &Host<'_>) -> Vec<Rule> {
    let HostReport { sent, received, slices, series, .. } = host.report;
    let name = host.role;
    let mut rules = Vec::new();
    if sent.measured > 0 || sent.discarded > 0 {
        rules.extend(window_rules(host, "sent", sent.first_ns, sent.last_ns));
    }
    if received.measured > 0 || received.cut_bytes > 0 {
        rules.extend(window_rules(host, "received", received.first_ns, received.last_ns));
    }
    for slice in slices.iter().filter(|slice| slice.messages > 0) {
        if !is_window(slice.first_ns, slice.last_ns, host.longest_ns) {
            let what = format!("had in slice {}", slice.round);
            rules.extend(window_rules(host, &what, slice.first_ns, slice.last_ns));
            break;
        }
    }
    if let Some(row) = series.iter().find(|row| row.start_ns > host.longest_ns) {
        let start = print_duration(row.start_ns);
        rules.push((
            false,
            format!("the {name} reports an interval that begins after {start}{}", host.of_trial()),
        ));
    }
    if let Some(trip) = received.least_round_trip {
        let what = "had on the way in its shortest round trip";
        rules.extend(window_rules(host, what, trip.sent_ns, trip.returned_ns));
    }
    let late_ns = sent.max_late_ns.unwrap_or(0);
    let late = print_duration(late_ns);
    rules.push((
        late_ns <= host.longest_ns,
        format!("the {name} reports that it was {late} behind its schedule{}", host.of_trial()),
    ));
    rules
}

fn is_window(first_ns: u64, last_ns: u64, longest_ns: u64) -> bool {
    first_ns <= last_ns.saturating_add(MAX_BACKWARDS_NS) && last_ns.saturating_sub(first_ns) <= longest_ns
}

/// A host's window lies in the trial, during which its clock ran for no longer than the limit.
fn window_rules(host: &Host<'_>, did: &str, first_ns: u64, last_ns: u64) -> [Rule; 2] {
    let name = host.role;
    let early = print_duration(first_ns.saturating_sub(last_ns));
    let took_ns = last_ns.saturating_sub(first_ns);
    let took = print_duration(took_ns);
    [
        (
            first_ns <= last_ns.saturating_add(MAX_BACKWARDS_NS),
            format!("the {name} reports that the last message that it {did} was {early} before the first"),
        ),
        (
            took_ns <= host.longest_ns,
            format!("the {name} reports that what it {did} took {took}{}", host.of_trial()),
        ),
    ]
}

impl Host<'_> {
    /// The end of a sentence about a time that is too long.
    pub(super) fn of_trial(&self) -> String {
        format!(", and the trial took no more than {}", print_duration(self.longest_ns))
    }
}
