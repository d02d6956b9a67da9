//! The two hosts at the ends of a rig: their agents, facts and clocks.

use crate::rig::names::names;
use crate::trial::clock_offset::{ClockOffset, one_clock, one_machine};
use crate::trial::evidence::ClockSync;
use crate::trial::settings;
use stacklab_model::{
    Cell, CpuScope, Direction, Family, HostFacts, Metric, Services, System, Systems, TrialSpec,
};
use stacklab_store::HostRow;
use stacklab_testbed::Ticks;
use stacklab_traffic::protocol::{AgentClient, AgentError};
use stacklab_traffic::stats::clock::Offset;
use stacklab_traffic::trial::measure_offset;
use stacklab_traffic::trial::{Collected, Path, collect};

/// Two hosts with agents that have said hello.
pub struct HostPair {
    /// What each host runs, sender first.
    pub systems: Systems,
    /// What the receiver serves.
    pub services: Services,
    sender: AgentClient,
    receiver: AgentClient,
    /// Each host's facts, sender first; known once they were asked for.
    facts: Vec<HostFacts>,
    /// The last comparison of the hosts' clocks in a family, where they have two.
    compared: Option<(Family, Offset)>,
}

impl HostPair {
    /// Greets both agents.
    ///
    /// # Errors
    /// When one does not speak.
    pub fn greet(
        systems: &Systems,
        services: &Services,
        [sender, receiver]: [AgentClient; 2],
    ) -> Result<Self, AgentError> {
        let (systems, services) = (systems.clone(), services.clone());
        let mut pair = HostPair { systems, services, sender, receiver, facts: Vec::new(), compared: None };
        pair.see_alive()?;
        Ok(pair)
    }

    /// Asks whether both hosts are still there.
    ///
    /// # Errors
    /// When one is not.
    pub fn see_alive(&mut self) -> Result<(), AgentError> {
        self.sender.hello()?;
        self.receiver.hello()
    }

    /// Whether a cell is measured between hosts of these systems and services.
    pub fn is_for(&self, cell: &Cell) -> bool {
        Systems::of(cell) == self.systems && Services::of(cell) == self.services
    }

    /// Each host's facts, for the record, with what kind of host it is.
    ///
    /// # Errors
    /// When one is gone.
    pub fn hosts(&mut self, since_unix_ns: u64, kinds: [String; 2]) -> Result<Vec<HostRow>, AgentError> {
        let mut rows = Vec::new();
        let agents = [&mut self.sender, &mut self.receiver];
        for ((agent, name), kind) in agents.into_iter().zip(names(&self.systems, &self.services)).zip(kinds) {
            let facts = agent.facts()?;
            self.facts.push(facts.clone());
            rows.push(HostRow { name, kind, since_unix_ns, facts });
        }
        Ok(rows)
    }

    /// Whose CPU the CPU figures of a cell's runs are; `steers` is whether streams have processors of their own unless the
    /// cell says otherwise.
    pub fn cpu_scope(&self, cell: &Cell, steers: bool) -> CpuScope {
        if self.systems.0.iter().all(|system| !system.counts_cpu()) {
            return CpuScope::Outside;
        }
        let own_kernel = |system: &System| *system != System::Namespace && system.counts_cpu();
        if self.systems.0.iter().all(own_kernel) {
            return CpuScope::Host;
        }
        settings::cpu_scope(cell, steers)
    }

    /// Of what both hosts' processes have run, what is of guests that do not count all of their CPU time themselves.
    pub fn uncounted(&self, all: impl FnOnce() -> [Option<Ticks>; 2]) -> [Option<Ticks>; 2] {
        if self.systems.0.iter().all(System::counts_cpu) {
            return [None, None];
        }
        let all = all();
        [0, 1].map(|number| all[number].filter(|_| !self.systems.0[number].counts_cpu()))
    }

    /// What is known of the hosts' clocks before a trial: the comparison after the one before serves, where it was over the
    /// same family.
    ///
    /// # Errors
    /// When a host is gone.
    pub fn clock_offset(&mut self, path: &Path, spec: &TrialSpec) -> Result<ClockOffset, AgentError> {
        let [sender, receiver] = &self.facts[..] else { return Ok(ClockOffset::Same) };
        let delays = spec.probe.metrics.iter().copied().any(Metric::is_one_way_delay);
        if one_clock(sender, receiver) || !delays {
            return Ok(ClockOffset::Same);
        }
        let one = one_machine(sender, receiver);
        let before = match self.compared {
            Some((family, offset)) if family == spec.family => Ok(offset),
            _ => self.measure_offset(path, spec)?,
        };
        Ok(ClockOffset::of(one, before))
    }

    /// What is known of the hosts' clocks after a trial.
    ///
    /// # Errors
    /// When a host is gone.
    pub fn clock_sync(
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

    /// Has both run one trial, and collects what they report.
    ///
    /// # Errors
    /// When a host is gone, or the user interrupts.
    pub fn collect(
        &mut self,
        path: &Path,
        spec: &TrialSpec,
        direction: Direction,
    ) -> Result<Collected, AgentError> {
        collect(&mut self.sender, &mut self.receiver, path, spec, direction)
    }
}

/// For each host, both ends of a span of CPU time, where both are known.
pub fn spans(before: [Option<Ticks>; 2], after: [Option<Ticks>; 2]) -> [Option<[Ticks; 2]>; 2] {
    [0, 1].map(|host| Some([before[host]?, after[host]?]))
}
