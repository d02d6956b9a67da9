use super::values;
use crate::fixtures::{host_reports, path, spec};
use crate::path::Path;
use crate::results::measures::{drops, percentile};
use crate::results::{tick_ns, warnings};
use stacklab_model::{
    Buckets, CpuScope, CpuSource, CpuTime, Delays, Drops, Family, HostReport, Metric, Pacing, Probe, Rate,
    Transport, TrialSpec, Value,
};

fn measure(metric: Metric, change: impl Fn(&mut HostReport, &mut HostReport)) -> Value {
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
        source: None,
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

/// The CPU time of half a second, within a window of this length.
fn cpu_within(window_ns: u64) -> Value {
    measure(Metric::CpuReceiver, |_, receiver| {
        receiver.cpu = Some(CpuTime { window_ns, ..half_a_second() });
    })
}

#[test]
fn cpu_time_of_too_short_a_window_is_missing() {
    assert_eq!(cpu_within(500_000_000), Value::Measured(60.0));
    assert!(
        matches!(cpu_within(1), Value::Missing(reason) if reason.contains("shorter than what CPU time resolves"))
    );
}

#[test]
fn throughput_is_payload_over_first_to_last_arrival() {
    // 1000 messages of 128 bytes, 999 of them after the first, within one second.
    assert_eq!(measure(Metric::Throughput, |_, _| {}), Value::Measured(999.0 * 128.0 * 8.0 / 1e6));
    assert_eq!(measure(Metric::MessageRate, |_, _| {}), Value::Measured(999.0));
}

#[test]
fn loss_counts_the_tail_and_no_duplicate_cancels_it() {
    assert_eq!(measure(Metric::Loss, lose_tail), Value::Measured(0.1));
    assert_eq!(measure(Metric::Duplicate, lose_tail), Value::Measured(0.1));
}

fn lose_tail(_: &mut HostReport, receiver: &mut HostReport) {
    receiver.received.measured = 900;
    receiver.received.duplicates = 90;
}

#[test]
fn a_faster_arm_has_no_more_events_per_message() {
    for messages in [1000, 20_000] {
        let udp = spec(Family::Ipv6, Transport::Udp);
        for (spec, metric, each) in [
            (&udp, Metric::IpFragCreates, 2.0),
            (&udp, Metric::IpReasmOks, 0.5),
            (&tcp(), Metric::Retransmits, 0.01),
        ] {
            let value = of(spec, None, metric, |sender, receiver| send_more(messages, sender, receiver));
            assert_eq!(value, Value::Measured(each));
        }
    }
    let nothing = measure(Metric::IpFragCreates, |sender, _| sender.sent = Default::default());
    assert!(matches!(nothing, Value::Missing(_)));
}

/// Sends this many messages, with events in proportion.
fn send_more(messages: u64, sender: &mut HostReport, receiver: &mut HostReport) {
    (sender.sent.warmup, sender.sent.measured, sender.sent.markers) = (97, messages, 3);
    let all = sender.sent.of_trial();
    sender.counters.0.insert("ip6.FragCreates".to_owned(), 2 * all);
    receiver.counters.0.insert("ip6.ReasmOKs".to_owned(), all / 2);
    if let Some(tcp) = &mut sender.tcp {
        tcp.total_retrans = Some(all / 100);
    }
}

#[test]
fn what_cannot_be_had_is_missing_and_never_zero() {
    for metric in
        [Metric::Throughput, Metric::Jitter, Metric::OneWayDelay, Metric::CpuReceiver, Metric::Duplicate]
    {
        let nothing = measure(metric, |_, receiver| {
            receiver.received = Default::default();
            receiver.delays = None;
            receiver.cpu = None;
        });
        assert!(matches!(nothing, Value::Missing(_)), "{metric}");
    }
    assert!(matches!(measure(Metric::Retransmits, |_, _| {}), Value::Missing(_)));
}

#[test]
fn parts_of_the_cpu_time_add_up_to_the_whole() {
    use Metric::*;
    for (whole, user, system) in
        [(CpuSender, CpuSenderUser, SenderCpuSystem), (CpuReceiver, CpuReceiverUser, ReceiverCpuSystem)]
    {
        assert_eq!([whole, user, system].map(measure_busy), [60.0, 20.0, 40.0]);
    }
    assert_eq!([CpuSenderSoftirq, CpuReceiverSoftirq].map(measure_busy), [12.0; 2]);
    assert_eq!([CpuGeneratorSender, CpuGeneratorReceiver].map(measure_busy), [15.0; 2]);
    // 0.3 s over 1000 messages of 128 bytes, which are 1.024 Mbit; in half a second, 2.048 Mbit/s.
    assert_eq!([SenderCpuPerMessage, ReceiverCpuPerMessage].map(measure_busy), [300_000.0; 2]);
    for metric in [CpuPerGbitSender, CpuPerGbitReceiver] {
        let figure = measure_busy(metric);
        assert!((figure - 60.0 / 0.002048).abs() < 1e-6, "{figure}");
    }
    for metric in [CpuSenderSoftirq, CpuReceiverSoftirq] {
        let undivided = measure(metric, |sender, receiver| {
            let time = Some(CpuTime { undivided: true, ..half_a_second() });
            (sender.cpu, receiver.cpu) = (time.clone(), time);
        });
        assert!(matches!(undivided, Value::Missing(_)), "{metric}");
    }
    for metric in [SenderCpuSystem, CpuSenderUser, CpuReceiverUser, ReceiverCpuSystem, CpuReceiverSoftirq] {
        let outside = measure(metric, |sender, receiver| {
            let time = Some(CpuTime { scope: CpuScope::Outside, ..half_a_second() });
            (sender.cpu, receiver.cpu) = (time.clone(), time);
        });
        assert!(matches!(outside, Value::Missing(_)), "{metric}");
    }
    // CPU time of a whole trial, with a fifth of the messages in the warm-up.
    for metric in [SenderCpuPerMessage, ReceiverCpuPerMessage] {
        let whole = measure(metric, |sender, receiver| {
            let time = Some(CpuTime { scope: CpuScope::Outside, ..half_a_second() });
            (sender.cpu, receiver.cpu) = (time.clone(), time);
            (sender.sent.warmup, receiver.received.warmup) = (250, 250);
        });
        assert_eq!(whole, Value::Measured(240_000.0), "{metric}");
    }
    for metric in [SenderCpuPerMessage, CpuPerGbitSender, CpuPerGbitReceiver, CpuGeneratorReceiver] {
        let nothing = measure(metric, |sender, receiver| {
            (sender.cpu, receiver.cpu) = (Some(half_a_second()), None);
            (sender.sent.measured, sender.sent.bytes) = (0, 0);
        });
        assert!(matches!(nothing, Value::Missing(_)), "{metric}");
    }
}

/// A figure of two hosts that were busy as in [`half_a_second`].
fn measure_busy(metric: Metric) -> f64 {
    let value = measure(metric, |sender, receiver| {
        (sender.cpu, receiver.cpu) = (Some(half_a_second()), Some(half_a_second()));
    });
    value.measured().unwrap_or_else(|| panic!("{metric}: {value:?}"))
}

#[test]
fn short_window_is_coarse_where_time_is_in_ticks() {
    for source in [None, Some(CpuSource::Ticks), Some(CpuSource::IdleTime)] {
        assert!(warns_of_tick(source, 99 * tick_ns()), "{source:?}");
        assert!(!warns_of_tick(source, 100 * tick_ns()), "{source:?}");
    }
    assert!(!warns_of_tick(Some(CpuSource::IdleResidency), 1));
}

fn warns_of_tick(source: Option<CpuSource>, window_ns: u64) -> bool {
    let spec = tcp();
    let (mut sender, receiver) = host_reports(&spec);
    sender.cpu = Some(CpuTime { source, window_ns, ..half_a_second() });
    let said = warnings(&spec, &path(spec.family), &sender, &receiver);
    said.iter().any(|warning| warning.code == "tick")
}

#[test]
fn transfer_time_ratio_is_over_what_the_link_needs() {
    let mut spec = tcp();
    spec.message_bytes = 1448;
    let rate = Some(Rate(500_000_000));
    // 325,097 full segments take 8 s on a link of 500 Mbit/s; they took 12 s.
    let value = of(&spec, rate, Metric::TransferTimeRatio, |_, receiver| {
        (receiver.received.bytes, receiver.received.bytes_at_first) = (325_098 * 1448, 1448);
        receiver.received.last_ns = 12_000_000_000;
    });
    assert!((value.measured().unwrap() - 1.5).abs() < 1e-5, "{value:?}");
    let mut scheduled = spec.clone();
    scheduled.probe.pacing = Pacing::Schedule(100.0);
    for missing in [
        of(&spec, None, Metric::TransferTimeRatio, |_, _| {}),
        of(&spec, rate, Metric::TransferTimeRatio, |_, receiver| receiver.received.last_ns = 0),
        of(&scheduled, rate, Metric::TransferTimeRatio, |_, _| {}),
    ] {
        assert!(matches!(missing, Value::Missing(_)), "{missing:?}");
    }
    assert!(matches!(measure(Metric::TransferTimeRatio, |_, _| {}), Value::Missing(_)), "over UDP");
}

#[test]
fn few_arrivals_have_the_rate_of_the_time_of_sending() {
    // Two of 1000 messages arrive, 10 us apart; half a second later would be the arrivals' own time.
    assert_eq!(measure_two_arrivals(10_000), Value::Measured(2.0));
    assert_eq!(measure_two_arrivals(600_000_000), Value::Measured(1.0 / 0.6));
    assert!(matches!(measure_two_arrivals(0), Value::Missing(_)));
}

fn measure_two_arrivals(last_ns: u64) -> Value {
    of(&spec(Family::Ipv4, Transport::Udp), None, Metric::MessageRate, |_, receiver| {
        let received = &mut receiver.received;
        (received.measured, received.bytes, received.last_ns) = (2, 256, last_ns);
    })
}

#[test]
fn stream_with_cut_messages_has_the_rate_of_its_bytes() {
    let rate = of(&tcp(), None, Metric::MessageRate, |_, receiver| {
        let received = &mut receiver.received;
        (received.measured, received.bytes, received.cut_bytes) = (1, 128, 64);
        received.bytes_at_first = 32;
    });
    assert_eq!(rate, Value::Measured((128.0 + 64.0 - 32.0) / 128.0));
}

#[test]
fn efficiency_and_buffer_delay_come_from_tcp_info() {
    let efficiency = of(&tcp(), None, Metric::TcpEfficiency, fill_tcp_info).measured().unwrap();
    assert!((efficiency - 98.03).abs() < 0.01, "{efficiency}");
    assert_eq!(of(&tcp(), None, Metric::BufferDelay, fill_tcp_info), Value::Measured(28.0));
    for metric in [Metric::TcpEfficiency, Metric::BufferDelay] {
        assert!(matches!(of(&tcp(), None, metric, |_, _| {}), Value::Missing(_)), "{metric}");
    }
}

fn fill_tcp_info(sender: &mut HostReport, _: &mut HostReport) {
    let tcp = sender.tcp.as_mut().unwrap();
    (tcp.bytes_sent, tcp.bytes_retrans) = (Some(102_000), Some(2_000));
    (tcp.srtt_mean_us, tcp.min_rtt_us) = (Some(32_000.0), Some(25_000));
}

#[test]
fn fairness_is_one_when_even_and_a_share_for_one_flow() {
    assert_eq!(measure_fairness(&[7, 7, 7, 7]), Value::Measured(1.0));
    assert_eq!(measure_fairness(&[100, 0, 0, 0]), Value::Measured(0.25));
    // (1 + 3)^2 / (2 * 10)
    assert_eq!(measure_fairness(&[1, 3]), Value::Measured(0.8));
    for flows in [&[][..], &[5], &[0, 0]] {
        assert!(matches!(measure_fairness(flows), Value::Missing(_)), "{flows:?}");
    }
}

fn measure_fairness(flows: &[u64]) -> Value {
    measure(Metric::Fairness, |_, receiver| receiver.flow_bytes = flows.to_vec())
}

#[test]
fn pacing_error_is_missing_without_a_schedule() {
    let mut open = spec(Family::Ipv6, Transport::Udp);
    (open.probe.probe, open.probe.pacing) = (Probe::EchoOpenLoop, Pacing::Schedule(100.0));
    assert_eq!(measure(Metric::PacingError, send_late), Value::Measured(0.002));
    assert_eq!(measure(Metric::PacingErrorP99, send_late), Value::Measured(0.5));
    assert_eq!(of(&open, None, Metric::PacingErrorOpen, send_late), Value::Measured(0.002));
    assert_eq!(of(&open, None, Metric::PacingErrorOpenP99, send_late), Value::Measured(0.5));
    assert!(matches!(measure(Metric::PacingError, |_, _| {}), Value::Missing(_)));
}

fn send_late(sender: &mut HostReport, _: &mut HostReport) {
    sender.pacing_error = Some(Delays {
        buckets: Buckets(vec![(2_000, 98), (500_000, 2)]),
        mean_ns: 1e4,
        jitter_ns: None,
        jitter_rfc3550_ns: None,
    });
}

#[test]
fn socket_memory_is_the_larger_hosts_or_missing() {
    let mut asked = spec(Family::Ipv6, Transport::Udp);
    asked.probe.metrics = vec![Metric::MemorySockets];
    assert_eq!(measure_memory(&asked, [Some(64), Some(96)]), Value::Measured(96.0));
    let half = measure_memory(&asked, [Some(64), None]);
    let Value::Missing(reason) = half else { panic!("a host was not sampled") };
    assert!(reason.contains("sockstat"), "{reason}");
    let unasked = measure_memory(&spec(Family::Ipv6, Transport::Udp), [None, None]);
    assert!(matches!(&unasked, Value::Missing(reason) if reason.contains("name memory_sockets")));
}

fn measure_memory(spec: &TrialSpec, kib: [Option<u64>; 2]) -> Value {
    of(spec, None, Metric::MemorySockets, |sender, receiver| {
        [sender.socket_memory_kib, receiver.socket_memory_kib] = kib;
    })
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

#[test]
fn reasons_use_labels() {
    let reason = Value::Missing("TCP smoothed RTT does not apply to UDP".to_owned());
    assert_eq!(measure(Metric::TcpSrtt, |_, _| {}), reason);
}

#[test]
fn a_buffer_that_was_clamped_is_a_warning() {
    assert_eq!(warn_of_send_buffer(200_000), None);
    let text = warn_of_send_buffer(180_000).unwrap();
    assert!(text.ends_with("the sender's send buffer: 100000 requested, 90000 set"), "{text}");
}

/// The warning about a send buffer of 100,000 bytes of which this was kept.
fn warn_of_send_buffer(kept: u32) -> Option<String> {
    let mut spec = tcp();
    spec.tuning.send_buffer = Some(100_000);
    let (mut sender, receiver) = host_reports(&spec);
    sender.endpoint.options.send_buffer = Some(kept);
    let mut said = warnings(&spec, &path(spec.family), &sender, &receiver).into_iter();
    said.find(|warning| warning.code == "clamped").map(|warning| warning.text)
}
