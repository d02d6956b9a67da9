//! Agents on threads of the test, their byte streams socket pairs, their traffic on loopback.
#![allow(dead_code, reason = "each test uses its own part")]

use stacklab_model::{
    CpuScope, Family, Framing, Io, Length, Pacing, Probe, ProbeSpec, Transport, Trial, TrialSpec,
};
use stacklab_traffic::agent::serve;
use stacklab_traffic::client::AgentClient;
use stacklab_traffic::conduct::Path;
use std::io::BufReader;
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicBool;
use std::thread;

static NEVER_INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// The coordinator's end of the byte stream of an agent that serves until it is dropped.
pub fn stream() -> UnixStream {
    let (near, far) = UnixStream::pair().unwrap();
    let output = far.try_clone().unwrap();
    thread::spawn(move || serve(BufReader::new(far), output));
    near
}

/// A client of the agent at the other end of a stream, which has said hello.
pub fn client(host: &str, stream: UnixStream) -> AgentClient {
    let output = stream.try_clone().unwrap();
    let mut client = AgentClient::new(host, stream, output, &NEVER_INTERRUPTED);
    client.hello().unwrap();
    client
}

/// Two agents, sender first.
pub fn agents() -> [AgentClient; 2] {
    ["sender", "receiver"].map(|host| client(host, stream()))
}

/// Loopback as a planned path.
pub fn path(family: Family) -> Path {
    let mtu = std::fs::read_to_string("/sys/class/net/lo/mtu").unwrap().trim().parse().unwrap();
    Path { sender: family.loopback(), receiver: family.loopback(), mtu, offloads: true, rate: None }
}

/// A trial of a probe, with messages of 256 bytes whose segments are not proved.
pub fn spec(
    family: Family,
    transport: Transport,
    probe: Probe,
    pacing: Pacing,
    milliseconds: u64,
) -> TrialSpec {
    TrialSpec {
        token: 4242,
        family,
        transport,
        framing: Framing::Message,
        message_bytes: 256,
        cpu_scope: CpuScope::Shared,
        poll_ns: 0,
        io: Io::Plain,
        flows: 1,
        tuning: Default::default(),
        clock_offset_ns: 0,
        probe: ProbeSpec {
            probe,
            pacing,
            length: Length::Time(milliseconds * 1_000_000),
            warmup_ns: 10_000_000,
            interval_ns: 10_000_000,
            metrics: Vec::new(),
        },
    }
}

/// The trial that a spec is of.
pub fn trial(spec: &TrialSpec) -> Trial {
    let cell = stacklab_model::Cell {
        transport: spec.transport,
        framing: spec.framing,
        size: spec.message_bytes,
        family: spec.family,
        replica: String::new(),
        settings: Default::default(),
    };
    Trial { block: 0, position: 0, cell, probe: spec.probe.probe }
}
