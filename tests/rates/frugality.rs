//! The engine's use of the kernel: only I/O and clock calls, for any number of messages; and memory within the
//! promised limit, for any number of flows.

use crate::support;

use stacklab_model::{
    Cell, Direction, Family, Io, Length, Pacing, Probe, ProbeSpec, SizeOf, Transport, Trial, TrialSpec,
};
use stacklab_traffic::protocol::AgentClient;
use stacklab_trial::{Path, run_trial};
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::process::{Child, Stdio};
use std::sync::atomic::AtomicBool;
use support::program::{Program, require_root, require_tool};

static NEVER_INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// System calls that move messages, wait for a socket, or wait for the clock.
const IO_AND_CLOCK: [&str; 16] = [
    "read",
    "write",
    "sendto",
    "sendmsg",
    "sendmmsg",
    "recvfrom",
    "recvmsg",
    "recvmmsg",
    "poll",
    "ppoll",
    "epoll_wait",
    "epoll_pwait",
    "clock_gettime",
    "clock_nanosleep",
    "nanosleep",
    "sched_yield",
];
/// Parallel connections, and the maximum memory of an agent with them, KiB.
const FLOWS: u32 = 10_000;
const MAX_KIB: u64 = 512 * 1024;
const SHORT_TRIAL: u64 = 500;
const LONG_TRIAL: u64 = 8_500;
/// How many more times a call may occur in the longer of two runs: its report is larger, and needs more memory.
const MORE: u64 = 60;

/// An agent of the real program.
struct Agent {
    process: Child,
    client: AgentClient,
}

impl Agent {
    fn start(host: &str, mut command: Command) -> Self {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = process.stdin.take().unwrap();
        let output = process.stdout.take().unwrap();
        let mut client = AgentClient::new(host, output, input, &NEVER_INTERRUPTED);
        client.hello().unwrap();
        Agent { process, client }
    }

    /// Ends it, and waits until it has ended.
    fn end(mut self) {
        drop(self.client);
        assert!(self.process.wait().unwrap().success());
    }
}

fn spec(family: Family, transport: Transport, io: Io, probe: Probe, packets: u64) -> TrialSpec {
    let pacing = match probe {
        Probe::Echo => Pacing::Lockstep,
        Probe::EchoOpenLoop => Pacing::Schedule(4_000.0),
        _ => Pacing::Flood,
    };
    let probe = ProbeSpec {
        probe,
        pacing,
        length: Length::Packets(packets),
        warmup_ns: 1_000_000,
        interval_ns: 100_000_000,
        metrics: Vec::new(),
    };
    let mut spec = TrialSpec::new(7, &Cell::new(family, transport, SizeOf::Write, 512), probe);
    spec.io = io;
    spec
}

/// Runs a trial between two agents on loopback.
fn run(agents: &mut [Agent; 2], spec: TrialSpec) -> stacklab_model::RunRecord {
    let address = spec.family.loopback();
    let mtu = fs::read_to_string("/sys/class/net/lo/mtu").unwrap().trim().parse().unwrap();
    let path = Path {
        sender: address.into(),
        receiver: address.into(),
        mtu,
        planned_mtu: true,
        offloads: true,
        rate: None,
        shared: false,
        nat: None,
        opener: None,
        customers: Vec::new(),
    };
    let cell = Cell::new(spec.family, spec.transport, spec.size_of, spec.message_bytes);
    let trial = Trial { block: 0, position: 0, cell, probe: spec.probe.probe };
    let [sender, receiver] = agents;
    let run = run_trial(&mut sender.client, &mut receiver.client, &path, &trial, spec, Direction::Forward);
    run.unwrap_or_else(|error| panic!("{error}"))
}

/// How often sender and receiver together made each call. Traced programs are slow: a flood of datagrams may end
/// before its receiver reads. Such a run is repeated.
fn calls(spec: &TrialSpec) -> BTreeMap<String, u64> {
    (0..5).find_map(|_| counted(spec)).expect("one of five traced runs is valid")
}

fn counted(spec: &TrialSpec) -> Option<BTreeMap<String, u64>> {
    let program = Program::new();
    let files = ["sender", "receiver"].map(|host| program.tmp().join(host));
    let mut agents = files.each_ref().map(|file| {
        let mut command = program.script(&["strace", "-f", "-c", "-o"], file.to_str().unwrap());
        command.arg(program.path()).args(["agent", "--stdio"]);
        Agent::start("traced", command)
    });
    let done = run(&mut agents, spec.clone());
    agents.into_iter().for_each(Agent::end);
    if !done.is_valid() {
        println!("{}: {:?}", done.trial, done.status);
        return None;
    }
    assert!(done.host_reports[1].received.measured > 0);
    let mut calls = BTreeMap::new();
    for file in files {
        for line in fs::read_to_string(&file).unwrap().lines() {
            // % time, seconds, microseconds per call, calls, errors (if any), name
            let fields: Vec<&str> = line.split_whitespace().collect();
            if let [_, _, _, count, .., name] = fields[..]
                && let Ok(count) = count.parse::<u64>()
                && name != "total"
            {
                *calls.entry(name.to_owned()).or_default() += count;
            }
        }
    }
    Some(calls)
}

#[test]
fn messages_take_no_call_but_io_and_the_clock() {
    require_tool("strace", "strace");
    for family in Family::ALL.iter().copied() {
        for (transport, io, probe) in [
            (Transport::Udp, Io::Send, Probe::Stream),
            (Transport::Udp, Io::Sendmmsg, Probe::Stream),
            (Transport::Udp, Io::Gso, Probe::Stream),
            (Transport::Tcp, Io::Send, Probe::Stream),
            (Transport::Tcp, Io::Sendmmsg, Probe::Stream),
            (Transport::Udp, Io::Send, Probe::Echo),
            (Transport::Tcp, Io::Send, Probe::Echo),
            (Transport::Udp, Io::Send, Probe::EchoOpenLoop),
        ] {
            let [few, many] =
                [SHORT_TRIAL, LONG_TRIAL].map(|packets| calls(&spec(family, transport, io, probe, packets)));
            let few_io = count_io(&few);
            let many_io = count_io(&many);
            println!("{probe} {transport} {family} {io}: {few_io} calls of I/O and clock, then {many_io}");
            // The longer run must show more calls: one call moves at most 64 messages.
            assert!(many_io > few_io + (LONG_TRIAL - SHORT_TRIAL) / 128, "{few:?}\n{many:?}");
            for (name, count) in &many {
                let before = few.get(name).copied().unwrap_or(0);
                assert!(
                    IO_AND_CLOCK.contains(&name.as_str()) || *count <= before + MORE,
                    "{probe} {transport} {family} {io}: {name} {before} times for {SHORT_TRIAL} messages, {count} for {LONG_TRIAL}"
                );
            }
        }
    }
}

/// The calls of I/O and the clock.
fn count_io(calls: &BTreeMap<String, u64>) -> u64 {
    IO_AND_CLOCK.iter().filter_map(|name| calls.get(*name)).sum()
}

#[test]
fn ten_thousand_connections_fit_into_promised_memory() {
    require_root();
    for family in Family::ALL.iter().copied() {
        let program = Program::new();
        // With a resource limit that must be raised first.
        let script = r#"ulimit -S -n 512; exec "$STACKLAB" agent --stdio"#;
        let mut agents =
            ["sender", "receiver"].map(|host| Agent::start(host, program.script(&["sh", "-c"], script)));
        let mut spec = spec(family, Transport::Tcp, Io::Send, Probe::Stream, 20 * u64::from(FLOWS));
        (spec.flows, spec.message_bytes) = (FLOWS, 1408);
        let done = run(&mut agents, spec);
        assert!(done.is_valid(), "{}: {:?}", done.trial, done.status);
        let [sender, receiver] = [&done.host_reports[0], &done.host_reports[1]];
        assert_eq!(receiver.received.measured, sender.sent.measured);
        assert_eq!(receiver.flow_bytes.len(), FLOWS as usize);
        assert!(receiver.flow_bytes.iter().all(|bytes| *bytes > 0), "a flow carried nothing");
        for side in [sender, receiver] {
            let peak = side.peak_rss_kib.expect("an agent knows its peak");
            println!("{family}: the {} of {FLOWS} connections takes {peak} KiB", side.role);
            assert!(peak < MAX_KIB, "{family}: the {} takes {peak} KiB", side.role);
        }
        agents.into_iter().for_each(Agent::end);
    }
}

#[test]
fn host_with_too_low_a_socket_limit_says_what_to_do() {
    require_root();
    require_tool("setpriv", "util-linux");
    let program = Program::new();
    let script = r#"ulimit -n 300; exec "$STACKLAB" agent --stdio"#;
    let nobody = ["setpriv", "--reuid", "65534", "--clear-groups", "sh", "-c"];
    let mut agents = ["sender", "receiver"].map(|host| Agent::start(host, program.script(&nobody, script)));
    let mut spec = spec(Family::Ipv6, Transport::Tcp, Io::Send, Probe::Stream, 100);
    spec.flows = 400;
    let done = run(&mut agents, spec.clone());
    let said = format!("{:?}", done.status);
    assert!(!done.is_valid() && said.contains("ulimit -n") && said.contains("may have 300"), "{said}");
    spec.flows = 100;
    let done = run(&mut agents, spec);
    assert!(done.is_valid(), "{:?}", done.status);
    agents.into_iter().for_each(Agent::end);
}
