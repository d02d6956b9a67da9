//! Testbeds inside a guest: the part on this machine, and where a study's testbeds are built.

use crate::hosted::batches::Batches;
use crate::inside::testbeds::CAPTURE;
use crate::kind::prepare::{prepare_for_any_role, prepare_wifi};
use crate::kind::running::Answers;
use crate::{
    Boot, Greeting, GuestRole, HostedMechanism, HostedRole, MediumQuestion, Requirements, Running, WifiLook,
    WifiRole, WifiSeen,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use stacklab_model::wifi::ChannelUse;
use stacklab_model::{Family, Role, System};
use stacklab_testbed::{
    Attempt, GuestSpec, PathCheck, RoutedSpec, RoutedStreams, Streams, TestbedError, Workdir, addresses,
    not_built, program_in_path, write_message,
};
use stacklab_wifi::{MediumReport, WifiSpec, WifiState};
use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

pub(crate) mod batches;
pub(crate) mod mux;
pub(crate) mod needs;
pub(crate) mod placement;

/// Boots a guest that hosts testbeds, and waits until they are built. It is on no link of this machine. Returns its
/// channel as a stream to read from and one to write to.
fn boot(
    guest: &dyn Boot,
    role: GuestRole,
    offloads: bool,
    program: &Path,
    folder: &Path,
) -> Result<(Running, Greeting, Answers<UnixStream>, UnixStream), TestbedError> {
    let namespace = std::process::id();
    let spec = GuestSpec { name: "lab", namespace, processors: &[], offloads, program, folder };
    let met = guest.boot(&spec, role).and_then(|mut running| {
        let (greeting, read, write) = running.meet_testbeds()?;
        Ok((running, greeting, read, write))
    });
    met.map_err(|fault| describe_guest_failure(&guest.version(), fault))
}

fn describe_guest_failure(guest: &str, reason: impl fmt::Display) -> TestbedError {
    TestbedError(format!("the testbed in {guest} failed: {reason}"))
}

/// Routed testbeds hosted by a guest. Dropping it ends the guest and all its testbeds.
#[derive(Debug)]
pub struct GuestHosted {
    guest: Running,
    /// The guest's name and version: `user-mode Linux 7.2`.
    pub version: String,
    _workdir: Workdir,
}

/// Programs for manual use that are copied into a virtual machine, which cannot access this machine's files.
const TOOLS: [&str; 12] =
    ["sh", "ip", "ping", "tracepath", "tcpdump", "iperf3", "iperf", "ss", "tc", "nstat", "cat", "ls"];

/// A testbed inside a guest.
pub struct HostedTestbed {
    /// Its specification.
    pub spec: RoutedSpec,
    /// What its path checks found.
    pub path_checks: Vec<PathCheck>,
    /// Those of its agents.
    pub streams: RoutedStreams,
}

impl GuestHosted {
    /// Boots a guest, which builds a testbed for each mechanism. Waits until they are built. Up to `commands`
    /// commands can run at once on the hosts of the first testbed, over the last streams ([`crate::shell`]).
    pub fn boot(
        system: &System,
        needs: &Requirements,
        program: &Path,
        commands: usize,
    ) -> Result<(Self, Vec<HostedTestbed>, Vec<Streams>), TestbedError> {
        let workdir = Workdir::create()?;
        let specs = needs.specs(Some(system));
        let mut others = Vec::new();
        for spec in &specs {
            others.extend(spec.programs()?);
        }
        others.sort();
        others.dedup();
        if commands > 0 && !system.is_uml() {
            others.extend(TOOLS.iter().filter_map(|tool| program_in_path(tool)));
        }
        let guest = prepare_for_any_role(system, program, &others, &workdir)?;
        let guest = guest.ok_or_else(|| not_built(system))?;
        let version = guest.version();
        let mechanisms = specs.iter().map(HostedMechanism::of).collect();
        let role =
            HostedRole { link_config: needs.link_config.clone(), links: needs.links, mechanisms, commands };
        let role = GuestRole::Hosted(role);
        let folder = workdir.for_host("lab")?;
        let (running, greeting, read, write) =
            boot(guest.as_ref(), role, needs.link_config.offloads, program, &folder)?;
        let Greeting::Built { carried } = greeting else {
            return Err(describe_guest_failure(&version, "it built no testbeds"));
        };
        let spokes: usize = specs.iter().map(count_spokes).sum();
        let count = specs.len() * 4 + spokes + commands;
        let mut streams = mux::open(read, write, count).into_iter();
        let mut testbeds = Vec::new();
        for (spec, path_checks) in specs.into_iter().zip(carried) {
            let chain = std::array::from_fn(|_| streams.next().expect("there are four of each"));
            let spokes = streams.by_ref().take(count_spokes(&spec)).collect();
            testbeds.push(HostedTestbed { spec, path_checks, streams: RoutedStreams { chain, spokes } });
        }
        Ok((GuestHosted { guest: running, version, _workdir: workdir }, testbeds, streams.collect()))
    }

    /// The guest's process ID.
    pub fn process(&self) -> u32 {
        self.guest.process.id()
    }
}

/// The near routers of further customers.
fn count_spokes(spec: &RoutedSpec) -> usize {
    spec.kind.customers.saturating_sub(1) as usize
}

/// A Wi-Fi network hosted by a guest. Dropping it ends the guest.
#[derive(Debug)]
pub struct WifiHosted {
    guest: Running,
    /// The guest's name and version: `user-mode Linux 6.12.117`.
    pub version: String,
    /// The network's state after it was built.
    pub state: WifiState,
    medium: LineStream,
    look: LineStream,
    /// The capture of what is on air, if there is one: pcapng with radiotap headers. It goes with the network.
    pub capture: Option<PathBuf>,
    _workdir: Workdir,
}

/// The streams of the agents on sender, access point and receiver.
pub type WifiStreams = [Streams; 3];

impl WifiHosted {
    /// Boots a guest, which builds the network. Waits until its stations are associated and packets of both families
    /// have crossed the access point. Up to `commands` commands can run at once on its hosts, over the last streams
    /// ([`crate::shell`]): host 0 is the sender, 1 the access point, 2 the receiver.
    pub fn boot(
        system: &System,
        spec: &WifiSpec,
        program: &Path,
        commands: usize,
    ) -> Result<(Self, WifiStreams, Vec<Streams>), TestbedError> {
        let workdir = Workdir::create()?;
        let guest = prepare_wifi(system, program, &workdir, spec.settings.clock)?;
        let version = guest.version();
        let folder = workdir.for_host("wifi")?;
        let role = WifiRole { spec: spec.clone(), commands };
        let batches = role.takes_batches().then(|| Batches::create(&folder)).transpose();
        let batches = batches
            .attempt("make a pipe for requests")
            .map_err(|fault| describe_guest_failure(&version, fault))?;
        let (running, greeting, read, write) =
            boot(guest.as_ref(), GuestRole::Wifi(role), false, program, &folder)?;
        let Greeting::Associated { state } = greeting else {
            return Err(describe_guest_failure(&version, "it built no Wi-Fi network"));
        };
        let requests: Box<dyn Write + Send> = match batches {
            Some(batches) => Box::new(batches),
            None => Box::new(write),
        };
        let mut streams = mux::open(read, requests, HOSTS + 2 + commands).into_iter();
        let hosts = std::array::from_fn(|_| streams.next().expect("there is one for each host"));
        let mut lines =
            || LineStream::new(streams.next().expect("there is one for the medium and one for looks"));
        let medium = lines();
        let look = lines();
        let capture = spec.captured.then(|| folder.join(CAPTURE));
        let hosted =
            WifiHosted { guest: running, version, state: *state, medium, look, capture, _workdir: workdir };
        Ok((hosted, hosts, streams.collect()))
    }

    /// The network's state, or how it is not as planned. From then on the medium draws from the seed, if one is given.
    pub fn look(&mut self, seed: Option<u64>) -> Result<WifiSeen, TestbedError> {
        self.look.ask(&WifiLook { seed }, "look at its network", &self.version)
    }

    /// The addresses of the stations, the sender's first.
    pub fn addresses(family: Family) -> [IpAddr; 2] {
        [Role::Sender, Role::Receiver].map(|role| addresses(role)[usize::from(family == Family::Ipv6)])
    }

    /// What the medium has counted since the network was built.
    pub fn medium_report(&mut self) -> Result<MediumReport, TestbedError> {
        self.medium.ask(&MediumQuestion::Report, "ask for the medium's report", &self.version)
    }

    /// The use of the channel in each set of windows, nanoseconds of the hosts' clock, after the last look with a seed.
    pub fn channel_use(&mut self, sets: Vec<Vec<[u64; 2]>>) -> Result<Vec<ChannelUse>, TestbedError> {
        self.medium.ask(&MediumQuestion::Used(sets), "ask for the use of the channel", &self.version)
    }

    /// The guest's process ID.
    pub fn process(&self) -> u32 {
        self.guest.process.id()
    }
}

const HOSTS: usize = 3;

/// A stream that answers each line with one.
struct LineStream {
    answers: BufReader<Box<dyn Read + Send>>,
    asks: Box<dyn Write + Send>,
}

impl LineStream {
    fn new((answers, asks): Streams) -> Self {
        LineStream { answers: BufReader::new(answers), asks }
    }

    fn ask<T: DeserializeOwned>(
        &mut self,
        question: &impl Serialize,
        attempted: &str,
        guest: &str,
    ) -> Result<T, TestbedError> {
        let mut line = String::new();
        let asked = write_message(&mut self.asks, question);
        let answered = asked.and_then(|()| self.answers.read_line(&mut line));
        let answer = answered.and_then(|_| Ok(serde_json::from_str(&line)?));
        answer.attempt(attempted).map_err(|fault| describe_guest_failure(guest, fault))
    }
}

impl fmt::Debug for LineStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LineStream")
    }
}
