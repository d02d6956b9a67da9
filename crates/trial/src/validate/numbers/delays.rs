//! Rules of delays: one for each message, none longer than the trial, and means and variations within them.

use super::Host;
use crate::validate::Rule;
use stacklab_model::{Buckets, Delays, HostReport, Ipdv, Probe, Role, count, print_duration};
use stacklab_traffic::timing::MAX_DELAY_NS;
use std::ops::RangeInclusive;

/// Histograms have three digits: a value stands for those that are smaller by up to this share.
const RESOLUTION: f64 = 1.0 / 512.0;
/// The same of the least values, nanoseconds.
const STEP_NS: f64 = 2.0;

/// Delays of one kind, and what bounds them.
struct BoundedDelays<'a> {
    name: &'a str,
    delays: &'a Delays,
    /// How many there may be.
    count: RangeInclusive<u64>,
    longest_ns: u64,
    /// What the correction for the clocks' drift took from each.
    corrected_ns: f64,
}

pub(super) fn delay_rules(host: &Host<'_>) -> Vec<Rule> {
    let HostReport { sent, received, delays, interface_delays, pacing_error, .. } = host.report;
    let is_one_way = host.role == Role::Receiver;
    let mut rules = Vec::new();
    if let Some(delays) = delays {
        // Each message that counts has its delay, and each connection its time.
        let messages =
            if host.spec.probe.probe == Probe::Connect { sent.measured } else { received.measured };
        let name = if is_one_way { "one-way delay" } else { "round trip" };
        let kind = BoundedDelays {
            count: messages..=messages,
            corrected_ns: corrected_ns(host),
            ..kind(host, name, delays)
        };
        rules.push(count_rule(host, &kind));
        if host.one_way || !is_one_way {
            rules.extend(value_rules(host, &kind));
        }
    }
    if let Some(delays) = interface_delays {
        // Messages without a timestamp have none.
        let kind =
            BoundedDelays { count: 0..=received.measured, ..kind(host, "interface round trip", delays) };
        rules.push(count_rule(host, &kind));
        rules.extend(value_rules(host, &kind));
    }
    if let Some(delays) = pacing_error {
        let most = sent.of_window();
        let kind = BoundedDelays { count: 0..=most, ..kind(host, "pacing error", delays) };
        rules.push(count_rule(host, &kind));
        rules.extend(value_rules(host, &kind));
    }
    if host.one_way || !is_one_way {
        rules.extend(part_rules(host));
    }
    if let Some(ipdv) = received.ipdv {
        rules.extend(ipdv_rules(host, ipdv));
    }
    rules
}

/// Each message makes one pair with the one sent before it.
fn ipdv_rules(host: &Host<'_>, ipdv: Ipdv) -> Vec<Rule> {
    let Ipdv { pairs, min_ns, median_ns, max_ns } = ipdv;
    let name = host.role;
    let messages = host.report.received.measured;
    let most_ns = min_ns.unsigned_abs().max(max_ns.unsigned_abs());
    vec![
        (
            pairs < messages.max(1),
            format!("the {name} reports {} of {}", count(pairs, "pair"), count(messages, "message")),
        ),
        (
            min_ns <= median_ns && median_ns <= max_ns,
            format!(
                "the {name} reports delay variations of {min_ns}, {median_ns} and {max_ns} ns in disorder"
            ),
        ),
        (
            most_ns <= longest_ns(host),
            format!("the {name} reports a delay variation of {}{}", print_duration(most_ns), host.of_trial()),
        ),
    ]
}

fn kind<'a>(host: &Host<'_>, name: &'a str, delays: &'a Delays) -> BoundedDelays<'a> {
    BoundedDelays { name, delays, count: 0..=u64::MAX, longest_ns: longest_ns(host), corrected_ns: 0.0 }
}

/// A message arrives while the trial runs. Where clocks were compared, their offset is wrong by at most half a round
/// trip, which is not longer than the trial either.
fn longest_ns(host: &Host<'_>) -> u64 {
    let is_compared = host.report.delay_points.is_some_and(|points| points.compared.is_some());
    host.longest_ns.saturating_mul(if is_compared { 2 } else { 1 })
}

/// At the most what the clocks gained while the trial ran; 0 before delays are corrected.
fn corrected_ns(host: &Host<'_>) -> f64 {
    let compared = host.report.delay_points.and_then(|points| points.compared);
    let gained = compared.map_or(0.0, |compared| compared.skew_ns_per_s.unsigned_abs() as f64 / 1e9);
    gained * host.longest_ns as f64
}

fn count_rule(host: &Host<'_>, kind: &BoundedDelays<'_>) -> Rule {
    let found = kind.delays.buckets.count();
    let most = *kind.count.end();
    let name = host.role;
    (
        kind.count.contains(&found),
        format!("the {name} reports {} of {}", count(found, kind.name), count(most, "message")),
    )
}

fn value_rules(host: &Host<'_>, kind: &BoundedDelays<'_>) -> Vec<Rule> {
    let BoundedDelays { name: what, longest_ns, corrected_ns, .. } = *kind;
    let Delays { buckets, mean_ns, jitter_ns, jitter_rfc3550_ns } = kind.delays;
    let Some((least_ns, most_ns)) = ends(buckets) else { return Vec::new() };
    let name = host.role;
    let rounding_ns = rounding(most_ns, corrected_ns);
    // Delays that are longer than the longest of a histogram count as that one, but their means do not.
    let is_cut = most_ns + corrected_ns >= MAX_DELAY_NS as f64;
    let most_ns = if is_cut { most_ns.max(longest_ns as f64) } else { most_ns };
    let longest_rounded_ns = longest_ns as f64 + rounding_ns;
    let mean_of_buckets = mean(buckets);
    let mean_rounding_ns = rounding(mean_of_buckets, corrected_ns);
    let high_ns = if is_cut { most_ns + rounding_ns } else { mean_of_buckets + mean_rounding_ns };
    let mut rules = vec![
        (
            buckets.0.is_sorted_by(|one, next| one.0 < next.0),
            format!("the {name}'s histogram of the {what} has its values in disorder"),
        ),
        (
            most_ns <= longest_rounded_ns,
            format!("the {name} reports a {what} of {}{}", print(most_ns), host.of_trial()),
        ),
        (
            (mean_of_buckets - mean_rounding_ns..=high_ns).contains(mean_ns),
            format!(
                "the {name} reports a mean {what} of {}, and its histogram has a mean of {}",
                print(*mean_ns),
                print(mean_of_buckets)
            ),
        ),
    ];
    // The difference of two delays is at most that of the longest and the shortest one.
    let range_ns = most_ns - least_ns + rounding_ns;
    for jitter_ns in [jitter_ns, jitter_rfc3550_ns].into_iter().flatten() {
        rules.push((
            *jitter_ns <= range_ns,
            format!(
                "the {name} reports that the {what} varies by {} on average, and at most by {}",
                print(*jitter_ns),
                print(range_ns)
            ),
        ));
    }
    rules
}

/// By how much a value of a histogram may be off, nanoseconds. It was rounded before the correction, which takes the
/// same from all, but leaves none below zero.
fn rounding(value_ns: f64, corrected_ns: f64) -> f64 {
    (value_ns + corrected_ns) * RESOLUTION + STEP_NS + corrected_ns
}

/// The delays of intervals and slices are some of the trial's.
fn part_rules(host: &Host<'_>) -> Vec<Rule> {
    let HostReport { series, slices, .. } = host.report;
    let rows = series.iter().filter_map(|row| row.delay_mean_ns);
    let of_slices = slices.iter().flat_map(|slice| [slice.delay_ns.map(|ns| ns as f64), slice.jitter_ns]);
    let most_ns = rows.chain(of_slices.flatten()).fold(0.0, f64::max);
    let name = host.role;
    let longest_ns = longest_ns(host) as f64 + corrected_ns(host);
    vec![(
        most_ns <= longest_ns,
        format!(
            "the {name} reports a delay of {} in an interval or a slice{}",
            print(most_ns),
            host.of_trial()
        ),
    )]
}

/// The least and the largest value, nanoseconds; `None` without any.
fn ends(buckets: &Buckets) -> Option<(f64, f64)> {
    let least = buckets.0.iter().map(|(value, _)| *value).min()?;
    let largest = buckets.0.iter().map(|(value, _)| *value).max()?;
    Some((least as f64, largest as f64))
}

fn mean(buckets: &Buckets) -> f64 {
    let sum: f64 = buckets.0.iter().map(|(value, count)| *value as f64 * *count as f64).sum();
    sum / buckets.0.iter().map(|(_, count)| *count as f64).sum::<f64>().max(1.0)
}

fn print(ns: f64) -> String {
    print_duration(ns.round() as u64)
}
