//! TCP figures: RFC 6349 and TCP_INFO.

use crate::path::Path;
use crate::results::missing::not_sampled;
use crate::results::{rfc6349, throughput};
use stacklab_model::{HostReport, Metric, Pacing, TrialSpec, Value};

/// Mean smoothed round-trip time.
pub(super) fn srtt(sender: &HostReport) -> Value {
    match sender.tcp.as_ref().and_then(|tcp| tcp.srtt_mean_us) {
        Some(microseconds) => Value::Measured(microseconds / 1e3),
        None => not_sampled(Metric::TcpSrtt),
    }
}

/// Retransmitted segments per message of the connection.
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
            let ideal = rfc6349::ideal_seconds(payload, limit, spec.family, path.mtu);
            let ratio = rfc6349::transfer_time_ratio(seconds, ideal);
            Value::finite(ratio, "no message arrived after the first receive")
        }
    }
}

/// TCP efficiency (RFC 6349, section 4.2).
pub(super) fn efficiency(sender: &HostReport) -> Value {
    match sender.tcp.as_ref().and_then(|tcp| Some((tcp.bytes_sent?, tcp.bytes_retrans?))) {
        Some((sent, again)) => Value::finite(rfc6349::tcp_efficiency(sent, again), "no byte was sent"),
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
            rfc6349::buffer_delay(mean, least as f64),
            "the least round trip is shorter than a microsecond",
        ),
    }
}
