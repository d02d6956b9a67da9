//! How each kind of figure follows from what hosts report: rates, losses, delays, CPU time, and TCP's (RFC 6349).

use crate::path::Path;
use crate::results::{describe_missing_sample, missing};
use crate::validate::MAX_PROCESSORS;
use stacklab_model::{
    CpuScope, CpuTime, Delays, Drops, Family, HostReport, MAX_NUMBER, Metric, Pacing, Probe, Rate, Received,
    Sent, Transport, TrialSpec, Value, count, wire_size,
};

/// An amount per second of the measured window.
pub(super) fn rate(amount: f64, seconds: f64) -> Value {
    match seconds {
        0.0 => missing("all messages arrived at the same time: a rate needs a longer test, or more messages"),
        seconds => Value::Measured(amount / seconds),
    }
}

/// Messages that arrived, by their bytes, and seconds in which they did: after the first receive, until the last one.
/// Where arrivals took less than half of the time of sending, most were lost, and how close the few came to each other
/// says nothing of the rate: then all, in the time of sending.
pub(super) fn arrivals(spec: &TrialSpec, sent: &Sent, received: &Received) -> (f64, f64) {
    let arriving = received.last_ns.saturating_sub(received.first_ns) as f64 / 1e9;
    let sending = sent.last_ns.saturating_sub(sent.first_ns) as f64 / 1e9;
    let bytes = received.all_bytes();
    let message_bytes = f64::from(spec.message_bytes.max(1));
    if arriving > 0.0 && arriving < sending / 2.0 {
        return (bytes as f64 / message_bytes, sending);
    }
    (bytes.saturating_sub(received.bytes_at_first) as f64 / message_bytes, arriving)
}

/// Jain's fairness index over the flows: (sum x)^2 / (n sum x^2).
pub(super) fn jain(flows: &[u64]) -> Value {
    if flows.len() < 2 {
        return missing("fairness needs more than one flow");
    }
    let sum: f64 = flows.iter().map(|bytes| *bytes as f64).sum();
    let squares: f64 = flows.iter().map(|bytes| (*bytes as f64).powi(2)).sum();
    Value::finite(sum * sum / (flows.len() as f64 * squares), "nothing arrived in any flow")
}

/// Where messages were lost, over the whole trial. TCP shows no loss to its user.
pub fn drops(spec: &TrialSpec, sender: &HostReport, receiver: &HostReport) -> Drops {
    if spec.transport == Transport::Tcp || spec.probe.probe != Probe::Stream {
        return Drops::default();
    }
    let received = &receiver.received;
    let mut lost = (sender.sent.warmup + sender.sent.measured)
        .saturating_sub(received.warmup + received.measured + received.beyond_window)
        .min(MAX_NUMBER);
    let total = lost;
    let refused = add_counters(sender, ["udp.SndbufErrors", "udp6.SndbufErrors"]);
    let sender_queue = take_from(&mut lost, refused);
    let socket_buffer = take_from(&mut lost, receiver.counters.get("socket.drops"));
    let left = add_counters(sender, ["interface.tx_dropped", "interface.tx_errors"]);
    let arrived = add_counters(receiver, ["interface.rx_dropped", "interface.rx_errors"]);
    let interface = take_from(&mut lost, left + arrived);
    let network = total - sender_queue - socket_buffer - interface;
    Drops { sender_queue, interface, socket_buffer, network }
}

/// What a counter explains of the messages not yet explained. A counter may include a lost end marker; no part exceeds
/// the whole.
fn take_from(lost: &mut u64, counted: u64) -> u64 {
    let part = counted.min(*lost);
    *lost -= part;
    part
}

fn add_counters(side: &HostReport, names: [&str; 2]) -> u64 {
    names.map(|name| side.counters.get(name)).iter().sum()
}

pub(super) fn milliseconds(nanoseconds: Option<f64>) -> Value {
    let value = nanoseconds.map(|ns| Value::finite(ns / 1e6, "no delay was measured"));
    value.unwrap_or_else(|| missing("too few messages arrived"))
}

/// Packet delay variation: 99.9th percentile minus minimum (RFC 5481), if there are enough messages for the percentile.
pub(super) fn variation(delays: &Option<Delays>) -> Value {
    let least = delays.as_ref().and_then(|delays| delays.buckets.percentile(0.0)).unwrap_or(0);
    match percentile(delays, 0.999) {
        Value::Measured(high) => Value::Measured(high - least as f64 / 1e6),
        missing => missing,
    }
}

/// A percentile of round trips. One whose answer never came counts as infinite (RFC 2681).
pub fn of_answers(delays: &Option<Delays>, unanswered: u64, p: f64) -> Value {
    let Some(delays) = delays else { return milliseconds(None) };
    let answered = delays.buckets.count();
    let all = answered.saturating_add(unanswered);
    let rank = (p * all as f64).ceil().max(1.0);
    // At least one message must lie above the percentile.
    let needed = (1.0 / (1.0 - p)).round() as u64;
    if all < needed {
        return Value::Missing(format!("this percentile needs {needed} messages, {all} arrived"));
    }
    if rank > answered as f64 {
        let lost = format!("{unanswered} of {} had no answer", count(all, "message"));
        return Value::Missing(format!("{lost}: percentile {} is infinite", 100.0 * p));
    }
    // Half a rank keeps rounding on this side.
    let of_answered = (rank - 0.5) / answered as f64;
    milliseconds(delays.buckets.percentile(of_answered).map(|nanoseconds| nanoseconds as f64))
}

pub(super) fn percentile(delays: &Option<Delays>, p: f64) -> Value {
    of_answers(delays, 0, p)
}

pub(super) fn srtt(sender: &HostReport) -> Value {
    let mean_us = sender.tcp.as_ref().and_then(|tcp| tcp.srtt_mean_us);
    mean_us.map_or_else(|| describe_missing_sample(Metric::TcpSrtt), |us| Value::Measured(us / 1e3))
}

pub(super) fn retransmits(sender: &HostReport) -> Value {
    match sender.tcp.as_ref().and_then(|tcp| tcp.total_retrans) {
        Some(count) => Value::finite(count as f64 / sender.sent.of_trial() as f64, "no message was sent"),
        None => missing("the stack's TCP_INFO does not count them"),
    }
}

/// Transfer time ratio (RFC 6349, section 4.1).
pub(super) fn transfer_time_ratio(spec: &TrialSpec, path: &Path, arrived: f64, seconds: f64) -> Value {
    match path.rate {
        None => missing("the link has no known rate"),
        Some(_) if spec.probe.pacing != Pacing::Flood => missing("the schedule set the pace, not the link"),
        Some(_) if seconds == 0.0 => rate(arrived, seconds),
        Some(limit) => {
            let payload = arrived * f64::from(spec.message_bytes);
            let ideal = ideal_seconds(payload, limit, spec.family, path.mtu);
            Value::finite(time_ratio(seconds, ideal), "no message arrived after the first receive")
        }
    }
}

/// TCP efficiency (RFC 6349, section 4.2).
pub(super) fn efficiency(sender: &HostReport) -> Value {
    match sender.tcp.as_ref().and_then(|tcp| Some((tcp.bytes_sent?, tcp.bytes_retrans?))) {
        Some((sent, again)) => Value::finite(efficiency_percent(sent, again), "no byte was sent"),
        None => missing("the stack's TCP_INFO does not count the bytes"),
    }
}

/// Buffer delay (RFC 6349, section 4.3).
pub(super) fn buffer_delay(sender: &HostReport) -> Value {
    let tcp = sender.tcp.as_ref();
    match (tcp.and_then(|tcp| tcp.srtt_mean_us), tcp.and_then(|tcp| tcp.min_rtt_us)) {
        (None, _) => describe_missing_sample(Metric::BufferDelay),
        (_, None) => missing("the stack's TCP_INFO has no least round trip"),
        (Some(mean), Some(least)) => {
            let percent = delay_percent(mean, least as f64);
            Value::finite(percent, "the least round trip is shorter than a microsecond")
        }
    }
}

/// Ideal transfer time of a payload in full segments at a link's rate, seconds (section 4.1.1, with TCP timestamps,
/// which are used here).
fn ideal_seconds(payload_bytes: f64, rate: Rate, family: Family, mtu: u32) -> f64 {
    let headers = family.header_bytes() + Transport::Tcp.header_bytes();
    let full = mtu.saturating_sub(headers).max(1);
    let wire = wire_size(family, Transport::Tcp, full, mtu).wire_bytes;
    payload_bytes / f64::from(full) * f64::from(wire) * 8.0 / rate.bits_per_second() as f64
}

/// Actual over ideal transfer time (section 4.1).
fn time_ratio(actual_seconds: f64, ideal_seconds: f64) -> f64 {
    actual_seconds / ideal_seconds
}

/// Per cent of the sent bytes (including retransmissions) that were not retransmissions (section 4.2).
fn efficiency_percent(sent_bytes: u64, sent_again_bytes: u64) -> f64 {
    sent_bytes.saturating_sub(sent_again_bytes) as f64 * 100.0 / sent_bytes as f64
}

/// Per cent by which round trips exceeded the baseline (section 4.3). Both in the same unit.
fn delay_percent(mean: f64, baseline: f64) -> f64 {
    (mean - baseline) * 100.0 / baseline
}

const NO_CPU_TIME: &str = "the host counts no CPU time";

/// Divisor that turns nanoseconds of CPU time into per cent of a core per Gbit/s: one bit per nanosecond is one
/// Gbit/s.
pub(super) fn gigabits(bytes: u64) -> f64 {
    bytes as f64 * 8.0 / 100.0
}

/// CPU time of a host for the measured ones of its messages, nanoseconds, over an amount. If CPU time covers the whole
/// trial, the share of the measured messages among all messages.
pub(super) fn busy_over(
    time: Option<&CpuTime>,
    [measured, warmup]: [u64; 2],
    amount: f64,
    otherwise: &str,
) -> Value {
    let Some(time) = time else { return missing(NO_CPU_TIME) };
    let is_of_trial = time.scope == CpuScope::Outside;
    let share = if is_of_trial { measured as f64 / (measured + warmup) as f64 } else { 1.0 };
    Value::finite(time.busy_ns() as f64 * share / amount, otherwise)
}

/// A CPU time component, per cent of one core over the window.
pub(super) fn of_window(time: Option<&CpuTime>, part: fn(&CpuTime) -> u64) -> Value {
    let Some(time) = time else { return missing(NO_CPU_TIME) };
    // Ticks are longer than such a window: one of them would be a machine of thousands of processors.
    if part(time) > time.window_ns.saturating_mul(MAX_PROCESSORS.into()) {
        return missing("the window is shorter than what CPU time resolves");
    }
    Value::finite(part(time) as f64 * 100.0 / time.window_ns as f64, "the window was empty")
}

/// A CPU time component; missing for a guest counted from outside, where kernel and programs cannot be distinguished.
pub(super) fn find_cpu_part(time: Option<&CpuTime>, part: fn(&CpuTime) -> u64) -> Value {
    match time {
        Some(time) if time.scope == CpuScope::Outside => missing(
            "the guest is measured from outside, which does not separate its kernel from its programs",
        ),
        Some(time) if time.scope == CpuScope::Threads && time.undivided => {
            missing("the system does not divide a thread's CPU time into user and kernel time")
        }
        time => of_window(time, part),
    }
}

/// Software interrupts, if the host counts them separately.
pub(super) fn softirq(time: Option<&CpuTime>) -> Value {
    match time {
        Some(time) if time.undivided && !matches!(time.scope, CpuScope::Outside | CpuScope::Threads) => {
            missing("the host counts interrupts as system time")
        }
        Some(time) if time.scope == CpuScope::Threads => {
            missing("a thread's CPU time has interrupts in its kernel time")
        }
        time => find_cpu_part(time, |time| time.softirq_ns),
    }
}

pub(super) fn own_user(time: Option<&CpuTime>) -> Value {
    match time {
        Some(time) if time.scope == CpuScope::Threads => find_cpu_part(Some(time), |time| time.own_user_ns),
        time => of_window(time, |time| time.own_user_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::Buckets;

    fn delays(buckets: &[(u64, u64)]) -> Option<Delays> {
        let buckets = Buckets(buckets.to_vec());
        Some(Delays { buckets, mean_ns: 0.0, jitter_ns: None, jitter_rfc3550_ns: None })
    }

    #[test]
    fn a_message_without_an_answer_took_for_ever() {
        let some = delays(&[(1_000_000, 60), (2_000_000, 30)]);
        let median = |unanswered| of_answers(&some, unanswered, 0.5);
        assert_eq!(median(0), Value::Measured(1.0));
        // 45 of 90, 60 of 120, and 61 of 121.
        assert_eq!(median(30), Value::Measured(1.0));
        assert_eq!(median(31), Value::Measured(2.0));
        assert_eq!(median(90), Value::Measured(2.0));
        let infinite = median(91);
        assert!(matches!(&infinite, Value::Missing(reason) if reason.contains("91 of 181")), "{infinite:?}");
    }

    #[test]
    fn variation_needs_enough_messages_for_a_percentile() {
        assert!(matches!(variation(&delays(&[(1_000_000, 999)])), Value::Missing(_)));
        let enough = delays(&[(1_000_000, 998), (3_000_000, 2)]);
        assert_eq!(variation(&enough), Value::Measured(2.0));
    }

    #[test]
    fn the_examples_of_the_rfc_come_out() {
        // 4.1.2: about 8 s ideal, 12 s actual. 4.2.1: 100,000 bytes, 2,000 of them retransmitted. 4.3.1: 25 and 32
        // ms.
        assert_eq!(time_ratio(12.0, 8.0), 1.5);
        let efficiency = efficiency_percent(102_000, 2_000);
        // The RFC truncates 98.039 to two decimals.
        assert_eq!((efficiency * 100.0).floor() / 100.0, 98.03);
        assert_eq!(delay_percent(32.0, 25.0), 28.0);
    }

    #[test]
    fn the_ideal_is_what_full_segments_take_on_ethernet() {
        // 4.1.1: 8127 frames of 1538 bytes a second at 100 Mbit/s. The RFC's segments hold 1460 bytes; with
        // timestamps it is 1448, and 1428 over IPv6.
        for (family, full) in [(Family::Ipv4, 1448.0), (Family::Ipv6, 1428.0)] {
            let frames = 1.0 / ideal_seconds(full, Rate(100_000_000), family, 1500);
            assert_eq!(frames.floor(), 8127.0);
        }
        // 500 MB over 500 Mbit/s: the RFC says about 8 seconds.
        let ideal = ideal_seconds(5e8, Rate(500_000_000), Family::Ipv4, 1500);
        assert!((8.0..8.6).contains(&ideal), "{ideal}");
    }
}
