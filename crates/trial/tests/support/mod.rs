//! Agents on a byte stream, and trials for them; their traffic is on loopback.
#![allow(dead_code, reason = "each test uses its own part")]

pub(crate) mod checks;

use stacklab_model::{Cell, Family, Length, Pacing, Probe, ProbeSpec, SizeOf, Transport, Trial, TrialSpec};
use stacklab_traffic::agent::{Permission, serve};
use stacklab_traffic::protocol::AgentClient;
use stacklab_trial::Path;
use std::io::{BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicBool;
use std::thread;

static NEVER_INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// The coordinator's end of an agent's byte stream.
pub(crate) struct CoordinatorEnd {
    /// The agent's answers.
    pub answers: Box<dyn Read + Send>,
    /// Requests to the agent.
    pub requests: Box<dyn Write + Send>,
    /// Ends the agent, as if its host were gone.
    pub hang_up: Box<dyn FnOnce()>,
}

/// An agent on a thread of the test.
pub(crate) fn thread_agent() -> CoordinatorEnd {
    let (near, far) = UnixStream::pair().unwrap();
    let output = far.try_clone().unwrap();
    thread::spawn(move || serve(BufReader::new(far), output, Permission::default(), |_| {}));
    let answers = near.try_clone().unwrap();
    let requests = near.try_clone().unwrap();
    CoordinatorEnd {
        answers: Box::new(answers),
        requests: Box::new(requests),
        hang_up: Box::new(move || near.shutdown(Shutdown::Both).unwrap()),
    }
}

/// A client that has said hello to the agent, and a function that ends that agent.
pub(crate) fn client(host: &str, end: CoordinatorEnd) -> (AgentClient, Box<dyn FnOnce()>) {
    let mut client = AgentClient::new(host, end.answers, end.requests, &NEVER_INTERRUPTED);
    client.hello().unwrap();
    (client, end.hang_up)
}

/// Loopback as a planned path.
pub(crate) fn path(family: Family) -> Path {
    let mtu = std::fs::read_to_string("/sys/class/net/lo/mtu").unwrap().trim().parse().unwrap();
    Path {
        sender: family.loopback().into(),
        receiver: family.loopback().into(),
        mtu,
        planned_mtu: true,
        offloads: true,
        rate: None,
        shared: false,
        nat: None,
        opener: None,
        customers: Vec::new(),
    }
}

/// A trial of a probe, with messages of 256 bytes and without segment validation.
pub(crate) fn spec(
    family: Family,
    transport: Transport,
    probe: Probe,
    pacing: Pacing,
    milliseconds: u64,
) -> TrialSpec {
    let probe = ProbeSpec {
        probe,
        pacing,
        length: Length::Time(milliseconds * 1_000_000),
        warmup_ns: 10_000_000,
        interval_ns: 10_000_000,
        metrics: Vec::new(),
    };
    TrialSpec::new(4242, &Cell::new(family, transport, SizeOf::Write, 256), probe)
}

/// The trial of a spec.
pub(crate) fn trial(spec: &TrialSpec) -> Trial {
    let cell = Cell::new(spec.family, spec.transport, spec.size_of, spec.message_bytes);
    Trial { block: 0, position: 0, cell, probe: spec.probe.probe }
}
