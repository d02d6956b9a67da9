//! What two hosts saw, turned into figures.

use crate::conduct::Path;
use crate::gather;
use crate::rfc6349;
use stacklab_model::{
    CpuScope, CpuTime, Delays, Drops, HostReport, Metric, Pacing, Probe, Rate, Transport, TrialSpec, Value,
    Warning, wire_size,
};
use std::collections::BTreeMap;

/// Lateness against a schedule beyond which a run is flagged, nanoseconds.
const LATE_NS: u64 = 5_000_000;
/// Ticks of CPU time below which a run's CPU figure is flagged as coarse.
const FEW_TICKS: u64 = 100;

/// Nanoseconds of a tick, in which this machine counts CPU time.
pub fn tick_ns() -> u64 {
    crate::sys::tick_ns()
}

/// Every figure of the trial's probe.
pub fn values(
    spec: &TrialSpec,
    path: &Path,
    sender: &HostReport,
    receiver: &HostReport,
) -> BTreeMap<Metric, Value> {
    let metrics = Metric::ALL.iter().copied().filter(|metric| metric.probe() == spec.probe.probe);
    metrics.map(|metric| (metric, value(metric, spec, path, sender, receiver))).collect()
}

fn value(metric: Metric, spec: &TrialSpec, path: &Path, sender: &HostReport, receiver: &HostReport) -> Value {
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
        // Of two streams' sides; see `legs`.
        ThroughputLoad => Value::Missing("the trial has no stream beside".to_owned()),
        ThroughputReverse => Value::Missing("the trial has no stream in the other direction".to_owned()),
        PacketRate => rate(arrived),
        Loss => of_sent(sent.measured.saturating_sub(received.measured + received.beyond_window)),
        Duplicate => of_received(received.duplicates),
        Reorder => of_received(received.reordered),
        metric if metric.is_one_way_delay() && !gather::keeps_times(spec) => not_sampled(metric),
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
            None => not_sampled(metric),
        },
        CpuSender => cpu(sender.cpu.as_ref(), CpuTime::busy_ns),
        CpuReceiver => cpu(receiver.cpu.as_ref(), CpuTime::busy_ns),
        CpuSystem => divided(sender.cpu.as_ref(), CpuTime::kernel_ns),
        CpuSenderUser => divided(sender.cpu.as_ref(), |time| time.user_ns),
        CpuSenderSoftirq => softirq(sender.cpu.as_ref()),
        CpuReceiverUser => divided(receiver.cpu.as_ref(), |time| time.user_ns),
        CpuReceiverSystem => divided(receiver.cpu.as_ref(), CpuTime::kernel_ns),
        CpuReceiverSoftirq => softirq(receiver.cpu.as_ref()),
        CpuEngineSender => cpu(sender.cpu.as_ref(), |time| time.own_user_ns),
        CpuEngineReceiver => cpu(receiver.cpu.as_ref(), |time| time.own_user_ns),
        CpuPerPacket => busy_over(received_in(receiver), received.measured as f64, "no message arrived"),
        CpuPerPacketSender => busy_over(sent_in(sender), sent.measured as f64, "no message was sent"),
        CpuPerGbitSender => busy_over(sent_in(sender), gigabits(sent.bytes), "no message was sent"),
        CpuPerGbitReceiver => busy_over(received_in(receiver), gigabits(received.bytes), "no message arrived"),
        MemorySockets => match (sender.socket_memory_kib, receiver.socket_memory_kib) {
            (Some(sender), Some(receiver)) => Value::Measured(sender.max(receiver) as f64),
            _ if !spec.probe.metrics.contains(&metric) => not_sampled(metric),
            _ => Value::Missing(
                "a host has no /proc/net/sockstat, or the window is shorter than the 10 ms between two samples"
                    .to_owned(),
            ),
        },
        Ttr => match path.rate {
            None => Value::Missing("the link has no known rate".to_owned()),
            Some(_) if spec.probe.pacing != Pacing::Flood => {
                Value::Missing("the schedule set the pace, not the link".to_owned())
            }
            Some(_) if seconds == 0.0 => rate(arrived),
            Some(limit) => {
                let payload = arrived * f64::from(spec.message_bytes);
                let ideal = rfc6349::ideal_seconds(payload, limit, spec.family, path.mtu);
                let ratio = rfc6349::transfer_time_ratio(seconds, ideal);
                Value::finite(ratio, "no message arrived after the first receive")
            }
        },
        TcpEfficiency => {
            match sender.tcp.as_ref().and_then(|tcp| Some((tcp.bytes_sent?, tcp.bytes_retrans?))) {
                Some((sent, again)) => {
                    Value::finite(rfc6349::tcp_efficiency(sent, again), "no byte was sent")
                }
                None => Value::Missing("the stack's TCP_INFO does not count the bytes".to_owned()),
            }
        }
        BufferDelay => {
            let tcp = sender.tcp.as_ref();
            match (tcp.and_then(|tcp| tcp.srtt_mean_us), tcp.and_then(|tcp| tcp.min_rtt_us)) {
                (None, _) => not_sampled(metric),
                (_, None) => Value::Missing("the stack's TCP_INFO has no least round trip".to_owned()),
                (Some(mean), Some(least)) => Value::finite(
                    rfc6349::buffer_delay(mean, least as f64),
                    "the least round trip is shorter than a microsecond",
                ),
            }
        }
        Fairness => jain(&receiver.flow_bytes),
        Lateness | LatenessP99 if spec.kernel_paced().is_some() => {
            Value::Missing("the kernel kept the schedule, and does not say how well".to_owned())
        }
        Lateness | LatenessP99 | LatenessOpen | LatenessOpenP99 if sender.lateness.is_none() => {
            Value::Missing("there was no schedule to be late for".to_owned())
        }
        Lateness | LatenessOpen => percentile(&sender.lateness, 0.5),
        LatenessP99 | LatenessOpenP99 => percentile(&sender.lateness, 0.99),
        Retransmits => match sender.tcp.as_ref().and_then(|tcp| tcp.total_retrans) {
            Some(count) => Value::Measured(count as f64),
            None => Value::Missing("the stack's TCP_INFO does not count them".to_owned()),
        },
        Fragments => {
            let counters = &sender.counters;
            Value::Measured((counters.get("ip.FragCreates") + counters.get("ip6.FragCreates")) as f64)
        }
        Reassembled => {
            let counters = &receiver.counters;
            Value::Measured((counters.get("ip.ReasmOKs") + counters.get("ip6.ReasmOKs")) as f64)
        }
        PathMtu => match sender.endpoint.path_mtu {
            Some(bytes) => Value::Measured(f64::from(bytes)),
            None => Value::Missing("the stack does not tell it".to_owned()),
        },
        // Of what routers count, which the coordinator asks them.
        CpuRouter1 | CpuRouter2 | FragmentsRouters | ReassembledRouters | LinkBytes | LinkBytesBeyond => {
            Value::Missing("there are no routers between the hosts".to_owned())
        }
        Rtt | RttOpen | RttLoaded | ConnectTime => percentile(&sender.delays, 0.5),
        RttP99 | RttOpenP99 | RttLoadedP99 => percentile(&sender.delays, 0.99),
        RttInterface | RttInterfaceP99 if sender.interface_delays.is_none() => {
            if spec.probe.metrics.contains(&metric) {
                Value::Missing("the sending host's kernel does not say when a datagram left".to_owned())
            } else {
                not_sampled(metric)
            }
        }
        RttInterface => percentile(&sender.interface_delays, 0.5),
        RttInterfaceP99 => percentile(&sender.interface_delays, 0.99),
        RttP999 | RttOpenP999 => percentile(&sender.delays, 0.999),
        RttMean | RttOpenMean | RttLoadedMean => milliseconds(sender.delays.as_ref().map(|delays| delays.mean_ns)),
        ConnectRate => {
            let seconds = (sent.last_ns - sent.first_ns) as f64 / 1e9;
            Value::finite(sent.measured as f64 / seconds, "no connection was opened")
        }
    }
}

fn not_sampled(metric: Metric) -> Value {
    Value::Missing(format!("not sampled: name {metric} among the probe's metrics"))
}

/// Jain's index of what each flow got: (sum x)^2 / (n sum x^2).
fn jain(flows: &[u64]) -> Value {
    if flows.len() < 2 {
        return Value::Missing("one flow shares with none".to_owned());
    }
    let sum: f64 = flows.iter().map(|bytes| *bytes as f64).sum();
    let squares: f64 = flows.iter().map(|bytes| (*bytes as f64).powi(2)).sum();
    Value::finite(sum * sum / (flows.len() as f64 * squares), "nothing arrived in any flow")
}

/// What makes nanoseconds of CPU time over it per cent of a core per Gbit/s: a bit a nanosecond is a Gbit/s.
fn gigabits(bytes: u64) -> f64 {
    bytes as f64 * 8.0 / 100.0
}

/// The time that a sender was busy with what it sent in its measured window, nanoseconds: of a whole trial's the part that
/// is these messages' among all.
fn sent_in(side: &HostReport) -> Option<f64> {
    let sent = &side.sent;
    side.cpu.as_ref().map(|time| of_measured(time, sent.measured, sent.warmup))
}

/// The same of a receiver and what arrived.
fn received_in(side: &HostReport) -> Option<f64> {
    let received = &side.received;
    side.cpu.as_ref().map(|time| of_measured(time, received.measured, received.warmup))
}

fn of_measured(time: &CpuTime, measured: u64, warmup: u64) -> f64 {
    let share =
        if time.scope == CpuScope::Outside { measured as f64 / (measured + warmup) as f64 } else { 1.0 };
    time.busy_ns() as f64 * share
}

fn busy_over(busy_ns: Option<f64>, amount: f64, otherwise: &str) -> Value {
    match busy_ns {
        Some(busy_ns) => Value::finite(busy_ns / amount, otherwise),
        None => Value::Missing("the host counts no CPU time".to_owned()),
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

/// A part of the time: what is a guest's kernel and what are its programs cannot be told from outside.
fn divided(time: Option<&CpuTime>, part: fn(&CpuTime) -> u64) -> Value {
    match time {
        Some(time) if time.scope == CpuScope::Outside => Value::Missing(
            "the guest is counted from outside, where its kernel and its programs are one".to_owned(),
        ),
        time => cpu(time, part),
    }
}

fn softirq(time: Option<&CpuTime>) -> Value {
    match time {
        Some(time) if time.undivided && time.scope != CpuScope::Outside => {
            Value::Missing("the host counts interrupts as system time".to_owned())
        }
        time => divided(time, |time| time.softirq_ns),
    }
}

/// Where messages were lost, over the whole trial. TCP loses none that its user could see.
pub fn drops(spec: &TrialSpec, sender: &HostReport, receiver: &HostReport) -> Drops {
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
    let sum =
        |side: &HostReport, names: &[&str]| names.iter().map(|name| side.counters.get(name)).sum::<u64>();
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
    sender: &HostReport,
    receiver: &HostReport,
) -> Vec<Warning> {
    let mut warnings: Vec<Warning> = crate::tuned::resized(spec, [sender, receiver]).into_iter().collect();
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
    let datagrams = spec.transport == Transport::Udp && spec.framing == stacklab_model::Framing::Segment;
    if datagrams && receiver.received.measured > 0 && receiver.counters.get("interface.rx_packets") == 0 {
        warn(
            "unproved",
            "the receiver's interface counts no packets: that each message had its own is not proved"
                .to_owned(),
            "measure between two machines where their interfaces count",
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
    use crate::conduct::tests::{host_reports, path, spec};
    use stacklab_model::{Buckets, Family, Pacing};

    fn measured(metric: Metric, change: impl Fn(&mut HostReport, &mut HostReport)) -> Value {
        of(&spec(Family::Ipv6, Transport::Udp), None, metric, change)
    }

    fn of(
        spec: &TrialSpec,
        rate: Option<Rate>,
        metric: Metric,
        change: impl Fn(&mut HostReport, &mut HostReport),
    ) -> Value {
        let (mut sender, mut receiver) = host_reports(spec);
        change(&mut sender, &mut receiver);
        let path = Path { rate, ..path(spec.family) };
        values(spec, &path, &sender, &receiver)[&metric].clone()
    }

    fn tcp() -> TrialSpec {
        spec(Family::Ipv4, Transport::Tcp)
    }

    /// Half a second, in which the machine was busy for 0.3 s, 0.1 s of it in programs.
    fn half_a_second() -> CpuTime {
        CpuTime {
            scope: CpuScope::Host,
            window_ns: 500_000_000,
            user_ns: 100_000_000,
            system_ns: 120_000_000,
            irq_ns: 20_000_000,
            softirq_ns: 60_000_000,
            idle_ns: 200_000_000,
            steal_ns: 0,
            undivided: false,
            own_user_ns: 75_000_000,
            own_system_ns: 50_000_000,
        }
    }

    #[test]
    fn throughput_is_payload_over_first_to_last_arrival() {
        // 1000 messages of 128 bytes, 999 of them after the first, within one second.
        assert_eq!(measured(Metric::Throughput, |_, _| {}), Value::Measured(999.0 * 128.0 * 8.0 / 1e6));
        assert_eq!(measured(Metric::PacketRate, |_, _| {}), Value::Measured(999.0));
    }

    #[test]
    fn loss_counts_the_tail_and_no_duplicate_cancels_it() {
        let lost = |_: &mut HostReport, receiver: &mut HostReport| {
            receiver.received.measured = 900;
            receiver.received.duplicates = 90;
        };
        assert_eq!(measured(Metric::Loss, lost), Value::Measured(0.1));
        assert_eq!(measured(Metric::Duplicate, lost), Value::Measured(0.1));
    }

    #[test]
    fn what_cannot_be_had_is_missing_and_never_zero() {
        let nothing = |_: &mut HostReport, receiver: &mut HostReport| {
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
    fn parts_of_the_cpu_time_add_up_to_the_whole() {
        let figure = |metric| {
            let value = measured(metric, |sender, receiver| {
                (sender.cpu, receiver.cpu) = (Some(half_a_second()), Some(half_a_second()));
            });
            value.measured().unwrap_or_else(|| panic!("{metric}: {value:?}"))
        };
        use Metric::*;
        for (whole, parts) in
            [(CpuSender, [CpuSenderUser, CpuSystem]), (CpuReceiver, [CpuReceiverUser, CpuReceiverSystem])]
        {
            assert_eq!((figure(whole), figure(parts[0]), figure(parts[1])), (60.0, 20.0, 40.0));
        }
        assert_eq!((figure(CpuSenderSoftirq), figure(CpuReceiverSoftirq)), (12.0, 12.0));
        assert_eq!((figure(CpuEngineSender), figure(CpuEngineReceiver)), (15.0, 15.0));
        // 0.3 s over 1000 messages of 128 bytes, which are 1.024 Mbit; in half a second, 2.048 Mbit/s.
        assert_eq!((figure(CpuPerPacketSender), figure(CpuPerPacket)), (300_000.0, 300_000.0));
        for metric in [CpuPerGbitSender, CpuPerGbitReceiver] {
            assert!((figure(metric) - 60.0 / 0.002048).abs() < 1e-6, "{}", figure(metric));
        }
        for metric in [CpuSenderSoftirq, CpuReceiverSoftirq] {
            let undivided = measured(metric, |sender, receiver| {
                let time = Some(CpuTime { undivided: true, ..half_a_second() });
                (sender.cpu, receiver.cpu) = (time.clone(), time);
            });
            assert!(matches!(undivided, Value::Missing(_)), "{metric}");
        }
        for metric in [CpuSystem, CpuSenderUser, CpuReceiverUser, CpuReceiverSystem, CpuReceiverSoftirq] {
            let outside = measured(metric, |sender, receiver| {
                let time = Some(CpuTime { scope: CpuScope::Outside, ..half_a_second() });
                (sender.cpu, receiver.cpu) = (time.clone(), time);
            });
            assert!(matches!(outside, Value::Missing(_)), "{metric}");
        }
        // Of a whole trial, of which a fifth of the messages was warm-up.
        let whole = |metric| {
            measured(metric, |sender, receiver| {
                let time = Some(CpuTime { scope: CpuScope::Outside, ..half_a_second() });
                (sender.cpu, receiver.cpu) = (time.clone(), time);
                (sender.sent.warmup, receiver.received.warmup) = (250, 250);
            })
        };
        for metric in [CpuPerPacketSender, CpuPerPacket] {
            assert_eq!(whole(metric), Value::Measured(240_000.0), "{metric}");
        }
        let nothing = |metric| {
            measured(metric, |sender, receiver| {
                (sender.cpu, receiver.cpu) = (Some(half_a_second()), None);
                (sender.sent.measured, sender.sent.bytes) = (0, 0);
            })
        };
        for metric in [CpuPerPacketSender, CpuPerGbitSender, CpuPerGbitReceiver, CpuEngineReceiver] {
            assert!(matches!(nothing(metric), Value::Missing(_)), "{metric}");
        }
    }

    #[test]
    fn a_transfer_that_took_half_again_as_long_as_the_link_needs_has_a_ratio_of_one_and_a_half() {
        let mut spec = tcp();
        spec.message_bytes = 1448;
        let rate = Some(Rate(500_000_000));
        // 325,097 full segments are 8 s of a link of 500 Mbit/s; they came in 12.
        let value = of(&spec, rate, Metric::Ttr, |_, receiver| {
            (receiver.received.measured, receiver.received.at_first) = (325_098, 1);
            receiver.received.last_ns = 12_000_000_000;
        });
        assert!((value.measured().unwrap() - 1.5).abs() < 1e-5, "{value:?}");
        let at_once = |_: &mut HostReport, receiver: &mut HostReport| receiver.received.last_ns = 0;
        let mut scheduled = spec.clone();
        scheduled.probe.pacing = Pacing::Schedule(100.0);
        for missing in [
            of(&spec, None, Metric::Ttr, |_, _| {}),
            of(&spec, rate, Metric::Ttr, at_once),
            of(&scheduled, rate, Metric::Ttr, |_, _| {}),
        ] {
            assert!(matches!(missing, Value::Missing(_)), "{missing:?}");
        }
        assert!(matches!(measured(Metric::Ttr, |_, _| {}), Value::Missing(_)), "over UDP");
    }

    #[test]
    fn efficiency_and_buffer_delay_come_from_tcp_info() {
        let told = |sender: &mut HostReport, _: &mut HostReport| {
            let tcp = sender.tcp.as_mut().unwrap();
            (tcp.bytes_sent, tcp.bytes_retrans) = (Some(102_000), Some(2_000));
            (tcp.srtt_mean_us, tcp.min_rtt_us) = (Some(32_000.0), Some(25_000));
        };
        let efficiency = of(&tcp(), None, Metric::TcpEfficiency, told).measured().unwrap();
        assert!((efficiency - 98.03).abs() < 0.01, "{efficiency}");
        assert_eq!(of(&tcp(), None, Metric::BufferDelay, told), Value::Measured(28.0));
        for metric in [Metric::TcpEfficiency, Metric::BufferDelay] {
            assert!(matches!(of(&tcp(), None, metric, |_, _| {}), Value::Missing(_)), "{metric}");
        }
    }

    #[test]
    fn the_index_of_fairness_is_one_when_even_and_a_share_when_one_takes_all() {
        let shared =
            |flows: &[u64]| measured(Metric::Fairness, |_, receiver| receiver.flow_bytes = flows.to_vec());
        assert_eq!(shared(&[7, 7, 7, 7]), Value::Measured(1.0));
        assert_eq!(shared(&[100, 0, 0, 0]), Value::Measured(0.25));
        // (1 + 3)^2 / (2 * 10)
        assert_eq!(shared(&[1, 3]), Value::Measured(0.8));
        for flows in [&[][..], &[5], &[0, 0]] {
            assert!(matches!(shared(flows), Value::Missing(_)), "{flows:?}");
        }
    }

    #[test]
    fn lateness_is_the_schedules_and_missing_without_one() {
        let late = |sender: &mut HostReport, _: &mut HostReport| {
            sender.lateness = Some(Delays {
                buckets: Buckets(vec![(2_000, 98), (500_000, 2)]),
                mean_ns: 1e4,
                jitter_ns: None,
                jitter_rfc3550_ns: None,
            });
        };
        let mut open = spec(Family::Ipv6, Transport::Udp);
        (open.probe.probe, open.probe.pacing) = (Probe::EchoOpen, Pacing::Schedule(100.0));
        assert_eq!(measured(Metric::Lateness, late), Value::Measured(0.002));
        assert_eq!(measured(Metric::LatenessP99, late), Value::Measured(0.5));
        assert_eq!(of(&open, None, Metric::LatenessOpen, late), Value::Measured(0.002));
        assert_eq!(of(&open, None, Metric::LatenessOpenP99, late), Value::Measured(0.5));
        assert!(matches!(measured(Metric::Lateness, |_, _| {}), Value::Missing(_)));
    }

    #[test]
    fn socket_memory_is_the_larger_hosts_and_missing_where_one_was_not_sampled() {
        let mut asked = spec(Family::Ipv6, Transport::Udp);
        asked.probe.metrics = vec![Metric::MemorySockets];
        let memory = |spec: &TrialSpec, kib: [Option<u64>; 2]| {
            of(spec, None, Metric::MemorySockets, |sender, receiver| {
                [sender.socket_memory_kib, receiver.socket_memory_kib] = kib;
            })
        };
        assert_eq!(memory(&asked, [Some(64), Some(96)]), Value::Measured(96.0));
        let Value::Missing(reason) = memory(&asked, [Some(64), None]) else {
            panic!("a host was not sampled")
        };
        assert!(reason.contains("sockstat"), "{reason}");
        let unasked = memory(&spec(Family::Ipv6, Transport::Udp), [None, None]);
        assert!(matches!(&unasked, Value::Missing(reason) if reason.contains("name memory_sockets")));
    }

    #[test]
    fn losses_are_told_apart_by_the_counters() {
        let spec = spec(Family::Ipv4, Transport::Udp);
        let (mut sender, mut receiver) = host_reports(&spec);
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
