//! TCP figures: RFC 6349 and TCP_INFO.

use crate::path::Path;
use crate::results::throughput;
use crate::results::values::not_sampled;
use stacklab_model::{Family, HostReport, Metric, Pacing, Rate, Transport, TrialSpec, Value, wire_size};

pub(super) fn srtt(sender: &HostReport) -> Value {
    match sender.tcp.as_ref().and_then(|tcp| tcp.srtt_mean_us) {
        Some(microseconds) => Value::Measured(microseconds / 1e3),
        None => not_sampled(Metric::TcpSrtt),
    }
}

pub(super) fn retransmits(sender: &HostReport) -> Value {
    match sender.tcp.as_ref().and_then(|tcp| tcp.total_retrans) {
        Some(count) => Value::finite(count as f64 / sender.sent.of_trial() as f64, "no message was sent"),
        None => Value::Missing("the stack's TCP_INFO does not count them".to_owned()),
    }
}

/// Transfer time ratio (RFC 6349, section 4.1).
pub(super) fn transfer_time_ratio(spec: &TrialSpec, path: &Path, arrived: f64, seconds: f64) -> Value {
    match path.rate {
        None => Value::Missing("the link has no known rate".to_owned()),
        Some(_) if spec.probe.pacing != Pacing::Flood => {
            Value::Missing("the schedule set the pace, not the link".to_owned())
        }
        Some(_) if seconds == 0.0 => throughput::rate(arrived, seconds),
        Some(limit) => {
            let payload = arrived * f64::from(spec.message_bytes);
            let ideal = ideal_seconds(payload, limit, spec.family, path.mtu);
            let ratio = time_ratio(seconds, ideal);
            Value::finite(ratio, "no message arrived after the first receive")
        }
    }
}

/// TCP efficiency (RFC 6349, section 4.2).
pub(super) fn efficiency(sender: &HostReport) -> Value {
    match sender.tcp.as_ref().and_then(|tcp| Some((tcp.bytes_sent?, tcp.bytes_retrans?))) {
        Some((sent, again)) => Value::finite(efficiency_percent(sent, again), "no byte was sent"),
        None => Value::Missing("the stack's TCP_INFO does not count the bytes".to_owned()),
    }
}

/// Buffer delay (RFC 6349, section 4.3).
pub(super) fn buffer_delay(sender: &HostReport) -> Value {
    let tcp = sender.tcp.as_ref();
    match (tcp.and_then(|tcp| tcp.srtt_mean_us), tcp.and_then(|tcp| tcp.min_rtt_us)) {
        (None, _) => not_sampled(Metric::BufferDelay),
        (_, None) => Value::Missing("the stack's TCP_INFO has no least round trip".to_owned()),
        (Some(mean), Some(least)) => Value::finite(
            delay_percent(mean, least as f64),
            "the least round trip is shorter than a microsecond",
        ),
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

#[cfg(test)]
mod tests {
    use super::*;

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
