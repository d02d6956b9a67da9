//! Two real machines on existing networks.

use crate::campaign::sources::now_unix_ns;
use crate::failure::Failure;
use crate::rig::Rig;
use crate::rig::host_pair::HostPair;
use crate::rig::kernels::Kernels;
use crate::rig::names::names;
use crate::rig::remote_host::RemoteHost;
use crate::trial::evidence::Evidence;
use crate::trial::settings::Steers;
use stacklab_model::{Cell, CpuScope, LinkConfig, Services, System, Systems};
use stacklab_store::HostRow;
use stacklab_testbed::Streams;
use stacklab_traffic::protocol::{AgentClient, AgentError};
use stacklab_traffic::trial::{Collected, Path};
use std::sync::atomic::AtomicBool;

/// Two connected machines.
pub struct RemoteRig {
    machines: [RemoteHost; 2],
    ends: HostPair,
}

impl RemoteRig {
    /// Sends hello to the agents on both machines.
    ///
    /// # Errors
    /// When an agent does not answer.
    pub fn new(
        systems: &Systems,
        services: &Services,
        mut machines: [RemoteHost; 2],
        interrupted: &'static AtomicBool,
    ) -> Result<Self, Failure> {
        let [of_sender, of_receiver] = names(systems, services);
        let client =
            |name: &str, (output, input): Streams| AgentClient::new(name, output, input, interrupted);
        let [sender, receiver] = machines.each_mut().map(RemoteHost::take_streams);
        let agents = [client(&of_sender, sender), client(&of_receiver, receiver)];
        Ok(RemoteRig { ends: HostPair::greet(systems, services, agents)?, machines })
    }
}

impl Rig for RemoteRig {
    fn ends(&self) -> &HostPair {
        &self.ends
    }

    fn ends_mut(&mut self) -> &mut HostPair {
        &mut self.ends
    }

    fn is_here(&self) -> bool {
        self.ends.systems.0.contains(&System::Here)
    }

    fn describe(&self, link_config: &LinkConfig) -> String {
        let [sender, receiver] = &self.machines;
        let rate = link_config.rate.map_or_else(String::new, |rate| format!(", {rate}"));
        format!("{sender} and {receiver} on their own network, MTU {}{rate}", link_config.mtu)
    }

    fn hosts(&mut self, kernels: &mut Kernels) -> Result<Vec<HostRow>, Failure> {
        let kinds = [0, 1].map(|number| self.ends.systems.0[number].kind().to_owned());
        Ok(self.ends.hosts(now_unix_ns(), kinds, |agent| kernels.facts(agent))?)
    }

    fn cpu_scope(&self, cell: &Cell) -> CpuScope {
        self.ends.cpu_scope(cell, Steers::None)
    }

    fn path(&self, link_config: &LinkConfig, cell: &Cell) -> Path {
        let [sender, receiver] = self.machines.each_ref().map(|machine| machine.address(cell.family));
        Path {
            sender,
            receiver,
            mtu: link_config.mtu_of(cell),
            planned_mtu: true,
            offloads: link_config.offloads,
            rate: link_config.rate,
            shared: !self.ends.services.is_empty(),
            nat: None,
        }
    }

    fn end(&mut self, collected: Result<Vec<Collected>, AgentError>) -> Result<Vec<Evidence>, Failure> {
        Ok(Evidence::of_each(collected?))
    }
}
