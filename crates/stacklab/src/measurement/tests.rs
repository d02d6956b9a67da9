//! From a command line to what the agents are told.

use super::options::{MeasureOptions, PORT, Wish};
use super::plan::{check, plan};
use crate::cli::{Cli, Command};
use crate::clocks::{Known, forget_one_way, settle};
use crate::failure::Failure;
use clap::Parser;
use stacklab_model::{
    Buckets, Compared, CpuScope, DelayPoints, Delays, Direction, Drops, Endpoint, Factor, Family, Framing,
    HostReport, IntervalRow, Io, Length, Metric, Pacing, Point, Probe, Received, Role, RunRecord, RunStatus,
    Transport, TrialSpec, Value,
};
use stacklab_traffic::stats::clock::Offset;
use std::collections::BTreeMap;

fn options(line: &str) -> Result<MeasureOptions, String> {
    let words = ["stacklab", "measure"].into_iter().chain(line.split_whitespace());
    match Cli::try_parse_from(words).map_err(|error| error.to_string())?.command {
        Command::Measure(options) => Ok(options),
        other => panic!("{other:?}"),
    }
}

fn wish(line: &str) -> Wish {
    options(line).unwrap_or_else(|error| panic!("{line}: {error}")).wish()
}

fn spec(line: &str) -> TrialSpec {
    let options = options(line).unwrap();
    let wish = options.wish();
    check(&wish).unwrap();
    plan(&wish, Family::Ipv6, Direction::Forward, false, 7).unwrap().1
}

/// Why a command line that can be read is refused.
fn refused(line: &str) -> String {
    let wish = wish(line);
    match check(&wish).and_then(|()| plan(&wish, Family::Ipv4, Direction::Forward, false, 7).map(drop)) {
        Err(Failure::Usage(reason)) => reason,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn what_nobody_says_is_as_users_of_iperf3_expect() {
    let options = options("tcp host").unwrap();
    assert_eq!((options.common().host.as_str(), options.common().port), ("host", PORT));
    let tcp = spec("tcp host");
    assert_eq!((tcp.message_bytes, tcp.framing, tcp.flows), (128 << 10, Framing::Message, 1));
    assert_eq!(tcp.probe.length, Length::Time(10_000_000_000));
    assert_eq!((tcp.probe.pacing, tcp.probe.warmup_ns), (Pacing::Flood, 0));
    assert_eq!(tcp.probe.interval_ns, 1_000_000_000);
    assert!(tcp.tuning.is_default());
    assert_eq!(spec("udp host").message_bytes, 1400);
    assert_eq!(spec("echo host").message_bytes, 64);
    assert_eq!(spec("tcp host --framing segment").message_bytes, 1400);
    for (line, probe, transport) in [
        ("echo host", Probe::Echo, Transport::Udp),
        ("echo host --tcp", Probe::Echo, Transport::Tcp),
        ("echo host --pps 100", Probe::EchoOpen, Transport::Udp),
        ("connect host", Probe::Connect, Transport::Tcp),
    ] {
        assert_eq!((spec(line).probe.probe, spec(line).transport), (probe, transport), "{line}");
    }
}

#[test]
fn short_options_mean_what_they_mean_to_iperf3() {
    let tcp = spec("tcp host -t 5 -l 1K -P 4 -w 256K -C bbr -M 1200 -N -S ef -i 0.5 -O 2");
    assert_eq!((tcp.message_bytes, tcp.flows, tcp.probe.warmup_ns), (1024, 4, 2_000_000_000));
    assert_eq!((tcp.probe.length, tcp.probe.interval_ns), (Length::Time(5_000_000_000), 500_000_000));
    let tuning = &tcp.tuning;
    assert_eq!((tuning.send_buffer, tuning.receive_buffer), (Some(262_144), Some(262_144)));
    assert_eq!((tuning.mss, tuning.nodelay, tuning.dscp), (Some(1200), Some(true), Some(46)));
    assert_eq!(tuning.congestion_control.as_deref(), Some("bbr"));
    assert_eq!(spec("tcp host --nodelay=false").tuning.nodelay, Some(false));
    assert_eq!(spec("udp host -n 500").probe.length, Length::Packets(500));
    assert_eq!(spec("udp host -k 500").probe.length, Length::Packets(500));
    assert!(options("udp host -R -4 -p 7000").is_ok_and(|options| {
        let common = options.common();
        common.reverse && common.ipv4 && common.port == 7000
    }));
    assert_eq!(spec("echo host --poll 50").poll_ns, 50_000);
    let at_interface = |line| spec(line).probe.metrics.contains(&Metric::RttInterface);
    assert!(at_interface("echo host --at-interface") && !at_interface("echo host"));
}

#[test]
fn a_rate_is_of_payload() {
    // 10 Mbit/s in messages of 1250 bytes are 1000 a second.
    assert_eq!(spec("udp host -b 10M -l 1250").probe.pacing, Pacing::Schedule(1000.0));
    assert_eq!(spec("udp host --pps 25").probe.pacing, Pacing::Schedule(25.0));
    assert_eq!(spec("udp host -b 0").probe.pacing, Pacing::Flood);
}

#[test]
fn io_is_the_fastest_unless_it_is_named() {
    for (line, io) in [
        ("udp host", Io::Segment),
        ("udp host -b 1M", Io::Plain),
        ("udp host --io batch", Io::Batch),
        ("tcp host", Io::Batch),
        ("tcp host --io zerocopy", Io::Zerocopy),
        ("echo host", Io::Plain),
    ] {
        assert_eq!(spec(line).io, io, "{line}");
    }
}

#[test]
fn the_cell_tells_what_is_not_as_usual() {
    let line = "tcp host -R -P 2 -C cubic";
    let (trial, _) = plan(&wish(line), Family::Ipv4, Direction::Reverse, false, 7).unwrap();
    let level = |factor| trial.cell.level(factor);
    assert_eq!((level(Factor::Direction), level(Factor::Flows)), ("reverse".to_owned(), "2".to_owned()));
    assert_eq!((level(Factor::CongestionControl), level(Factor::Dscp)), ("cubic".to_owned(), String::new()));
}

#[test]
fn hosts_on_one_machine_share_its_processors() {
    let scope =
        |shared| plan(&wish("udp host"), Family::Ipv6, Direction::Forward, shared, 7).unwrap().1.cpu_scope;
    assert_eq!((scope(true), scope(false)), (CpuScope::Shared, CpuScope::Host));
}

#[test]
fn what_does_not_go_together_is_refused_with_the_way_out() {
    for (line, word) in [
        ("udp host -l 16", "-l 32 is the least"),
        ("udp host -l 65508", "-l 65507 is the most"),
        ("tcp host -l 1G", "-l 16M is the most"),
        ("tcp host --io segment", "choose batch"),
        ("udp host --io zerocopy", "choose segment"),
        ("echo host -N", "--tcp"),
    ] {
        assert!(refused(line).contains(word), "{line}: {}", refused(line));
    }
}

#[test]
fn what_cannot_be_read_is_refused_by_name() {
    for (line, word) in [
        ("", "tcp"),
        ("sctp host", "sctp"),
        ("tcp", "<HOST>"),
        ("tcp host -t 0", "--time"),
        ("tcp host -n 0", "--packets"),
        ("tcp host -t 1 -n 1", "--packets"),
        ("tcp host -4 -6", "--ipv6"),
        ("tcp host -P 10001", "--flows"),
        ("udp host -b 1M --pps 5", "--pps"),
        ("udp host -C bbr", "-C"),
        ("connect host -P 2", "-P"),
        ("echo host --tcp --udp", "--udp"),
        ("tcp host --from here", "--from"),
        ("tcp host --framing frame", "--framing"),
        ("tcp host -S 64", "--dscp"),
        ("tcp host -p 70000", "--port"),
    ] {
        let error = options(line).unwrap_err();
        assert!(error.contains(word), "{line}: {error}");
    }
}

#[test]
fn clocks_that_were_not_compared_tell_no_delay() {
    let mut run = stream_of(Vec::new());
    forget_one_way(&mut run, "nobody answered");
    for metric in
        [Metric::OneWayDelay, Metric::OneWayDelayMean, Metric::Jitter, Metric::JitterRfc3550, Metric::Pdv]
    {
        assert_eq!(run.values[&metric], Value::Missing("clock: nobody answered".to_owned()));
    }
    assert_eq!(run.values[&Metric::Throughput], Value::Measured(1.0));
}

/// A stream of datagrams with these sides, each figure of which is 1.
pub(crate) fn stream_of(host_reports: Vec<HostReport>) -> RunRecord {
    let (trial, spec) = plan(&wish("udp host"), Family::Ipv6, Direction::Forward, false, 7).unwrap();
    let values: BTreeMap<Metric, Value> =
        spec.probe.metrics.iter().map(|metric| (*metric, Value::Measured(1.0))).collect();
    let (status, drops) = (RunStatus::Valid, Drops::default());
    let warnings = Vec::new();
    RunRecord { trial, spec, started_unix_ns: 0, wall_ns: 0, status, values, drops, host_reports, warnings }
}

/// What a receiver saw in ten seconds from its time 21 s on: delays of 1 ms, as they look to a clock that gains.
pub(crate) fn received(offset_ns: i64, gained_ns_per_s: f64) -> HostReport {
    let address = "[2001:2::1]:5000".parse().unwrap();
    let looks = |second: u64| (1_000_000.0 + gained_ns_per_s * (second as f64 + 1.5)) as u64;
    let row = |second: u64| IntervalRow {
        start_ns: second * 1_000_000_000,
        messages: 100,
        bytes: 100,
        delay_mean_ns: Some(looks(second) as f64),
    };
    let compared = Some(Compared { offset_ns, bound_ns: 0, skew_ns_per_s: 0 });
    let of = |second: u64| (second * 1_000_000_000 + 500_000_000, looks(second));
    let endpoint = Endpoint {
        family: Family::Ipv6,
        transport: Transport::Udp,
        local: address,
        peer: address,
        interface: "st0".to_owned(),
        interface_mtu: 1500,
        path_mtu: None,
        offloads: Default::default(),
        congestion_control: None,
        options: Default::default(),
    };
    HostReport {
        received: Received {
            measured: 1000,
            first_ns: 21_000_000_000,
            last_ns: 31_000_000_000,
            least_delays: (0..10).map(of).collect(),
            ..Received::default()
        },
        delays: Some(Delays {
            buckets: Buckets((0..10).map(|second| (looks(second), 100)).collect()),
            mean_ns: (0..10).map(looks).sum::<u64>() as f64 / 10.0,
            jitter_ns: None,
            jitter_rfc3550_ns: None,
        }),
        delay_points: Some(DelayPoints { compared, ..DelayPoints::between(Point::Call, Point::Kernel) }),
        series: (0..10).map(row).collect(),
        ..HostReport::new(Role::Receiver, endpoint)
    }
}

/// The run when its clocks were compared a second before and after it.
fn settled(side: HostReport, gained_ns: i64, bound_ns: u64) -> RunRecord {
    let offset_ns = 5_000_000_000;
    let before = Offset { offset_ns, bound_ns, at_ns: 20_000_000_000 };
    let after = Offset { offset_ns: offset_ns + gained_ns, bound_ns, at_ns: 32_000_000_000 };
    let mut run = stream_of(vec![received(0, 0.0), side]);
    settle(&mut run, before, after);
    run
}

#[test]
fn a_drift_is_taken_out_of_delays_and_its_bound_stated() {
    let run = settled(received(5_000_000_000, 20_000.0), 240_000, 10_000);
    let figure = |metric: Metric| run.values[&metric].measured().unwrap();
    assert!((figure(Metric::OneWayDelayMean) - 1.0).abs() < 1e-5);
    // Of ten seconds the fifth is the one below the middle.
    assert!((figure(Metric::OneWayDelay) - 0.99).abs() < 1e-5);
    let side = &run.host_reports[1];
    let compared = side.delay_points.unwrap().compared.unwrap();
    assert_eq!((compared.offset_ns, compared.skew_ns_per_s), (5_000_000_000, 20_000));
    // The bound, and half of what the clock gained in the window.
    assert!((110_000..=111_000).contains(&compared.bound_ns), "{compared:?}");
    for row in &side.series {
        assert!((row.delay_mean_ns.unwrap() - 1e6).abs() < 2.0, "{row:?}");
    }
    assert!(side.received.least_delays.is_empty());
}

#[test]
fn what_is_smaller_than_the_clocks_bound_is_missing() {
    let missing = |run: &RunRecord, metric| match &run.values[&metric] {
        Value::Missing(reason) => reason.clone(),
        other => panic!("{metric}: {other:?}"),
    };
    let run = settled(received(5_000_000_000, 0.0), 0, 1_100_000);
    for metric in [Metric::OneWayDelay, Metric::OneWayDelayMean, Metric::Pdv] {
        assert!(missing(&run, metric).starts_with("clock: "), "{metric}");
    }
    // Two messages in a row differ by far less than the clocks could part between them.
    assert_eq!(run.values[&Metric::Jitter], Value::Measured(1.0));
    assert!(run.host_reports[1].series.iter().all(|row| row.delay_mean_ns.is_none()));
    let run = settled(received(5_000_000_000, 0.0), 0, 900_000);
    assert_eq!(run.values[&Metric::OneWayDelay], Value::Measured(1.0));
    assert_eq!(run.host_reports[1].delay_points.unwrap().compared.unwrap().bound_ns, 900_000);
    // Delays that a clock that loses has cut off at 0, and an agent that took no offset.
    let cut = settled(received(5_000_000_000, -200_000.0), -2_400_000, 10_000);
    assert!(missing(&cut, Metric::OneWayDelay).contains("delays are shorter"));
    let older = settled(received(0, 0.0), 0, 10_000);
    assert!(missing(&older, Metric::Jitter).contains("older"));
}

#[test]
fn clocks_are_one_where_one_machine_shows_no_difference() {
    let offset = |offset_ns| Offset { offset_ns, bound_ns: 40, at_ns: 9 };
    assert_eq!(Known::of(true, Ok(offset(-40))), Known::One);
    assert_eq!(Known::of(true, Ok(offset(41))), Known::Apart(offset(41)));
    assert_eq!(Known::of(false, Ok(offset(-40))).offset_ns(), -40);
    // 0 would mean that they are one.
    assert_eq!(Known::of(false, Ok(offset(0))).offset_ns(), 1);
    assert_eq!(Known::of(true, Err("no".to_owned())), Known::One);
    assert_eq!(Known::of(false, Err("no".to_owned())), Known::Nothing("no".to_owned()));
}
