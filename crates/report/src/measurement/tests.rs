//! Texts of single runs, as the user reads them.

use crate::measurement::measurement_json;
use crate::measurement::{MeasurementText, measurement};
use insta::assert_snapshot;
use stacklab_model::*;
use std::collections::BTreeMap;

fn side(role: Role, local: &str, peer: &str, transport: Transport) -> HostReport {
    let local = local.parse().unwrap();
    let peer = peer.parse().unwrap();
    let endpoint = Endpoint {
        family: Family::Ipv6,
        transport,
        local,
        peer,
        interface: "eth0".to_owned(),
        interface_mtu: 1500,
        path_mtu: Some(1500),
        offloads: Offloads::default(),
        congestion_control: (transport == Transport::Tcp).then(|| "cubic".to_owned()),
        options: Default::default(),
    };
    HostReport {
        io: Some(Io::Send),
        cpu: Some(CpuTime {
            scope: CpuScope::Host,
            source: None,
            window_ns: 2_000_000_000,
            user_ns: 100_000_000,
            system_ns: 900_000_000,
            irq_ns: 0,
            softirq_ns: 500_000_000,
            idle_ns: 500_000_000,
            steal_ns: 0,
            undivided: false,
            own_user_ns: 100_000_000,
            own_system_ns: 900_000_000,
        }),
        peak_rss_kib: Some(6000),
        ..HostReport::new(role, endpoint)
    }
}

/// Rows of 1000 messages in two seconds, with a pause in the middle.
fn series() -> Vec<IntervalRow> {
    let rows = [(0, 495), (1_000_000_000, 0), (1_500_000_000, 495)];
    rows.map(|(start_ns, messages)| IntervalRow {
        start_ns,
        messages,
        bytes: messages * 1400,
        delay_mean_ns: (messages > 0).then_some(250_000.0),
    })
    .to_vec()
}

/// The reports of two machines: 1000 messages sent in two seconds, 990 received.
fn host_reports(probe: Probe, transport: Transport, pacing: Pacing) -> Vec<HostReport> {
    const FIRST_NS: u64 = 5_000_000_000;
    const LAST_NS: u64 = 7_000_000_000;
    let here = "[2001:db8::1]:40001";
    let there = "[2001:db8::2]:40002";
    let mut sender = side(Role::Sender, here, there, transport);
    let mut receiver = side(Role::Receiver, there, here, transport);
    sender.sent =
        Sent { measured: 1000, bytes: 1_400_000, first_ns: FIRST_NS, last_ns: LAST_NS, ..Sent::default() };
    if matches!(pacing, Pacing::Schedule(_)) {
        sender.sent.max_late_ns = Some(120_000);
    }
    if probe.echoes() {
        receiver.sent.measured = 995;
    }
    if probe == Probe::Connect {
        sender.io = None;
        receiver.io = None;
        receiver.cpu = None;
    }
    let (left, arrived) = match (probe, transport) {
        (Probe::Stream, Transport::Udp) => (Point::Call, Point::Kernel),
        (Probe::EchoOpenLoop, _) => (Point::Schedule, Point::Call),
        _ => (Point::Call, Point::Call),
    };
    let counting = if probe.echoes() || probe == Probe::Connect { &mut sender } else { &mut receiver };
    counting.delays = Some(Delays {
        buckets: Buckets(vec![(200_000, 600), (300_000, 385), (1_250_000, 5)]),
        mean_ns: 244_000.0,
        jitter_ns: Some(10_000.0),
        jitter_rfc3550_ns: Some(9_000.0),
    });
    counting.delay_points = Some(DelayPoints::between(left, arrived));
    if probe != Probe::Connect {
        counting.series = series();
        counting.received = Received {
            measured: 990,
            bytes_at_first: 100,
            bytes: 1_386_000,
            first_ns: FIRST_NS,
            last_ns: LAST_NS,
            ..Received::default()
        };
    }
    vec![sender, receiver]
}

fn values(probe: Probe) -> BTreeMap<Metric, Value> {
    let figures: &[(Metric, f64)] = match probe {
        Probe::Stream => &[
            (Metric::Throughput, 5.538),
            (Metric::MessageRate, 494.5),
            (Metric::Loss, 0.01),
            (Metric::OneWayDelay, 0.2),
            (Metric::OneWayDelayMean, 0.244),
            (Metric::Jitter, 0.01),
            (Metric::JitterRfc3550, 0.009),
            (Metric::Retransmits, 0.003),
            (Metric::TcpSrtt, 0.41),
        ],
        Probe::Connect => &[(Metric::ConnectTime, 0.2), (Metric::ConnectRate, 500.0)],
        _ => &[(Metric::Rtt, 0.2), (Metric::RttMean, 0.244), (Metric::RttP99, 0.3)],
    };
    let mut values: BTreeMap<Metric, Value> =
        figures.iter().map(|(metric, figure)| (*metric, Value::Measured(*figure))).collect();
    if probe == Probe::Echo {
        let reason = "this percentile needs 1000 messages, 990 arrived".to_owned();
        values.insert(Metric::RttP999, Value::Missing(reason));
    }
    values
}

/// Two seconds between two machines.
fn run(probe: Probe, transport: Transport, pacing: Pacing) -> RunRecord {
    let values = values(probe);
    let cell = Cell::new(Family::Ipv6, transport, SizeOf::Write, 1400);
    let probe_spec = ProbeSpec {
        probe,
        pacing,
        length: if probe == Probe::Connect { Length::Packets(1000) } else { Length::Time(2_000_000_000) },
        warmup_ns: 500_000_000,
        interval_ns: 1_000_000_000,
        metrics: values.keys().copied().collect(),
    };
    let mut spec = TrialSpec::new(7, &cell, probe_spec);
    spec.cpu_scope = CpuScope::Host;
    RunRecord {
        trial: Trial { block: 0, position: 0, cell, probe },
        spec,
        started_unix_ns: 1_700_000_000_123_456_789,
        wall_ns: 2_600_000_000,
        status: RunStatus::Valid,
        values: values.into(),
        drops: Drops { socket_buffer: 8, network: 2, ..Drops::default() },
        host_reports: host_reports(probe, transport, pacing),
        warnings: Vec::new(),
    }
}

fn text(run: &RunRecord) -> String {
    measurement(run, &MeasurementText { version: "0.1.0", direction: Direction::Forward, rows: true })
}

#[test]
fn rows_at_a_low_rate_end_with_the_schedule() {
    let mut run = run(Probe::Stream, Transport::Tcp, Pacing::Schedule(1.0));
    let receiver = &mut run.host_reports[1];
    let first = IntervalRow { start_ns: 0, messages: 1, bytes: 131_072, delay_mean_ns: None };
    receiver.series = vec![first.clone(), IntervalRow { start_ns: 1_000_000_000, ..first }];
    receiver.received.last_ns = receiver.received.first_ns + 1_050_000_000;
    let text = text(&run);
    assert!(text.contains("0.00 -   1.00s    131.1 kB    1.05 Mbit/s"), "{text}");
    assert!(text.contains("1.00 -   2.00s    131.1 kB    1.05 Mbit/s"), "{text}");
}

#[test]
fn a_paced_datagram_stream() {
    let mut run = run(Probe::Stream, Transport::Udp, Pacing::Schedule(500.0));
    run.host_reports[1].flow_bytes = vec![686_000, 700_000];
    run.warnings.push(Warning {
        code: "late".to_owned(),
        text: "messages left late".to_owned(),
        advice: "send fewer".to_owned(),
    });
    assert_snapshot!("measured_udp", text(&run));
}

#[test]
fn a_tcp_stream_the_other_way_between_unlike_clocks() {
    let mut run = run(Probe::Stream, Transport::Tcp, Pacing::Flood);
    for metric in [Metric::OneWayDelay, Metric::OneWayDelayMean, Metric::Jitter, Metric::JitterRfc3550] {
        run.values.insert(metric, Value::Missing("the two hosts' clocks are not compared".to_owned()));
    }
    run.host_reports[1].series.iter_mut().for_each(|row| row.delay_mean_ns = None);
    let about = MeasurementText { version: "0.1.0", direction: Direction::Reverse, rows: true };
    assert_snapshot!("measured_tcp_reverse", measurement(&run, &about));
}

#[test]
fn high_tcp_rows_are_explained_after_losses_only() {
    assert!(explains_rows(0.003, [600_000, 0, 700_000]));
    assert!(!explains_rows(0.0, [600_000, 0, 700_000]), "nothing was lost");
    assert!(!explains_rows(0.003, [660_000, 320_000, 330_000]), "the rows are alike");
}

fn explains_rows(retransmits: f64, rows: [u64; 3]) -> bool {
    let mut run = run(Probe::Stream, Transport::Tcp, Pacing::Flood);
    run.values.insert(Metric::Retransmits, Value::Measured(retransmits));
    for (row, bytes) in run.host_reports[1].series.iter_mut().zip(rows) {
        row.bytes = bytes;
    }
    text(&run).contains("a row can exceed the link's rate")
}

#[test]
fn delays_between_clocks_stand_with_their_error() {
    let behind = render_with_clocks(-2_500_000, 0);
    for words in [", clock error at most 5.400 us\n", "; the receiver's is 2.500 ms behind\n"] {
        assert!(behind.contains(words), "{behind}");
    }
    let faster = render_with_clocks(2_500_000, 20_100);
    let words = "; the receiver's is 2.500 ms ahead, and gained 20.10 us per second (corrected)\n";
    assert!(faster.contains(words), "{faster}");
}

fn render_with_clocks(offset_ns: i64, skew_ns_per_s: i64) -> String {
    let mut run = run(Probe::Stream, Transport::Udp, Pacing::Schedule(500.0));
    let compared = Compared { offset_ns, bound_ns: 5_400, skew_ns_per_s };
    run.host_reports[1].delay_points.as_mut().unwrap().compared = Some(compared);
    text(&run)
}

#[test]
fn an_echo() {
    assert_snapshot!("measured_echo", text(&run(Probe::Echo, Transport::Udp, Pacing::Lockstep)));
}

#[test]
fn connections() {
    assert_snapshot!("measured_connect", text(&run(Probe::Connect, Transport::Tcp, Pacing::Flood)));
}

#[test]
fn a_run_that_does_not_count_says_so_last() {
    let mut run = run(Probe::Stream, Transport::Udp, Pacing::Flood);
    run.status = RunStatus::Invalid(vec!["the sender's path has MTU 1280, planned is 1500".to_owned()]);
    let full = text(&run);
    assert!(
        full.ends_with("no figure counts\n- the sender's path has MTU 1280, planned is 1500\n"),
        "{full}"
    );
    run.host_reports.clear();
    let bare = text(&run);
    assert!(bare.contains("INVALID") && !bare.contains("throughput"), "{bare}");
}

#[test]
fn rows_can_be_left_out() {
    let run = run(Probe::Stream, Transport::Udp, Pacing::Flood);
    let about = MeasurementText { version: "0.1.0", direction: Direction::Forward, rows: false };
    assert!(!measurement(&run, &about).contains("interval"));
}

#[test]
fn json_holds_the_whole_run_and_its_format() {
    let run = run(Probe::Stream, Transport::Udp, Pacing::Flood);
    let facts = HostFacts {
        agent_version: "0.1.0".to_owned(),
        os: "Linux".to_owned(),
        kernel: "6.12.0".to_owned(),
        machine: "x86_64".to_owned(),
        cpu_model: "Example 9000".to_owned(),
        cores: 2,
        memory_kib: 4096,
        governor: None,
        clock_source: None,
        boot_id: Some("b".to_owned()),
        time_namespace: None,
        virtualised: false,
        abilities: BTreeMap::new(),
        noise: None,
        cpu_quota: None,
        kept_settings: Vec::new(),
        machine_name: None,
    };
    let json = measurement_json(&run, &[&facts, &facts]);
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(document["format"], 1);
    assert_eq!(document["hosts"][1]["boot_id"], "b");
    // Nothing of the run is lost: it is read back from the very same object.
    assert_eq!(serde_json::from_str::<RunRecord>(&json).unwrap(), run);
}
