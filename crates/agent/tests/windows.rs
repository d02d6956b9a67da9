//! The Windows agent, run by Wine, works like the Linux agent, and the two measure with each other.

#[path = "../../trial/tests/support/mod.rs"]
mod support;
mod wine;

use stacklab_agent::auth::{AuthError, handshake};
use stacklab_agent::channel::Channel;
use stacklab_agent::tls::secure;
use stacklab_model::{
    Direction, Family, HostReport, Io, Length, Pacing, Probe, RunRecord, RunStatus, SizeOf, Transport,
    TrialSpec,
};
use stacklab_traffic::protocol::AgentClient;
use stacklab_traffic::protocol::{Answer, Request, SendArm};
use stacklab_trial::measure_offset;
use stacklab_trial::run_trial;
use std::cell::Cell;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use support::{CoordinatorEnd, checks, client, path, spec, thread_agent, trial};

#[test]
fn agent_sends_and_receives_twice_at_once() {
    checks::does_several_things_at_once(wine::on_pipes);
}

#[test]
fn repeated_request_is_done_once() {
    checks::does_once_what_is_asked_twice(wine::on_pipes());
}

#[test]
fn requests_under_way_notice_that_the_agent_is_gone() {
    checks::is_known_as_gone(wine::on_pipes());
}

#[test]
fn facts_are_windows_and_say_that_it_is_wine() {
    let (mut windows, _hang_up) = client("windows", wine::on_pipes());
    let facts = checks::facts(&mut windows);
    let here = checks::facts(&mut client("linux", thread_agent()).0);
    assert_eq!((facts.os.as_str(), facts.machine.as_str()), ("Windows", "x86_64"));
    assert!(facts.kernel.contains("(Wine "), "{}", facts.kernel);
    assert_eq!((facts.cores, facts.virtualised), (here.cores, here.virtualised));
    assert!(facts.memory_kib.abs_diff(here.memory_kib) < here.memory_kib / 10, "{}", facts.memory_kib);
    assert!(!facts.cpu_model.is_empty());
    assert!(facts.clock_source.unwrap().starts_with("QueryPerformanceCounter"));
    // The agent does not know that both are on the same boot, so clocks are compared.
    assert_eq!(facts.boot_id, None);
    let names: Vec<&String> = facts.abilities.keys().collect();
    assert_eq!(names, here.abilities.keys().collect::<Vec<_>>());
    for (name, answer) in &facts.abilities {
        assert!(answer != "yes" && !answer.is_empty(), "{name}: {answer}");
    }
    let noise = windows.noise_floor().unwrap();
    let all = Transport::ALL.len() * Family::ALL.len();
    assert_eq!(noise.echoes.len(), all, "{noise:?}");
    assert!(noise.arrival_stamp.is_none() && noise.clock_step_ns > 0, "{noise:?}");
}

/// Where an agent runs.
#[derive(Debug, Clone, Copy, PartialEq)]
enum On {
    Linux,
    Windows,
}

impl On {
    fn open(self) -> AgentClient {
        let end = match self {
            On::Linux => thread_agent(),
            On::Windows => wine::on_pipes(),
        };
        client(&format!("{self:?}"), end).0
    }
}

const PAIRS: [[On; 2]; 3] = [[On::Linux, On::Windows], [On::Windows, On::Linux], [On::Windows, On::Windows]];

/// Two agents, sender first, and a trial between them in both families.
fn trials(pair: [On; 2], specs: &[TrialSpec], check: impl Fn(&TrialSpec, RunRecord)) {
    let [mut from, mut to] = pair.map(On::open);
    for spec in specs {
        let path = path(spec.family);
        let offset = measure_offset(&mut from, &mut to, &path, spec).unwrap().unwrap();
        assert!(offset.bound_ns < 1_000_000_000, "{offset:?}");
        // For agents, 0 means that the hosts share a clock.
        let clock_offset_ns = if offset.offset_ns == 0 { 1 } else { offset.offset_ns };
        let spec = TrialSpec { clock_offset_ns, ..spec.clone() };
        let run =
            run_trial(&mut from, &mut to, &path, &trial(&spec), spec.clone(), Direction::Forward).unwrap();
        check(&spec, run);
    }
}

/// A trial of a kind in both families.
fn both(transport: Transport, probe: Probe, pacing: Pacing) -> Vec<TrialSpec> {
    Family::ALL.iter().map(|family| spec(*family, transport, probe, pacing, 150)).collect()
}

fn host_reports(run: &RunRecord) -> [&HostReport; 2] {
    assert_eq!(run.status, RunStatus::Valid, "{:?} {:?}", run.trial, run.spec.probe);
    let [sender, receiver] = &run.host_reports[..] else { panic!("{} host reports", run.host_reports.len()) };
    [sender, receiver]
}

/// The counter of datagrams that a receiver had no room for, and how many it counted.
fn count_drops(on: On, spec: &TrialSpec, receiver: &HostReport) -> (&'static str, u64) {
    let name = match (on, spec.family) {
        (On::Linux, _) => "socket.drops",
        // Windows counts them for the whole host, per family.
        (On::Windows, Family::Ipv4) => "udp.InErrors",
        (On::Windows, Family::Ipv6) => "udp6.InErrors",
    };
    (name, receiver.counters.get(name))
}

#[test]
fn streams_arrive_whole_and_every_byte_is_counted() {
    let kinds = [
        (Transport::Tcp, Pacing::Schedule(1_000.0)),
        (Transport::Udp, Pacing::Schedule(1_000.0)),
        (Transport::Tcp, Pacing::Flood),
    ];
    let specs: Vec<TrialSpec> =
        kinds.iter().flat_map(|(transport, pacing)| both(*transport, Probe::Stream, *pacing)).collect();
    for pair in PAIRS {
        trials(pair, &specs, |spec, run| {
            let [sender, receiver] = host_reports(&run);
            let sent = &sender.sent;
            let received = &receiver.received;
            let what = format!("{pair:?} {} {} {:?}", spec.transport, spec.family, spec.probe.pacing);
            assert!(sent.measured > 0, "{what}");
            assert_eq!((sent.measured, sent.warmup), (received.measured, received.warmup), "{what}");
            assert_eq!((sent.bytes, received.bytes), (sent.measured * 256, sent.measured * 256), "{what}");
            assert_eq!((received.duplicates, received.reordered, received.strays), (0, 0, 0), "{what}");
            if spec.probe.pacing != Pacing::Flood {
                assert_eq!(sent.measured, 150, "{what}");
            }
            for side in [sender, receiver] {
                assert!(side.cpu.is_some() && side.peak_rss_kib.is_some(), "{what}");
                assert_eq!(side.endpoint.family, spec.family, "{what}");
            }
            // With the clock offset applied, no message arrives long after it was sent.
            let delays = receiver.delays.as_ref().unwrap();
            assert!(delays.mean_ns < 5e9, "{what}: {}", delays.mean_ns);
        });
    }
}

/// Packets that this machine dropped since boot, as a CPU had too many waiting (`netdev_max_backlog`). A flood over
/// loopback may be lost there, before any socket.
fn backlog_drops() -> u64 {
    let counted = std::fs::read_to_string("/proc/net/softnet_stat").unwrap();
    // A line for each CPU, in hexadecimal; the second column counts drops.
    let drops = counted.lines().map(|cpu| cpu.split_whitespace().nth(1).unwrap());
    drops.map(|drops| u64::from_str_radix(drops, 16).unwrap()).sum()
}

#[test]
fn lost_datagrams_are_counted_where_they_were_lost() {
    let mut specs = both(Transport::Udp, Probe::Stream, Pacing::Flood);
    // Data that fits the receiver's buffer is sent in a few milliseconds; a receiver that waits for a processor
    // measures more.
    specs.iter_mut().for_each(|spec| spec.probe.length = Length::Time(500_000_000));
    let backlog_before = Cell::new(backlog_drops());
    for pair in PAIRS {
        trials(pair, &specs, |spec, run| {
            let [sender, receiver] = host_reports(&run);
            let sent = sender.sent.warmup + sender.sent.measured;
            let arrived = receiver.received.warmup + receiver.received.measured;
            assert!(arrived > 0 && arrived <= sent, "{pair:?}: {arrived} of {sent}");
            assert_eq!(receiver.received.bytes, receiver.received.measured * 256);
            let (name, dropped) = count_drops(pair[1], spec, receiver);
            let all_backlog = backlog_drops();
            let backlog = all_backlog - backlog_before.replace(all_backlog);
            let lost = sent - arrived;
            let what = format!("{name} {dropped}, backlog {backlog}");
            assert!(lost <= dropped + backlog, "{pair:?}: {lost} lost, {what}");
        });
    }
}

#[test]
fn echoes_come_back_and_connections_open() {
    let kinds = [
        (Transport::Tcp, Probe::Echo, Pacing::Lockstep),
        (Transport::Udp, Probe::Echo, Pacing::Lockstep),
        (Transport::Tcp, Probe::EchoOpenLoop, Pacing::Schedule(500.0)),
        (Transport::Udp, Probe::EchoOpenLoop, Pacing::Schedule(500.0)),
        (Transport::Tcp, Probe::Connect, Pacing::Flood),
    ];
    let specs: Vec<TrialSpec> =
        kinds.iter().flat_map(|(transport, probe, pacing)| both(*transport, *probe, *pacing)).collect();
    for pair in PAIRS {
        trials(pair, &specs, |spec, run| {
            let [sender, receiver] = host_reports(&run);
            let what = format!("{pair:?} {} {} {}", spec.probe.probe, spec.transport, spec.family);
            let sent = sender.sent.measured;
            let what = format!(
                "{what}: {:?}, {:?}; {:?}, {:?}",
                sender.sent, sender.received, receiver.sent, receiver.received
            );
            assert!(sent > 10, "{what}");
            assert_eq!(sender.delays.as_ref().map(|delays| delays.buckets.count()), Some(sent), "{what}");
            if spec.probe.probe == Probe::Connect {
                assert!(receiver.received.measured >= sent, "{what}: {sent}");
                return;
            }
            // The two clocks are apart by how long this machine has run, and no round trip is longer than its trial.
            let mean_ns = sender.delays.as_ref().map_or(0.0, |delays| delays.mean_ns);
            assert!(mean_ns < run.wall_ns as f64, "{what}: {mean_ns}");
            let there = (receiver.received.measured, receiver.sent.measured, sender.received.measured);
            assert_eq!(there, (sent, sent, sent), "{what}");
        });
    }
}

#[test]
fn many_flows_polled_and_both_directions_arrive_whole() {
    let mut several = both(Transport::Tcp, Probe::Stream, Pacing::Flood);
    several.extend(both(Transport::Tcp, Probe::Stream, Pacing::Schedule(2_000.0)));
    several.extend(both(Transport::Udp, Probe::Stream, Pacing::Schedule(2_000.0)));
    several.iter_mut().for_each(|spec| (spec.flows, spec.poll_ns, spec.io) = (7, 20_000, Io::Sendmmsg));
    for pair in PAIRS {
        trials(pair, &several, |spec, run| {
            let [sender, receiver] = host_reports(&run);
            let what = format!("{pair:?} {} {}", spec.transport, spec.family);
            // All flows' datagrams wait in one buffer, which a receiver without a processor for 0.1 s overflows.
            let (name, room_lacked) = match spec.transport {
                Transport::Tcp => ("none", 0),
                Transport::Udp => count_drops(pair[1], spec, receiver),
            };
            let lost = sender.sent.measured - receiver.received.measured;
            assert!(lost <= room_lacked, "{what}: {lost} lost, {name} {room_lacked}");
            assert_eq!(receiver.flow_bytes.len(), 7, "{what}");
            assert_eq!(receiver.flow_bytes.iter().sum::<u64>(), receiver.received.bytes, "{what}");
            // Functions that Windows does not support are not reported as used.
            for (on, side) in pair.iter().zip([sender, receiver]) {
                let io = if *on == On::Windows { Io::Send } else { Io::Sendmmsg };
                assert_eq!(side.io, Some(io), "{what}");
            }
        });
    }
    let [mut from, mut to] = [On::Linux, On::Windows].map(On::open);
    for spec in both(Transport::Tcp, Probe::Stream, Pacing::Schedule(1_000.0)) {
        let run =
            run_trial(&mut from, &mut to, &path(spec.family), &trial(&spec), spec.clone(), Direction::Both)
                .unwrap();
        assert_eq!((&run.status, run.host_reports.len()), (&RunStatus::Valid, 4));
        for [sender, receiver] in [[0, 1], [2, 3]].map(|pair| pair.map(|at| &run.host_reports[at])) {
            assert_eq!((sender.sent.measured, receiver.received.measured), (150, 150));
        }
    }
}

#[test]
fn counters_are_the_hosts_own_or_missing() {
    for pair in [[On::Linux, On::Windows], [On::Windows, On::Linux]] {
        trials(pair, &both(Transport::Udp, Probe::Stream, Pacing::Schedule(1_000.0)), |spec, run| {
            let [sender, receiver] = host_reports(&run);
            let udp = match spec.family {
                Family::Ipv4 => "udp",
                Family::Ipv6 => "udp6",
            };
            let arrived = receiver.counters.get(&format!("{udp}.InDatagrams"));
            assert!(arrived >= receiver.received.measured, "{pair:?}: {:?}", receiver.counters);
            assert!(
                sender.counters.get(&format!("{udp}.OutDatagrams")) >= 150,
                "{pair:?}: {:?}",
                sender.counters
            );
            for (on, side) in pair.iter().zip([sender, receiver]) {
                let windows = *on == On::Windows;
                assert_eq!(side.cpu.as_ref().unwrap().undivided, windows, "{on:?}");
                assert_eq!(side.endpoint.options.dscp.is_none(), windows, "{on:?}");
            }
            let missing = run.values.iter().filter(|(_, value)| value.measured().is_none()).count();
            assert!(missing < run.values.len(), "every figure is missing: {:?}", run.values);
        });
    }
}

#[test]
fn segments_that_windows_does_not_count_are_unproved() {
    let mut specs = both(Transport::Tcp, Probe::Stream, Pacing::Schedule(1_000.0));
    specs.iter_mut().for_each(|spec| spec.size_of = SizeOf::Payload);
    for (pair, unproved) in [([On::Windows, On::Linux], true), ([On::Linux, On::Windows], false)] {
        trials(pair, &specs, |spec, run| {
            let [sender, receiver] = host_reports(&run);
            assert_eq!((sender.sent.measured, receiver.received.measured), (150, 150));
            let said = run.warnings.iter().any(|warning| warning.code == "unproved");
            assert_eq!(said, unproved, "{pair:?} {}: {:?}", spec.family, run.warnings);
        });
    }
}

/// Checks that a stream from Windows is refused for this reason, after a change.
fn check_refusal(transport: Transport, reason: &str, change: impl FnOnce(&mut TrialSpec)) {
    let mut spec = spec(Family::Ipv6, transport, Probe::Stream, Pacing::Flood, 20);
    change(&mut spec);
    let [mut from, mut to] = [On::Windows, On::Linux].map(On::open);
    let run =
        run_trial(&mut from, &mut to, &path(spec.family), &trial(&spec), spec.clone(), Direction::Forward);
    let RunStatus::Invalid(reasons) = run.unwrap().status else { panic!("{reason} was done") };
    assert!(reasons.iter().any(|said| said.contains(reason)), "{reasons:?}");
}

#[test]
fn what_windows_cannot_do_is_refused_with_the_reason() {
    let dscp = "the DSCP cannot be 46: Windows ignores";
    check_refusal(Transport::Udp, dscp, |spec| spec.tuning.dscp = Some(46));
    let flow_label = "the flow label cannot be 7";
    check_refusal(Transport::Tcp, flow_label, |spec| spec.tuning.flow_label = Some(7));
    check_refusal(Transport::Tcp, "TCP_MAXSEG cannot be 1000", |spec| spec.tuning.mss = Some(1000));
    check_refusal(Transport::Tcp, "has no zerocopy sends", |spec| spec.io = Io::Zerocopy);
}

fn greet(stream: TcpStream) -> Result<(), AuthError> {
    handshake(&Channel::from(stream), Some(&wine::key()), Vec::new(), Duration::from_secs(10))
}

fn connect(agent: &wine::Listening, host: &str) -> CoordinatorEnd {
    let address: SocketAddr = format!("{host}:{}", agent.port).parse().unwrap();
    let stream = TcpStream::connect(address).unwrap();
    greet(stream.try_clone().unwrap()).unwrap();
    let answers = stream.try_clone().unwrap();
    let requests = stream.try_clone().unwrap();
    CoordinatorEnd {
        answers: Box::new(answers),
        requests: Box::new(requests),
        hang_up: Box::new(move || stream.shutdown(Shutdown::Both).unwrap()),
    }
}

#[test]
fn listening_agent_serves_in_turn_and_ends_when_told() {
    for host in ["127.0.0.1", "[::1]"] {
        let agent = wine::listening(host, &[]);
        if host == "[::1]" {
            // It listens on the address at which it was reached, and on no other.
            checks::does_once_what_is_asked_twice(connect(&agent, host));
        }
        let (mut first, hang_up) = client("first", connect(&agent, host));
        assert_eq!(checks::facts(&mut first).os, "Windows");
        let second = TcpStream::connect(format!("{host}:{}", agent.port)).unwrap();
        let busy = greet(second).unwrap_err().to_string();
        assert!(busy.contains("is busy with another measurement"), "{busy}");
        hang_up();
        let (mut next, _) = client("next", connect(&agent, host));
        assert_eq!(checks::facts(&mut next).os, "Windows");
    }
    let mut agent = wine::listening("127.0.0.1", &["--once"]);
    let (_, hang_up) = client("only", connect(&agent, "127.0.0.1"));
    hang_up();
    let start = Instant::now();
    while agent.child.try_wait().unwrap().is_none() {
        assert!(start.elapsed() < Duration::from_secs(10), "the agent goes on");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_listening_agent_speaks_tls() {
    let agent = wine::listening("[::1]", &["--tls"]);
    let fingerprint = agent.said.split("TLS fingerprint ").nth(1).unwrap()[..64].parse().unwrap();
    let stream = TcpStream::connect(("::1", agent.port)).unwrap();
    let channel = secure(stream, fingerprint, Instant::now() + Duration::from_secs(10)).unwrap();
    handshake(&channel, Some(&wine::key()), Vec::new(), Duration::from_secs(10)).unwrap();
    let stream = channel.stream().try_clone().unwrap();
    checks::does_once_what_is_asked_twice(CoordinatorEnd {
        answers: Box::new(channel.clone()),
        requests: Box::new(channel),
        hang_up: Box::new(move || stream.shutdown(Shutdown::Both).unwrap()),
    });
}

#[test]
fn agent_is_free_after_its_coordinator_goes_mid_trial() {
    let agent = wine::listening("127.0.0.1", &[]);
    let (mut first, hang_up) = client("first", connect(&agent, "127.0.0.1"));
    let spec = spec(Family::Ipv4, Transport::Udp, Probe::Stream, Pacing::Flood, 60_000);
    let mut receiver = On::Linux.open();
    let address = spec.family.loopback();
    let listen = Request::Listen { spec: Box::new(spec.clone()), address: address.into() };
    let listening = receiver.ask(listen, "listen", Duration::from_secs(5));
    let (_, Answer::Listening { address: to }) = listening.unwrap() else { panic!("it does not listen") };
    let send = Request::Send(SendArm { spec: Box::new(spec), from: address.into(), to, waiting: None });
    let _pending = first.start(send, "send").unwrap();
    std::thread::sleep(Duration::from_millis(300));
    hang_up();
    // The trial had a minute left.
    let start = Instant::now();
    let (mut next, _) = client("next", connect(&agent, "127.0.0.1"));
    assert_eq!(checks::facts(&mut next).os, "Windows");
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}
