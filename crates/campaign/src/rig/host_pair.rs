//! The two hosts at the ends of a rig: their agents, facts and clocks.

use crate::rig::names::names;
use crate::trial::clock_offset::{ClockOffset, one_machine};
use crate::trial::evidence::ClockSync;
use crate::trial::settings::{self, Steers};
use stacklab_model::{
    Cell, Counters, CpuScope, Direction, Family, HostFacts, LinkConfig, ScopedAddr, Services, System,
    Systems, TrialSpec,
};
use stacklab_store::HostRow;
use stacklab_testbed::{INTERFACE, Streams, Ticks};
use stacklab_traffic::protocol::{AgentClient, AgentError, Answer, Request};
use stacklab_traffic::stats::clock::Offset;
use stacklab_trial::measure_offset;
use stacklab_trial::{Collected, Path, collect, collect_in_turns};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Time limit for reading a host's counters.
pub(super) const COUNT_LIMIT: Duration = Duration::from_secs(20);

/// Two hosts with agents that have said hello.
pub(crate) struct HostPair {
    /// The system of each host, sender first.
    pub systems: Systems,
    /// The receiver's services.
    pub services: Services,
    sender: AgentClient,
    receiver: AgentClient,
    /// Each host's facts, sender first; empty until they are first requested.
    facts: Vec<HostFacts>,
    /// The last clock offset of the hosts in a family, if they have two clocks.
    compared: Option<(Family, Offset)>,
}

impl HostPair {
    /// Sends hello to the agents on these streams, the sender's first.
    ///
    /// # Errors
    /// When an agent does not answer.
    pub(crate) fn connect(
        systems: &Systems,
        services: &Services,
        [sender, receiver]: [Streams; 2],
        interrupted: &'static AtomicBool,
    ) -> Result<Self, AgentError> {
        let [of_sender, of_receiver] = names(systems, services);
        let client = |name, (output, input): Streams| AgentClient::new(name, output, input, interrupted);
        HostPair::handshake(systems, services, [client(of_sender, sender), client(of_receiver, receiver)])
    }

    /// Sends hello to both agents.
    ///
    /// # Errors
    /// When an agent does not answer.
    pub(crate) fn handshake(
        systems: &Systems,
        services: &Services,
        [sender, receiver]: [AgentClient; 2],
    ) -> Result<Self, AgentError> {
        let (systems, services) = (systems.clone(), services.clone());
        let mut pair = HostPair { systems, services, sender, receiver, facts: Vec::new(), compared: None };
        pair.ensure_alive()?;
        Ok(pair)
    }

    /// Checks that both hosts are still there.
    ///
    /// # Errors
    /// When one is not.
    pub(crate) fn ensure_alive(&mut self) -> Result<(), AgentError> {
        self.sender.hello()?;
        self.receiver.hello()
    }

    /// Whether a cell belongs to hosts with these systems and services.
    pub(crate) fn is_for(&self, cell: &Cell) -> bool {
        Systems::of(cell) == self.systems && Services::of(cell) == self.services
    }

    /// Each host's facts, as `facts` asks for them, and its kind, for the record.
    ///
    /// # Errors
    /// When one is gone.
    pub(crate) fn hosts(
        &mut self,
        since_unix_ns: u64,
        kinds: [String; 2],
        mut facts: impl FnMut(&mut AgentClient) -> Result<HostFacts, AgentError>,
    ) -> Result<Vec<HostRow>, AgentError> {
        let mut rows = Vec::new();
        let agents = [&mut self.sender, &mut self.receiver];
        for ((agent, name), kind) in agents.into_iter().zip(names(&self.systems, &self.services)).zip(kinds) {
            let facts = facts(agent)?;
            self.facts.push(facts.clone());
            rows.push(HostRow { name, kind, since_unix_ns, facts });
        }
        Ok(rows)
    }

    /// The path of a cell's trials on the planned link between these addresses, the sender's first.
    pub(crate) fn path(
        &self,
        [sender, receiver]: [ScopedAddr; 2],
        link_config: &LinkConfig,
        cell: &Cell,
    ) -> Path {
        Path {
            sender,
            receiver,
            mtu: link_config.mtu_of(cell),
            planned_mtu: true,
            offloads: link_config.offloads,
            rate: link_config.rate,
            shared: !self.services.is_empty(),
            nat: None,
            opener: None,
        }
    }

    /// Whether both hosts are one machine, by their facts; false until these are requested.
    pub(crate) fn one_machine(&self) -> bool {
        matches!(&self.facts[..], [sender, receiver, ..] if one_machine(sender, receiver))
    }

    /// Whose CPU time the CPU figures of a cell's runs cover. `steers` is whose receive work streams have on
    /// its own processors by default.
    pub(crate) fn cpu_scope(&self, cell: &Cell, steers: Steers) -> CpuScope {
        if self.systems.0.iter().all(|system| !system.counts_cpu()) {
            return CpuScope::Outside;
        }
        let own_kernel = |system: &System| *system != System::Namespace && system.counts_cpu();
        if self.systems.0.iter().all(own_kernel) {
            return CpuScope::Host;
        }
        settings::cpu_scope(cell, steers)
    }

    /// Keeps the CPU time of those guests that do not count all of their CPU time themselves.
    pub(crate) fn uncounted(&self, all: impl FnOnce() -> [Option<Ticks>; 2]) -> [Option<Ticks>; 2] {
        if self.systems.0.iter().all(System::counts_cpu) {
            return [None, None];
        }
        let all = all();
        [0, 1].map(|number| all[number].filter(|_| !self.systems.0[number].counts_cpu()))
    }

    /// The clock offset before a trial. The measurement after the previous trial is reused if it was over the same
    /// family.
    ///
    /// # Errors
    /// When a host is gone.
    pub(crate) fn clock_offset(&mut self, path: &Path, spec: &TrialSpec) -> Result<ClockOffset, AgentError> {
        let [sender, receiver] = &self.facts[..] else { return Ok(ClockOffset::Same) };
        if let Some(known) = ClockOffset::unmeasured(sender, receiver, spec) {
            return Ok(known);
        }
        let one = one_machine(sender, receiver);
        let before = match self.compared {
            Some((family, offset)) if family == spec.family => Ok(offset),
            _ => self.measure_offset(path, spec)?,
        };
        Ok(ClockOffset::of(one, before))
    }

    /// The clock synchronisation after a trial.
    ///
    /// # Errors
    /// When a host is gone.
    pub(crate) fn clock_sync(
        &mut self,
        before: ClockOffset,
        path: &Path,
        spec: &TrialSpec,
    ) -> Result<ClockSync, AgentError> {
        before.with_after(|| self.measure_offset(path, spec))
    }

    fn measure_offset(
        &mut self,
        path: &Path,
        spec: &TrialSpec,
    ) -> Result<Result<Offset, String>, AgentError> {
        let compared = measure_offset(&mut self.sender, &mut self.receiver, path, spec)?;
        self.compared = compared.as_ref().ok().map(|offset| (spec.family, *offset));
        Ok(compared)
    }

    /// How late a sleeping program wakes up, nanoseconds: the 99th percentile of the host with the coarser timers, as
    /// far as it was measured.
    pub(crate) fn wake_up_ns(&self) -> u64 {
        let late = |facts: &HostFacts| Some(facts.noise.as_ref()?.timer_late?.p99_ns);
        self.facts.iter().filter_map(late).max().unwrap_or(0)
    }

    /// Both agents, the sender's first.
    pub(crate) fn agents(&mut self) -> [&mut AgentClient; 2] {
        [&mut self.sender, &mut self.receiver]
    }

    /// What both hosts have counted so far, the sender first.
    ///
    /// # Errors
    /// When a host is gone.
    pub(crate) fn counters(&mut self) -> Result<[Counters; 2], AgentError> {
        let [sender, receiver] = self.agents();
        Ok([counters(sender, INTERFACE)?, counters(receiver, INTERFACE)?])
    }

    /// Whether the user has interrupted.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.sender.is_interrupted()
    }

    /// Runs one trial on both hosts and collects their reports.
    ///
    /// # Errors
    /// When a host is gone, or the user interrupts.
    pub(crate) fn collect(
        &mut self,
        path: &Path,
        spec: &TrialSpec,
        direction: Direction,
    ) -> Result<Collected, AgentError> {
        collect(&mut self.sender, &mut self.receiver, path, spec, direction)
    }

    /// Runs the arms of an interleaved trial on both hosts and collects the reports of each.
    ///
    /// # Errors
    /// When a host is gone, or the user interrupts.
    pub(crate) fn collect_in_turns(
        &mut self,
        arms: &[(&Path, &TrialSpec)],
        direction: Direction,
        seed: u64,
    ) -> Result<Vec<Collected>, AgentError> {
        collect_in_turns(&mut self.sender, &mut self.receiver, arms, direction, seed)
    }
}

/// For each host, the CPU times before and after a trial, if both are known.
pub(crate) fn spans(before: [Option<Ticks>; 2], after: [Option<Ticks>; 2]) -> [Option<[Ticks; 2]>; 2] {
    [0, 1].map(|host| Some([before[host]?, after[host]?]))
}

/// What a host has counted so far, with its interface of that name.
pub(super) fn counters(agent: &mut AgentClient, interface: &str) -> Result<Counters, AgentError> {
    let request = Request::Count { interface: interface.to_owned() };
    match agent.ask(request, "tell its counters", COUNT_LIMIT)? {
        (_, Answer::Counted { counters }) => Ok(counters),
        _ => Err(agent.confused("tell its counters")),
    }
}
