mod honest;

use super::*;
use crate::fixtures::{ends, spec};
use stacklab_model::{
    ArmSchedule, Buckets, Compared, CpuScope, CpuSource, CpuTime, DelayPoints, Delays, Exchange, Family,
    IntervalRow, Ipdv, Length, Metric, Point, SizeOf, Slice, TcpInfo, Transport, Trial,
};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;

/// A trial of 1000 messages of 100 bytes in a second, after 100 of a warm-up, and the reports of an honest run of it.
fn honest(probe: Probe, transport: Transport) -> (TrialSpec, Ends<HostReport>) {
    let mut spec = spec(Family::Ipv6, transport);
    spec.probe.probe = probe;
    spec.message_bytes = 100;
    let mut ends = ends(&spec);
    for report in &mut ends {
        report.cpu = Some(cpu(report.role));
    }
    let Ends { sender, receiver } = &mut ends;
    let sent = &mut sender.sent;
    (sent.warmup, sent.measured, sent.bytes) = (100, 1000, 100_000);
    (sent.first_ns, sent.last_ns) = (50 * SECOND, 51 * SECOND);
    let received = &mut receiver.received;
    (received.warmup, received.measured, received.bytes, received.bytes_at_first) = (100, 1000, 100_000, 100);
    (received.first_ns, received.last_ns) = (7 * SECOND, 8 * SECOND);
    if probe.echoes() {
        (sender.received, receiver.sent) = (receiver.received.clone(), sender.sent.clone());
        receiver.sent.markers = 0;
        let exchange = Exchange { sent_ns: 50 * SECOND, reflected_ns: 1, returned_ns: 50 * SECOND + MS };
        sender.received.least_round_trip = Some(exchange);
    }
    let counts = if probe.echoes() { sender } else { receiver };
    counts.delays = Some(delays(&[(10_000, 900), (90_000, 100)]));
    counts.series = vec![row(0, 600), row(SECOND / 2, 400)];
    (spec, ends)
}

fn cpu(role: Role) -> CpuTime {
    let scope = if role == Role::Sender { CpuScope::Host } else { CpuScope::Shared };
    CpuTime {
        idle_ns: SECOND,
        own_user_ns: SECOND / 2,
        ..CpuTime::of_processes((scope, CpuSource::IdleTime), SECOND, [SECOND / 2, SECOND / 2])
    }
}

fn delays(buckets: &[(u64, u64)]) -> Delays {
    let buckets = Buckets(buckets.to_vec());
    let mean_ns = buckets.0.iter().map(|(value, count)| (value * count) as f64).sum::<f64>();
    let mean_ns = mean_ns / buckets.count() as f64;
    Delays { buckets, mean_ns, jitter_ns: Some(5_000.0), jitter_rfc3550_ns: Some(4_000.0) }
}

fn row(start_ns: u64, messages: u64) -> IntervalRow {
    IntervalRow { start_ns, messages, bytes: 100 * messages, delay_mean_ns: Some(18_000.0) }
}

/// A trial that took 1.2 s, on hosts of two processors.
fn limits() -> Limits {
    Limits { processors: [Some(2); 2], ..Limits::of_time(Duration::from_millis(1200)) }
}

type ReportChange<'a> = &'a dyn Fn(&mut HostReport, &mut HostReport);

/// What an honest run contradicts after a change, by transport.
fn reasons(probe: Probe, transport: Transport, change: ReportChange<'_>) -> Vec<String> {
    let (spec, mut ends) = honest(probe, transport);
    change(&mut ends.sender, &mut ends.receiver);
    numbers(&spec, &limits(), 0, ends.as_ref())
}

/// Each change makes the trial invalid for a reason with its text, over both transports.
fn assert_lies(probe: Probe, lies: &[(&str, ReportChange<'_>)]) {
    for transport in Transport::ALL.iter().copied() {
        assert_eq!(reasons(probe, transport, &|_, _| ()), [""; 0], "{transport}");
        for (text, change) in lies {
            let found = reasons(probe, transport, *change);
            assert!(found.iter().any(|reason| reason.contains(text)), "{transport}: {text}: {found:?}");
        }
    }
}

fn trip(sent_ns: u64, returned_ns: u64) -> Option<Exchange> {
    Some(Exchange { sent_ns, reflected_ns: 0, returned_ns })
}

#[test]
fn times_lie_within_the_trial() {
    assert_lies(
        Probe::Stream,
        &[
            ("receiver reports that what it received took 11 s", &|_, r| r.received.last_ns += 10 * SECOND),
            ("what it received took 8 s", &|_, r| r.received.first_ns = 0),
            ("it received took 1666666 min", &|_, r| r.received.last_ns = 100_000_000_000_000_000),
            ("it received was 1 s before the first", &|_, r| r.received.last_ns -= 2 * SECOND),
            ("sender reports that what it sent took 11 s", &|s, _| s.sent.last_ns += 10 * SECOND),
            ("it sent took 51 s", &|s, _| s.sent.first_ns = 0),
            ("took no more than 1.4 s", &|s, _| s.sent.first_ns = 0),
            ("10 s behind its schedule", &|s, _| s.sent.max_late_ns = Some(10 * SECOND)),
            ("an interval that begins after 10 s", &|_, r| r.series[1].start_ns = 10 * SECOND),
            ("what it had in slice 0 took 9 s", &|_, r| {
                r.slices = vec![Slice { messages: 5, last_ns: 9 * SECOND, ..Slice::default() }];
            }),
        ],
    );
    assert_lies(
        Probe::Echo,
        &[
            ("on the way in its shortest round trip took 9 s", &|s, _| {
                s.received.least_round_trip = trip(0, 9 * SECOND);
            }),
            ("was 2 s before the first", &|s, _| s.received.least_round_trip = trip(2 * SECOND, 0)),
        ],
    );
}

#[test]
fn bytes_are_messages_of_the_planned_length() {
    assert_lies(
        Probe::Stream,
        &[
            ("50000 bytes received in 1000 messages of 100", &|_, r| r.received.bytes /= 2),
            ("0 bytes received in 1000 messages", &|_, r| r.received.bytes = 0),
            ("100000 bytes received in 500 messages", &|_, r| r.received.measured /= 2),
            ("1000000 bytes sent in 1000 messages", &|s, _| s.sent.bytes *= 10),
            ("0 bytes sent in 1000 messages", &|s, _| s.sent.bytes = 0),
            ("100100 bytes at its first receive, of 100000", &|_, r| r.received.bytes_at_first = 100_100),
            ("101 bytes of messages that were cut", &|_, r| r.received.cut_bytes = 101),
            ("99999 bytes in its flows, and 100000", &|_, r| r.flow_bytes = vec![99_999]),
            ("reports 2 flows, planned are 1", &|_, r| r.flow_bytes = vec![50_000; 2]),
            ("1001 messages sent, planned are 1000", &|s, _| s.sent.discarded = 1),
            ("9 end markers: 8 are possible", &|s, _| s.sent.markers = 9),
        ],
    );
}

fn slices(messages: u64, at_first: u64) -> Vec<Slice> {
    vec![Slice { messages, at_first, ..Slice::default() }]
}

#[test]
fn rows_and_slices_add_up_to_the_trial() {
    assert_lies(
        Probe::Stream,
        &[
            ("1000000000040000 bytes in its intervals", &|_, r| r.series[0].bytes = 1_000_000_000_000_000),
            ("1000000000400 messages in its intervals", &|_, r| r.series[0].messages = 1_000_000_000_000),
            ("400 messages in its intervals, and 1000", &|_, r| {
                r.series.remove(0);
            }),
            ("1001 messages in its slices, and 1000", &|_, r| r.slices = slices(1001, 0)),
            ("1001 messages in its slices, and 1000", &|s, _| s.slices = slices(1001, 0)),
            ("6 messages at the first receive of a slice of 5", &|_, r| r.slices = slices(5, 6)),
        ],
    );
}

/// Changes the report that has delays.
fn change(set: fn(&mut HostReport)) -> impl Fn(&mut HostReport, &mut HostReport) {
    move |s, r| set(if s.delays.is_some() { s } else { r })
}

fn change_delays(set: fn(&mut Delays)) -> impl Fn(&mut HostReport, &mut HostReport) {
    move |s, r| set(s.delays.as_mut().or(r.delays.as_mut()).unwrap())
}

#[test]
fn each_message_has_a_delay_within_the_trial() {
    for probe in [Probe::Stream, Probe::Echo] {
        assert_lies(
            probe,
            &[
                (
                    " of 1666666 min 40 s, and its histogram has a mean of 18 us",
                    &change_delays(|delays| delays.mean_ns = 1e17),
                ),
                (" of 17 us, and its histogram", &change_delays(|delays| delays.mean_ns = 17_000.0)),
                (
                    "varies by 1666666 min 40 s on average",
                    &change_delays(|delays| delays.jitter_rfc3550_ns = Some(1e17)),
                ),
                ("varies by 90 us on average", &change_delays(|delays| delays.jitter_ns = Some(90_000.0))),
                (
                    "reports 1000000000000000 ",
                    &change_delays(|delays| delays.buckets = Buckets(vec![(1, 1_000_000_000_000_000)])),
                ),
                ("reports 0 ", &change_delays(|delays| delays.buckets = Buckets::default())),
                (
                    "and its histogram has a mean of 1 ns",
                    &change_delays(|delays| delays.buckets = Buckets(vec![(1, 1000)])),
                ),
                (
                    " of 30 s, and the trial took no more than 1.4 s",
                    &change(|report| {
                        report.delays = Some(delays(&[(1_000, 999), (30 * SECOND, 1)]));
                    }),
                ),
                ("has its values in disorder", &change_delays(|delays| delays.buckets.0.reverse())),
                (
                    "a delay of 5 s in an interval or a slice",
                    &change(|report| {
                        report.series[1].delay_mean_ns = Some(5e9);
                    }),
                ),
                (
                    " of 2 s, and the trial took no more",
                    &change(|report| {
                        report.pacing_error = Some(delays(&[(2 * SECOND, 5)]));
                    }),
                ),
            ],
        );
    }
    assert_lies(
        Probe::Stream,
        &[("1001 pacing errors of 1000 messages", &|s, _| s.pacing_error = Some(delays(&[(1, 1001)])))],
    );
    assert_lies(
        Probe::Echo,
        &[("1001 interface round trips of 1000 messages", &|s, _| {
            s.interface_delays = Some(delays(&[(1, 1001)]));
        })],
    );
}

fn set_ipdv(ipdv: Ipdv) -> impl Fn(&mut HostReport, &mut HostReport) {
    move |_, receiver| receiver.received.ipdv = Some(ipdv)
}

#[test]
fn delay_variation_is_of_pairs_of_messages() {
    let honest = Ipdv { pairs: 999, min_ns: -500, median_ns: 0, max_ns: 700 };
    assert_lies(
        Probe::Stream,
        &[
            ("1000 pairs of 1000 messages", &set_ipdv(Ipdv { pairs: 1000, ..honest })),
            (
                "delay variations of -500, 800 and 700 ns in disorder",
                &set_ipdv(Ipdv { median_ns: 800, ..honest }),
            ),
            ("a delay variation of 30 s", &set_ipdv(Ipdv { min_ns: -30_000_000_000, ..honest })),
        ],
    );
}

fn change_cpu(set: fn(&mut CpuTime)) -> impl Fn(&mut HostReport, &mut HostReport) {
    move |_, receiver| set(receiver.cpu.as_mut().unwrap())
}

#[test]
fn cpu_time_is_of_all_processors_at_most() {
    assert_lies(
        Probe::Stream,
        &[
            (
                "busy for 1666666 min 41 s within 1 s: it has 2",
                &change_cpu(|cpu| cpu.user_ns = 100_000_000_000_000_000),
            ),
            ("busy for 2.5 s within 1 s: it has 2", &change_cpu(|cpu| cpu.softirq_ns = 3 * SECOND / 2)),
            ("busy for 1 s within 1 ns", &change_cpu(|cpu| cpu.window_ns = 1)),
            ("idle for 16666 min 40 s", &change_cpu(|cpu| cpu.idle_ns = 1_000_000_000_000_000)),
            ("busy with its agent for 3 s", &change_cpu(|cpu| cpu.own_user_ns = 3 * SECOND)),
            ("CPU time of 10 s, and the trial took", &change_cpu(|cpu| cpu.window_ns = 10 * SECOND)),
            ("worked for 3 s", &|_, r| {
                r.slices = vec![Slice { cpu_ns: Some(3 * SECOND), ..Slice::default() }]
            }),
            ("waited for 3 s", &|_, r| {
                r.slices = vec![Slice { waited_ns: Some(3 * SECOND), ..Slice::default() }]
            }),
            ("KiB of memory for its sockets", &|_, r| r.socket_memory_kib = Some(1 << 40)),
        ],
    );
}

fn info(sent: u64, again: u64) -> TcpInfo {
    TcpInfo {
        data_segs_out: Some(sent),
        total_retrans: Some(again),
        bytes_sent: Some(100 * sent),
        bytes_retrans: Some(100 * again.min(sent)),
        ..TcpInfo::default()
    }
}

fn with_tcp(tcp: TcpInfo) -> Vec<String> {
    reasons(Probe::Stream, Transport::Tcp, &|sender, _| sender.tcp = Some(tcp.clone()))
}

#[test]
fn what_tcp_sends_again_it_has_sent() {
    // Each attempt of an opening, and each segment many times.
    assert_eq!(with_tcp(info(5000, 5200)), [""; 0]);
    assert!(with_tcp(info(3000, 1_000_000_000))[0].contains("1000000000 segments sent again, of 3000 sent"));
    let uncounted = TcpInfo { data_segs_out: None, ..info(0, 1_000_000_000) };
    assert!(with_tcp(uncounted)[0].contains("segments sent again"));
    let bytes = TcpInfo { bytes_retrans: Some(300_001), ..info(3000, 10) };
    assert!(with_tcp(bytes)[0].contains("300001 bytes sent again, of 300000 sent"));
    let slow = TcpInfo { srtt_mean_us: Some(2e6), ..info(3000, 10) };
    assert!(with_tcp(slow)[0].contains("TCP reports a round trip of 2 s"));
}

#[test]
fn copies_and_answers_are_of_what_was_sent() {
    let many = 1_000_000_000_000;
    assert_lies(
        Probe::Stream,
        &[
            ("1000000000000 copies of 1000 messages", &|_, r| r.received.duplicates = many),
            ("1000000000000 copies of 1000 messages", &|_, r| r.received.beyond_window = many),
            ("1000000000000 reordered, and 1000 messages", &|_, r| r.received.reordered = many),
            ("of the warm-up received, of 100", &|_, r| r.received.warmup = many),
            ("answered 0 messages of the warm-up and 1 measured ones", &|_, r| r.sent.measured = 1),
        ],
    );
    assert_lies(
        Probe::Echo,
        &[
            ("answered 100 messages of the warm-up and 2000 measured ones, of 100 and 1000", &|_, r| {
                r.sent.measured *= 2;
            }),
            ("and 0 measured ones, of 100 and 1000", &|_, r| r.sent.measured = 0),
            ("1000000000000 bytes sent in 1000 messages", &|_, r| r.sent.bytes = many),
            ("the sender reports 1000000000000 copies", &|s, _| s.received.duplicates = many),
        ],
    );
}

#[test]
fn report_of_the_other_role_is_named() {
    for probe in [Probe::Stream, Probe::Echo] {
        assert_lies(
            probe,
            &[
                ("the receiver reports as a sender", &|_, r| r.role = Role::Sender),
                ("the sender reports as a receiver", &|s, _| s.role = Role::Receiver),
            ],
        );
    }
}

/// A run of these reports in which CPU time is a figure.
fn run(spec: TrialSpec, ends: Ends<HostReport>) -> RunRecord {
    let cell = stacklab_model::Cell::new(spec.family, spec.transport, SizeOf::Payload, spec.message_bytes);
    let trial = Trial { block: 0, position: 0, cell, probe: spec.probe.probe };
    let mut run = RunRecord::with_value(trial, Metric::Loss, Value::Measured(0.1));
    (run.spec, run.host_reports, run.wall_ns) = (spec, ends.into_iter().collect(), 1200 * MS);
    run
}

#[test]
fn finished_run_is_checked_like_an_answer() {
    let (spec, ends) = honest(Probe::Stream, Transport::Udp);
    let made = run(spec, ends);
    assert_eq!(finished_run(&made), [""; 0]);
    let mut without = made.clone();
    without.host_reports.clear();
    assert_eq!(finished_run(&without), [""; 0]);
    without.values.insert(Metric::Loss, Value::Measured(1.5));
    assert_eq!(finished_run(&without), ["a figure of loss is not possible: 1.5"]);
    let mut lie = made.clone();
    lie.host_reports[1].received.bytes = 1;
    let found = finished_run(&lie);
    assert!(found.iter().any(|reason| reason.contains("1 bytes received in 1000 messages")), "{found:?}");
    // An arm says its share of the time, and a reverse trial has the second host's report first.
    let mut arm = made;
    (arm.wall_ns, arm.spec.schedule) = (100 * MS, ArmSchedule::TokenPassing(None));
    arm.spec.probe.length = Length::Time(SECOND);
    assert_eq!(finished_run(&arm), [""; 0]);
}
