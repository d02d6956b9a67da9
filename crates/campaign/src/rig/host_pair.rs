//! The two hosts at the ends of a rig: their agents, names, facts and clocks.

use crate::trial::clock::{ClockSync, one_machine};
use stacklab_model::{
    Cell, Counters, Family, HostFacts, LinkConfig, NoiseFloor, Role, ScopedAddr, Services, System, Systems,
    TrialSpec,
};
use stacklab_store::HostRow;
use stacklab_testbed::{INTERFACE, Node, Streams};
use stacklab_traffic::host::now_unix_ns;
use stacklab_traffic::protocol::{AgentClient, AgentError, Answer, Request};
use stacklab_traffic::stats::clock::Offset;
use stacklab_trial::{Path, measure_offset};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub(super) const COUNT_LIMIT: Duration = Duration::from_secs(20);

/// Two hosts with agents that have said hello.
pub(crate) struct HostPair {
    /// The system of each host, sender first.
    pub systems: Systems,
    names: [String; 2],
    /// What each host is, for the record.
    kinds: [String; 2],
    agents: [AgentClient; 2],
    /// Each host's facts, sender first; empty until they are first requested.
    facts: Vec<HostFacts>,
    /// The last clock offset of the hosts in a family, if they have two clocks.
    compared: Option<(Family, Offset)>,
}

impl HostPair {
    /// Sends hello to the agents on these streams, the sender's first.
    pub(crate) fn connect(
        systems: &Systems,
        names: [String; 2],
        kinds: [String; 2],
        [sender, receiver]: [Streams; 2],
        interrupted: &'static AtomicBool,
    ) -> Result<Self, AgentError> {
        let agents = [
            AgentClient::new(&names[0], sender.0, sender.1, interrupted),
            AgentClient::new(&names[1], receiver.0, receiver.1, interrupted),
        ];
        HostPair::handshake(systems.clone(), names, kinds, agents)
    }

    pub(crate) fn handshake(
        systems: Systems,
        names: [String; 2],
        kinds: [String; 2],
        agents: [AgentClient; 2],
    ) -> Result<Self, AgentError> {
        let mut pair = HostPair { systems, names, kinds, agents, facts: Vec::new(), compared: None };
        pair.ensure_alive()?;
        Ok(pair)
    }

    pub(crate) fn ensure_alive(&mut self) -> Result<(), AgentError> {
        self.agents.iter_mut().try_for_each(AgentClient::hello)
    }

    /// The rows of both hosts in the record. Their facts are known from now on.
    pub(crate) fn hosts(&mut self, kernels: &mut Kernels) -> Result<Vec<HostRow>, AgentError> {
        let mut rows = Vec::new();
        for (host, agent) in self.agents.iter_mut().enumerate() {
            rows.push(kernels.host(self.names[host].clone(), self.kinds[host].clone(), agent)?);
        }
        self.facts = rows.iter().map(|row| row.facts.clone()).collect();
        Ok(rows)
    }

    /// Whether both hosts are one machine, by their facts; false until these are requested.
    pub(crate) fn one_machine(&self) -> bool {
        matches!(&self.facts[..], [sender, receiver, ..] if one_machine(sender, receiver))
    }

    /// The clock offset before a trial. The measurement after the previous trial is reused if it was over the same
    /// family.
    pub(crate) fn clock_offset(&mut self, path: &Path, spec: &TrialSpec) -> Result<ClockSync, AgentError> {
        let [sender, receiver] = &self.facts[..] else { return Ok(ClockSync::Same) };
        if let Some(known) = ClockSync::without_comparison(sender, receiver, spec) {
            return Ok(known);
        }
        let one = one_machine(sender, receiver);
        let before = match self.compared {
            Some((family, offset)) if family == spec.family => Ok(offset),
            _ => self.measure_offset(path, spec)?,
        };
        Ok(ClockSync::of(one, before))
    }

    pub(crate) fn measure_offset(
        &mut self,
        path: &Path,
        spec: &TrialSpec,
    ) -> Result<Result<Offset, String>, AgentError> {
        let [sender, receiver] = &mut self.agents;
        let compared = measure_offset(sender, receiver, path, spec)?;
        self.compared = compared.as_ref().ok().map(|offset| (spec.family, *offset));
        Ok(compared)
    }

    /// How late a sleeping program wakes up, nanoseconds: the 99th percentile of the host with the coarser timers, as
    /// far as it was measured.
    pub(crate) fn wake_up_ns(&self) -> u64 {
        let mut latest_ns = 0;
        for noise in self.facts.iter().filter_map(|facts| facts.noise.as_ref()) {
            if let Some(late) = noise.timer_late {
                latest_ns = late.p99_ns.max(latest_ns);
            }
        }
        latest_ns
    }

    pub(crate) fn agents(&mut self) -> [&mut AgentClient; 2] {
        self.agents.each_mut()
    }

    pub(crate) fn counters(&mut self) -> Result<[Counters; 2], AgentError> {
        let [sender, receiver] = &mut self.agents;
        Ok([counters(sender, INTERFACE)?, counters(receiver, INTERFACE)?])
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.agents[0].is_interrupted()
    }
}

pub(super) fn counters(agent: &mut AgentClient, interface: &str) -> Result<Counters, AgentError> {
    let request = Request::Count { interface: interface.to_owned() };
    match agent.ask(request, "tell its counters", COUNT_LIMIT)? {
        (_, Answer::Counted { counters }) => Ok(counters),
        _ => Err(agent.describe_wrong_answer("tell its counters")),
    }
}

/// The path of a cell's trials on the planned link between these addresses, the sender's first.
pub(super) fn planned_path(
    [sender, receiver]: [ScopedAddr; 2],
    link_config: &LinkConfig,
    cell: &Cell,
) -> Path {
    Path {
        planned_mtu: true,
        offloads: link_config.offloads,
        rate: link_config.rate,
        shared: !Services::of(cell).is_empty(),
        ..Path::without_plan(sender, receiver, link_config.mtu_of(cell))
    }
}

/// Names of the two end hosts in the record, sender first.
pub fn names(systems: &Systems, services: &Services) -> [String; 2] {
    let [sender, receiver] = &systems.0;
    [
        name_host(Role::Sender, sender, "client", services),
        name_host(Role::Receiver, receiver, "server", services),
    ]
}

fn name_host(role: Role, system: &System, part: &str, services: &Services) -> String {
    match (system, services.is_empty()) {
        (System::Namespace, true) => role.name().to_owned(),
        (System::Namespace, false) => format!("{role} ({part} of {services})"),
        (system, _) => format!("{role} ({system})"),
    }
}

/// Name of a router.
pub fn router_name(router: Node, routers: &Systems) -> String {
    match &routers.0[usize::from(router == Node::Router2)] {
        System::Namespace => router.name().to_owned(),
        system => format!("{router} ({system})"),
    }
}

/// The kernels of a campaign's hosts, by boot ID, with their noise floors. Each is measured once: it is that of a
/// kernel's clock, timers and sockets, which all of its network namespaces share, and takes a guest more than a second.
#[derive(Debug, Default)]
pub(crate) struct Kernels {
    pub floors: BTreeMap<String, NoiseFloor>,
    /// Leaves noise floors out.
    pub without_noise: bool,
}

impl Kernels {
    pub(crate) fn host(
        &mut self,
        name: String,
        kind: String,
        agent: &mut AgentClient,
    ) -> Result<HostRow, AgentError> {
        let since_unix_ns = now_unix_ns();
        let mut facts = agent.facts()?;
        if !self.without_noise {
            let known = facts.boot_id.as_ref().and_then(|kernel| self.floors.get(kernel)).cloned();
            let floor = known.map_or_else(|| agent.noise_floor(), Ok)?;
            if let Some(kernel) = &facts.boot_id {
                self.floors.insert(kernel.clone(), floor.clone());
            }
            facts.noise = Some(floor);
        }
        Ok(HostRow { name, kind, since_unix_ns, facts })
    }
}
