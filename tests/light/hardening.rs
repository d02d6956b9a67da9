//! What an outsider could do to an agent that listens, or a hostile agent to a coordinator.

use crate::support;

use serde_json::{Value, json};
use stacklab_model::{
    ArmSchedule, Cell, Family, Length, Metric, Pacing, Probe, ProbeSpec, SizeOf, Transport, TrialSpec,
};
use stacklab_traffic::protocol::{AgentClient, AgentError, Answer, Request, SendArm};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};
use support::listening::Listening;
use support::program::{Program, children, code};

static NEVER: AtomicBool = AtomicBool::new(false);
const LIMIT: Duration = Duration::from_secs(20);
const HERE: &str = "127.0.0.1";

fn coordinator(there: &Listening) -> AgentClient {
    let stream = there.greeted(HERE);
    let mut agent = AgentClient::new("the agent", stream.try_clone().unwrap(), stream, &NEVER);
    agent.hello().unwrap();
    agent
}

fn spec(transport: Transport, probe: Probe) -> TrialSpec {
    let probe = ProbeSpec {
        probe,
        pacing: if probe == Probe::Stream { Pacing::Flood } else { Pacing::Lockstep },
        length: Length::Packets(1000),
        warmup_ns: 0,
        interval_ns: 10_000_000,
        metrics: vec![Metric::Throughput],
    };
    TrialSpec::new(5, &Cell::new(Family::Ipv4, transport, SizeOf::Payload, 200), probe)
}

fn send(agent: &mut AgentClient, spec: TrialSpec, to: SocketAddr) -> Result<(), String> {
    let request =
        Request::Send(SendArm { spec: Box::new(spec), from: HERE.parse().unwrap(), to, waiting: None });
    match agent.ask(request, "send", LIMIT) {
        Ok(_) => Ok(()),
        Err(AgentError::Failed { reason, .. }) => Err(reason),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn an_agent_sends_to_no_third_host() {
    let there = Listening::start("", &[]);
    let mut agent = coordinator(&there);
    let third: IpAddr = "127.0.0.2".parse().unwrap();
    let victim = UdpSocket::bind((third, 0)).unwrap();
    let open = TcpListener::bind((third, 0)).unwrap();
    victim.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    for (transport, probe, to) in [
        (Transport::Udp, Probe::Stream, victim.local_addr().unwrap()),
        (Transport::Udp, Probe::Echo, victim.local_addr().unwrap()),
        (Transport::Tcp, Probe::Stream, open.local_addr().unwrap()),
        (Transport::Tcp, Probe::Connect, open.local_addr().unwrap()),
    ] {
        let reason = send(&mut agent, spec(transport, probe), to).unwrap_err();
        assert!(reason.contains("only to the coordinator's address (127.0.0.1)"), "{reason}");
    }
    assert!(victim.recv(&mut [0; 2000]).is_err(), "the victim got a datagram");
    open.set_nonblocking(true).unwrap();
    assert!(open.accept().is_err(), "the victim got a connection");
    // Nor does it receive for others than its coordinator.
    let stream = Box::new(spec(Transport::Udp, Probe::Stream));
    let listen = Request::Listen { spec: stream, address: third.to_string().parse().unwrap() };
    let refused = agent.ask(listen, "listen", LIMIT).unwrap_err().to_string();
    assert!(refused.contains("only on 127.0.0.1"), "{refused}");
    drop(agent);
    // Where the operator allows it, it does.
    let there = Listening::start("", &["--allow-target", "127.0.0.2/32"]);
    send(&mut coordinator(&there), spec(Transport::Udp, Probe::Stream), victim.local_addr().unwrap())
        .unwrap();
    assert!(victim.recv(&mut [0; 2000]).is_ok());
}

#[test]
fn an_agent_answers_no_third_host() {
    let there = Listening::start("", &[]);
    let mut agent = coordinator(&there);
    let echo = spec(Transport::Udp, Probe::Echo);
    let listen = Request::Listen { spec: Box::new(echo.clone()), address: HERE.parse().unwrap() };
    let Ok((_, Answer::Listening { address })) = agent.ask(listen, "listen", LIMIT) else {
        panic!("it does not listen")
    };
    // Whoever forges a victim's address would have it answered.
    let victim = UdpSocket::bind("127.0.0.2:0").unwrap();
    victim.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let mut message = vec![0; echo.message_bytes as usize];
    message[..4].copy_from_slice(&echo.token.to_be_bytes());
    for _ in 0..10 {
        victim.send_to(&message, address).unwrap();
    }
    assert!(victim.recv(&mut [0; 2000]).is_err(), "the victim was answered");
    let own = UdpSocket::bind("127.0.0.1:0").unwrap();
    own.set_read_timeout(Some(LIMIT)).unwrap();
    own.send_to(&message, address).unwrap();
    assert_eq!(own.recv(&mut [0; 2000]).unwrap(), message.len());
}

#[test]
fn streams_of_a_coordinator_share_the_allowed_rate() {
    let there = Listening::start("", &["--max-rate", "1"]);
    let mut agent = coordinator(&there);
    let socket = UdpSocket::bind((HERE, 0)).unwrap();
    let sink = socket.local_addr().unwrap();
    // 0.64 Mbit/s.
    let mut paced = spec(Transport::Udp, Probe::Stream);
    (paced.probe.pacing, paced.probe.length) = (Pacing::Schedule(400.0), Length::Time(2_000_000_000));
    let from = HERE.parse().unwrap();
    let request = Request::Send(SendArm { spec: Box::new(paced.clone()), from, to: sink, waiting: None });
    let first = agent.start(request, "send").unwrap();
    let reason = send(&mut agent, paced.clone(), sink).unwrap_err();
    assert!(reason.contains("1 Mbit/s in all streams together, of which 0.64 are taken"), "{reason}");
    agent.finish(first, LIMIT).unwrap();
    send(&mut agent, paced, sink).unwrap();
}

#[test]
fn whoever_does_not_know_the_key_gets_nothing() {
    let there = Listening::start("", &[]);
    let pid = there.agent.pid();
    let measure = ["measure", "udp", HERE, "-t", "0.1", "-p", &there.port];
    for (key, said) in
        [(Some("another-key-of-somebody-else"), "the key is not this agent's"), (None, "STACKLAB_KEY")]
    {
        let mut command = there.program.command(&measure);
        match key {
            Some(key) => command.env("STACKLAB_KEY", key),
            None => command.env_remove("STACKLAB_KEY"),
        };
        support::program::Outcome::of(command).expect(code::HOST).says(&[said]);
        assert_eq!(children(pid), Vec::<u32>::new());
    }
    let file = there.program.write("key.txt", format!("{}\n", support::program::KEY));
    let with_file = [&measure[..], &["--key-file", file.to_str().unwrap()]].concat();
    let mut command = there.program.command(&with_file);
    command.env_remove("STACKLAB_KEY");
    let done = support::program::Outcome::of(command).expect(code::DONE);
    // It stands in no output, nor in a record.
    let compared =
        ["measure", "udp", "127.0.0.1,::1", "--against", "ipv4", "-t", "1.5", "--out", "kept.stacklab"];
    let compared = there.program.run(&[&compared[..], &["-p", &there.port]].concat()).expect(code::DONE);
    let record = fs::read(there.program.work().join("kept.stacklab")).unwrap();
    let said = [done.stdout, done.stderr, compared.stdout, compared.stderr, there.agent.stderr()].concat();
    let kept = [record, said.into_bytes()].concat();
    assert!(!kept.windows(support::program::KEY.len()).any(|part| part == support::program::KEY.as_bytes()));
    there.program.write("short.txt", "1234");
    let short = [&measure[..], &["--key-file", "short.txt"]].concat();
    there.program.run(&short).expect(code::REQUEST).says(&["short.txt", "at least 22"]);
    // The key stands in no argument of a process.
    let mut first = there.program.start(&["measure", "udp", HERE, "-t", "2", "-p", &there.port]);
    // Before it executes its own program, a process shows its parent's arguments and environment.
    while !children(pid).iter().any(|child| read_arguments(*child).contains("--stdio")) {
        assert!(first.is_running());
        thread::sleep(Duration::from_millis(5));
    }
    let [served] = children(pid)[..] else { panic!("one process serves") };
    for process in [pid, served, first.pid()] {
        assert!(!read_arguments(process).contains(support::program::KEY));
    }
    let environment = fs::read(format!("/proc/{served}/environ")).unwrap();
    assert!(!String::from_utf8_lossy(&environment).contains(support::program::KEY));
    first.end(LIMIT).expect(code::DONE);
}

fn read_arguments(process: u32) -> String {
    fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap()
}

#[test]
fn agent_makes_its_own_key_and_an_open_one_says_so() {
    let program = Program::new();
    let mut own = program.command(&["agent", "--listen", "127.0.0.1:0"]);
    own.env_remove("STACKLAB_KEY");
    let mut agent = program.started(own);
    agent.wait_for("measures to it", LIMIT);
    let said = agent.stderr();
    let key = said.split("key ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap().to_owned();
    assert!(key.len() >= 32, "{said}");
    let port = said.split("-p ").nth(1).unwrap().split('`').next().unwrap().to_owned();
    let mut measure = program.command(&["measure", "udp", HERE, "-n", "10", "-p", &port]);
    measure.env("STACKLAB_KEY", &key);
    support::program::Outcome::of(measure).expect(code::DONE);
    let open = Listening::start("", &["--no-auth"]);
    assert!(open.agent.stderr().contains("open: everyone who reaches this port"));
    let with_key = ["measure", "udp", HERE, "-n", "10", "-p", &open.port];
    open.program.run(&with_key).expect(code::HOST).says(&["the agent is open", "--no-auth"]);
    let mut without = open.program.command(&with_key);
    without.env_remove("STACKLAB_KEY");
    support::program::Outcome::of(without).expect(code::DONE);
}

#[test]
fn hostile_trials_are_refused_and_take_no_memory() {
    let there = Listening::start("", &[]);
    let mut agent = coordinator(&there);
    let [served] = children(there.agent.pid())[..] else { panic!("one process serves") };
    let to: SocketAddr = (HERE.parse::<IpAddr>().unwrap(), 9).into();
    type Change = (&'static str, fn(&mut TrialSpec));
    let changes: [Change; 12] = [
        ("message_bytes", |spec| spec.message_bytes = 50_000_000),
        ("message_bytes", |spec| spec.message_bytes = 0),
        ("message_bytes", |spec| spec.message_bytes = 16),
        ("flows", |spec| spec.flows = 400_000),
        ("flows", |spec| spec.flows = u32::MAX),
        ("poll_ns", |spec| spec.poll_ns = 1 << 63),
        ("pacing", |spec| spec.probe.pacing = Pacing::Schedule(f64::INFINITY)),
        ("length", |spec| spec.probe.length = Length::Time(u64::MAX)),
        ("--max-duration", |spec| spec.probe.length = Length::Time(3_601_000_000_000)),
        ("slice_ns", |spec| spec.schedule = ArmSchedule::TokenPassing(Some(0))),
        ("--allow tuning", |spec| spec.tuning.busy_poll_us = Some(100)),
        ("--allow tuning", |spec| {
            spec.tuning.congestion_control = Some("evil_module".to_owned());
        }),
    ];
    for (part, change) in changes {
        for transport in Transport::ALL.iter().copied() {
            let mut spec = spec(transport, Probe::Stream);
            change(&mut spec);
            let start = Instant::now();
            let sent = send(&mut agent, spec.clone(), to).unwrap_err();
            // Infinity is no JSON, and so not even understood.
            assert!(
                sent.contains(part) || part == "pacing" && sent.contains("does not understand"),
                "{part}: {sent}"
            );
            let request = Request::Listen { spec: Box::new(spec), address: HERE.parse().unwrap() };
            assert!(matches!(agent.ask(request, "listen", LIMIT), Err(AgentError::Failed { .. })), "{part}");
            assert!(start.elapsed() < Duration::from_secs(2), "{part}: {:?}", start.elapsed());
        }
    }
    // Receivers are bounded, too.
    for receiver in 0..=2 * ArmSchedule::MAX_ARMS {
        let spec = Box::new(spec(Transport::Udp, Probe::Stream));
        let listen = Request::Listen { spec, address: HERE.parse().unwrap() };
        let is_refused = agent.ask(listen, "listen", LIMIT).is_err();
        assert_eq!(is_refused, receiver == 2 * ArmSchedule::MAX_ARMS, "receiver {receiver}");
    }
    let status = fs::read_to_string(format!("/proc/{served}/status")).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kib: u64 = peak.trim().trim_end_matches(" kB").trim().parse().unwrap();
    assert!(kib < 64 * 1024, "the agent's process took {kib} KiB");
    // Threads have no limit of their own: it would count all processes of the user.
    let threads = status.lines().find_map(|line| line.strip_prefix("Threads:")).unwrap();
    assert!(threads.trim().parse::<usize>().unwrap() < 4 * ArmSchedule::MAX_ARMS, "{threads} threads");
    let limits = fs::read_to_string(format!("/proc/{served}/limits")).unwrap();
    let data = limits.lines().find_map(|line| line.strip_prefix("Max data size")).unwrap();
    assert_eq!(data.split_whitespace().next(), Some("4294967296"), "{limits}");
    agent.hello().unwrap();
}

#[test]
fn silent_or_idle_connections_do_not_hold_an_agent() {
    let there = Listening::start("", &["--idle-timeout", "3"]);
    // No more than eight of one address are heard; the others are closed as soon as they are accepted.
    let mut silent: Vec<TcpStream> = (0..12).map(|_| connect_from_hostile(&there)).collect();
    // Well before any has been silent for too long.
    let start = Instant::now();
    while silent.iter().filter(|stream| is_open(stream)).count() > 8 {
        assert!(
            start.elapsed() < Duration::from_secs(3),
            "more than eight connections of one address are heard"
        );
        thread::sleep(Duration::from_millis(10));
    }
    silent.extend((12..100).map(|_| connect_from_hostile(&there)));
    // Half a greeting, byte by byte.
    silent.iter().for_each(|mut stream| drop(stream.write_all(b"{")));
    for _ in 0..3 {
        let start = Instant::now();
        there.program.run(&["measure", "udp", HERE, "-n", "10", "-p", &there.port]).expect(code::DONE);
        assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    }
    drop(silent);
    // One that was let in and asks nothing more.
    let mut idle = coordinator(&there);
    let start = Instant::now();
    while !children(there.agent.pid()).is_empty() {
        assert!(start.elapsed() < LIMIT, "an idle coordinator holds the agent");
        thread::sleep(Duration::from_millis(20));
    }
    assert!(idle.hello().is_err());
    there.program.run(&["measure", "udp", HERE, "-n", "10", "-p", &there.port]).expect(code::DONE);
}

/// A connection of another address than the other tests' coordinators have.
fn connect_from_hostile(there: &Listening) -> TcpStream {
    let hostile: SocketAddr = "127.0.0.9:0".parse().unwrap();
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&hostile.into()).unwrap();
    let to: SocketAddr = format!("{HERE}:{}", there.port).parse().unwrap();
    socket.connect(&to.into()).unwrap();
    TcpStream::from(socket)
}

fn is_open(mut stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let mut seen = [0; 1000];
    // The challenge, and then nothing, or the end.
    (0..2).all(|_| match stream.read(&mut seen) {
        Ok(count) => count > 0,
        Err(error) => error.kind() == std::io::ErrorKind::WouldBlock,
    })
}

#[test]
fn the_limits_are_told_in_the_help() {
    let help = Program::new().run(&["agent", "--help"]).expect(code::DONE).stdout;
    let words: String = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for limit in [
        "--max-duration <SECONDS> Maximum length of a trial in seconds [default: 3600]",
        "--idle-timeout <SECONDS> Idle timeout in seconds [default: 60]",
        "--max-rate <MBITS> Maximum rate",
        "--allow-target <NETWORK>",
        "--allow <WHAT>",
        "Listen on TCP for coordinators",
    ] {
        assert!(words.contains(limit), "`{limit}` is not in {help}");
    }
}

#[test]
fn released_program_checks_arithmetic_for_overflow() {
    let manifest = include_str!("../../Cargo.toml");
    let release =
        manifest.split("\n[profile.release]\n").nth(1).and_then(|rest| rest.split("\n[").next()).unwrap();
    assert!(release.lines().any(|line| line == "overflow-checks = true"), "{release}");
}

/// A hostile agent, open to all: what it says once a coordinator has greeted it. Its port.
fn hostile(mut speak: impl FnMut(&mut TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind((HERE, 0)).unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let challenge = json!({"stacklab_agent": 2, "challenge": "00", "open": true});
        stream.write_all(format!("{challenge}\n").as_bytes()).unwrap();
        let mut seen = [0; 1];
        while stream.read(&mut seen).unwrap() == 1 && seen[0] != b'\n' {}
        stream.write_all(b"{\"proof\":null}\n").unwrap();
        speak(&mut stream);
        // What follows is not read.
        thread::sleep(LIMIT);
    });
    port
}

fn measure_with(port: &str) -> support::program::Outcome {
    let program = Program::new();
    let mut command = program.command(&["measure", "udp", HERE, "-n", "10", "-p", port]);
    command.env_remove("STACKLAB_KEY");
    support::program::Outcome::of(command)
}

#[test]
fn a_hostile_agent_takes_no_memory_of_the_coordinator() {
    let long = "x".repeat(1 << 20);
    let port = hostile(move |stream| {
        // It greets as an agent does.
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map(Result::unwrap);
        let hello: Value = serde_json::from_str(&lines.nth(1).unwrap()).unwrap();
        let version = &hello["body"]["hello"]["newest"];
        let greeting = json!({"id": hello["id"], "body": {"hello": {"version": version, "program": "x"}}});
        stream.write_all(format!("{greeting}\n").as_bytes()).unwrap();
        let answer = json!({"id": 7, "body": {"failed": {"reason": long}}});
        let line = format!("{answer}\n");
        for _ in 0..2000 {
            if stream.write_all(line.as_bytes()).is_err() {
                break;
            }
        }
    });
    measure_with(&port).expect(code::HOST).says(&["an answer to request 7, which was not made"]);
    // Of all children of this process, which are that one: each test is a process of its own.
    let peak = support::sys::children_peak_kib();
    assert!(peak < 64 * 1024, "the coordinator took {peak} KiB");
}

#[test]
fn what_an_agent_says_does_not_change_the_terminal() {
    let port = hostile(|stream| {
        let reason = "\u{1b}]0;owned\u{7}\r\nPassword: \u{9b}2J";
        let answer = json!({"id": 1, "body": {"failed": {"reason": reason}}});
        let _ = stream.write_all(format!("{answer}\n").as_bytes());
    });
    let outcome = measure_with(&port).expect(code::HOST);
    assert!(outcome.stderr.contains("Password"), "{outcome}");
    assert!(!outcome.stderr.contains(|c: char| c.is_control() && c != '\n'), "{:?}", outcome.stderr);
    assert_eq!(outcome.stderr.trim_end().lines().count(), 1, "{:?}", outcome.stderr);
}
