//! What two hosts saw, turned into figures.

use stacklab_model::{
    CpuTime, Delays, Drops, Metric, Pacing, Probe, Rate, Side, Transport, TrialSpec, Value, Warning,
    wire_size,
};
use std::collections::BTreeMap;

/// Lateness against a schedule beyond which a run is flagged, nanoseconds.
const LATE_NS: u64 = 5_000_000;
/// Ticks of CPU time below which a run's CPU figure is flagged as coarse.
const FEW_TICKS: u64 = 100;

/// Every figure of the trial's probe.
pub fn values(spec: &TrialSpec, sender: &Side, receiver: &Side) -> BTreeMap<Metric, Value> {
    let metrics = Metric::ALL.iter().copied().filter(|metric| metric.probe() == spec.probe.probe);
    metrics.map(|metric| (metric, value(metric, spec, sender, receiver))).collect()
}

fn value(metric: Metric, spec: &TrialSpec, sender: &Side, receiver: &Side) -> Value {
    if !metric.applies_to(spec.transport) {
        return Value::Missing(format!("{metric} does not apply to {}", spec.transport));
    }
    let (sent, received) = (&sender.sent, &receiver.received);
    let seconds = (received.last_ns.saturating_sub(received.first_ns)) as f64 / 1e9;
    let of_sent = |count: u64| Value::finite(count as f64 / sent.measured as f64, "no message was sent");
    let of_received =
        |count: u64| Value::finite(count as f64 / received.measured as f64, "no message arrived");
    // What the first receive brought (several messages, in a TCP stream) arrived before the window's time began.
    let arrived = received.measured.saturating_sub(received.at_first) as f64;
    let rate = |amount: f64| match seconds {
        0.0 => Value::Missing("the messages that arrived did so at one moment".to_owned()),
        seconds => Value::Measured(amount / seconds),
    };
    use Metric::*;
    match metric {
        Throughput => rate(arrived * f64::from(spec.message_bytes) * 8.0 / 1e6),
        PacketRate => rate(arrived),
        Loss => of_sent(sent.measured.saturating_sub(received.measured + received.beyond_window)),
        Duplicate => of_received(received.duplicates),
        Reorder => of_received(received.reordered),
        OneWayDelay => percentile(&receiver.delays, 0.5),
        OneWayDelayMean => milliseconds(receiver.delays.as_ref().map(|delays| delays.mean_ns)),
        Jitter => milliseconds(receiver.delays.as_ref().and_then(|delays| delays.jitter_ns)),
        JitterRfc3550 => milliseconds(receiver.delays.as_ref().and_then(|delays| delays.jitter_rfc3550_ns)),
        Pdv => milliseconds(receiver.delays.as_ref().and_then(|delays| {
            let (high, low) = (delays.buckets.percentile(0.999)?, delays.buckets.percentile(0.0)?);
            Some((high - low) as f64)
        })),
        TcpSrtt => match sender.tcp.as_ref().and_then(|tcp| tcp.srtt_mean_us) {
            Some(microseconds) => Value::Measured(microseconds / 1e3),
            None => Value::Missing("not sampled: name tcp_srtt among the probe's metrics".to_owned()),
        },
        CpuSender => cpu(sender.cpu.as_ref(), CpuTime::busy_ns),
        CpuReceiver => cpu(receiver.cpu.as_ref(), CpuTime::busy_ns),
        CpuSystem => cpu(sender.cpu.as_ref(), CpuTime::kernel_ns),
        CpuPerPacket => match &receiver.cpu {
            Some(cpu) => Value::finite(cpu.busy_ns() as f64 / received.measured as f64, "no message arrived"),
            None => Value::Missing("the host counts no CPU time".to_owned()),
        },
        Retransmits => match sender.tcp.as_ref().and_then(|tcp| tcp.total_retrans) {
            Some(count) => Value::Measured(count as f64),
            None => Value::Missing("the stack's TCP_INFO does not count them".to_owned()),
        },
        Fragments => {
            let counters = &sender.counters;
            Value::Measured((counters.get("ip.FragCreates") + counters.get("ip6.FragCreates")) as f64)
        }
        Rtt | RttOpen | ConnectTime => percentile(&sender.delays, 0.5),
        RttP99 | RttOpenP99 => percentile(&sender.delays, 0.99),
        RttP999 | RttOpenP999 => percentile(&sender.delays, 0.999),
        RttMean | RttOpenMean => milliseconds(sender.delays.as_ref().map(|delays| delays.mean_ns)),
        ConnectRate => {
            let seconds = (sent.last_ns - sent.first_ns) as f64 / 1e9;
            Value::finite(sent.measured as f64 / seconds, "no connection was opened")
        }
    }
}

fn milliseconds(nanoseconds: Option<f64>) -> Value {
    match nanoseconds {
        Some(nanoseconds) => Value::finite(nanoseconds / 1e6, "no delay was measured"),
        None => Value::Missing("too few messages arrived".to_owned()),
    }
}

/// A percentile that the number of messages can estimate: at least one message must lie above it.
fn percentile(delays: &Option<Delays>, p: f64) -> Value {
    let Some(delays) = delays else { return milliseconds(None) };
    let needed = (1.0 / (1.0 - p)).round() as u64;
    if delays.buckets.count() < needed {
        return Value::Missing(format!(
            "{} messages do not tell this percentile: {needed} do",
            delays.buckets.count()
        ));
    }
    milliseconds(delays.buckets.percentile(p).map(|nanoseconds| nanoseconds as f64))
}

fn cpu(time: Option<&CpuTime>, part: fn(&CpuTime) -> u64) -> Value {
    match time {
        Some(time) => {
            Value::finite(part(time) as f64 * 100.0 / time.window_ns as f64, "the window was empty")
        }
        None => Value::Missing("the host counts no CPU time".to_owned()),
    }
}

/// Where messages were lost, over the whole trial. TCP loses none that its user could see.
pub fn drops(spec: &TrialSpec, sender: &Side, receiver: &Side) -> Drops {
    if spec.transport == Transport::Tcp || spec.probe.probe != Probe::Stream {
        return Drops::default();
    }
    let received = &receiver.received;
    let mut lost = (sender.sent.warmup + sender.sent.measured)
        .saturating_sub(received.warmup + received.measured + received.beyond_window);
    let total = lost;
    // A counter may also hold an end marker's loss; no part is more than the whole.
    let mut part = |counted: u64| {
        let taken = counted.min(lost);
        lost -= taken;
        taken
    };
    let sum = |side: &Side, names: &[&str]| names.iter().map(|name| side.counters.get(name)).sum::<u64>();
    let sender_queue = part(sum(sender, &["udp.SndbufErrors", "udp6.SndbufErrors"]));
    let socket_buffer = part(receiver.counters.get("socket.drops"));
    let interface = part(
        sum(sender, &["interface.tx_dropped", "interface.tx_errors"])
            + sum(receiver, &["interface.rx_dropped", "interface.rx_errors"]),
    );
    Drops {
        sender_queue,
        interface,
        socket_buffer,
        network: total - sender_queue - socket_buffer - interface,
    }
}

/// What a reader of a run's figures should know.
pub fn warnings(
    spec: &TrialSpec,
    rate: Option<Rate>,
    mtu: u32,
    sender: &Side,
    receiver: &Side,
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |code: &str, text: String, advice: &str| {
        warnings.push(Warning { code: code.to_owned(), text, advice: advice.to_owned() });
    };
    let received = if spec.probe.probe.echoes() { &sender.received } else { &receiver.received };
    if received.beyond_window > 0 {
        warn(
            "beyond_window",
            "messages arrived more than a million sequence numbers late: they are neither lost nor counted"
                .to_owned(),
            "look for a path that holds packets back",
        );
    }
    if received.strays > 0 {
        warn(
            "strays",
            "packets of another sender arrived at a trial's socket".to_owned(),
            "keep the testbed to itself",
        );
    }
    if sender.sent.max_late_ns.is_some_and(|late| late > LATE_NS) {
        warn(
            "late",
            format!("messages left more than {} ms after their schedule", LATE_NS / 1_000_000),
            "lower packet_rate, or give the sender a processor of its own",
        );
    }
    if let Some(cpu) = &sender.cpu
        && cpu.window_ns < FEW_TICKS * crate::sys::tick_ns()
    {
        warn(
            "tick",
            format!(
                "CPU time counts in ticks of {} ms: over the measured window one run's CPU figure is coarse",
                crate::sys::tick_ns() / 1_000_000
            ),
            "lengthen the runs (--scale standard) where CPU figures matter",
        );
    }
    let tcp_segments = spec.transport == Transport::Tcp && spec.framing == stacklab_model::Framing::Segment;
    if tcp_segments && spec.probe.probe != Probe::Connect && crate::proof::segments(sender).is_none() {
        warn(
            "unproved",
            "this stack's TCP_INFO counts no segments: that each message had one is not proved".to_owned(),
            "read the sizes as those of `message` framing",
        );
    }
    if let Some(rate) = rate
        && spec.transport == Transport::Udp
        && spec.probe.pacing == Pacing::Flood
        && spec.probe.probe == Probe::Stream
    {
        let wire = wire_size(spec.family, spec.transport, spec.message_bytes, mtu).wire_bytes;
        let fills = rate.bits_per_second() as f64 / 8.0 / f64::from(wire);
        let seconds = (sender.sent.last_ns - sender.sent.first_ns) as f64 / 1e9;
        if (sender.sent.measured as f64) < 0.99 * fills * seconds {
            warn(
                "below_link",
                format!(
                    "the sender did not fill the link of {rate}: throughput is the sender's limit, not the link's"
                ),
                "compare larger sizes, or set a lower rate",
            );
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conduct::tests::{sides, spec};
    use stacklab_model::Family;

    fn measured(metric: Metric, change: impl Fn(&mut Side, &mut Side)) -> Value {
        let spec = spec(Family::Ipv6, Transport::Udp);
        let (mut sender, mut receiver) = sides(&spec);
        change(&mut sender, &mut receiver);
        values(&spec, &sender, &receiver)[&metric].clone()
    }

    #[test]
    fn throughput_is_payload_over_first_to_last_arrival() {
        // 1000 messages of 128 bytes, 999 of them after the first, within one second.
        assert_eq!(measured(Metric::Throughput, |_, _| {}), Value::Measured(999.0 * 128.0 * 8.0 / 1e6));
        assert_eq!(measured(Metric::PacketRate, |_, _| {}), Value::Measured(999.0));
    }

    #[test]
    fn loss_counts_the_tail_and_no_duplicate_cancels_it() {
        let lost = |_: &mut Side, receiver: &mut Side| {
            receiver.received.measured = 900;
            receiver.received.duplicates = 90;
        };
        assert_eq!(measured(Metric::Loss, lost), Value::Measured(0.1));
        assert_eq!(measured(Metric::Duplicate, lost), Value::Measured(0.1));
    }

    #[test]
    fn what_cannot_be_had_is_missing_and_never_zero() {
        let nothing = |_: &mut Side, receiver: &mut Side| {
            receiver.received = Default::default();
            receiver.delays = None;
            receiver.cpu = None;
        };
        for metric in
            [Metric::Throughput, Metric::Jitter, Metric::OneWayDelay, Metric::CpuReceiver, Metric::Duplicate]
        {
            assert!(matches!(measured(metric, nothing), Value::Missing(_)), "{metric}");
        }
        assert!(matches!(measured(Metric::Retransmits, |_, _| {}), Value::Missing(_)));
    }

    #[test]
    fn losses_are_told_apart_by_the_counters() {
        let spec = spec(Family::Ipv4, Transport::Udp);
        let (mut sender, mut receiver) = sides(&spec);
        receiver.received.measured -= 100;
        sender.counters.0.insert("udp.SndbufErrors".to_owned(), 10);
        receiver.counters.0.insert("socket.drops".to_owned(), 50);
        receiver.counters.0.insert("interface.rx_dropped".to_owned(), 15);
        let drops = drops(&spec, &sender, &receiver);
        assert_eq!(drops, Drops { sender_queue: 10, interface: 15, socket_buffer: 50, network: 25 });
    }

    #[test]
    fn a_percentile_needs_messages_above_it() {
        let few = Some(Delays {
            buckets: stacklab_model::Buckets(vec![(1_000_000, 99)]),
            mean_ns: 1e6,
            jitter_ns: None,
            jitter_rfc3550_ns: None,
        });
        assert_eq!(percentile(&few, 0.5), Value::Measured(1.0));
        assert!(matches!(percentile(&few, 0.99), Value::Missing(_)));
    }
}
