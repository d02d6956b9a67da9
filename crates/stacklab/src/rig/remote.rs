//! Two real machines on existing networks.

use crate::failure::Failure;
use crate::rig::Rig;
use crate::rig::host_pair::HostPair;
use crate::rig::kernels::Kernels;
use crate::rig::remote_host::{Reached, RemoteHost};
use crate::trial::evidence::Evidence;
use crate::trial::settings::Steers;
use stacklab_model::{Cell, CpuScope, LinkConfig, Services, System, Systems};
use stacklab_store::HostRow;
use stacklab_traffic::host::unix_time::now_unix_ns;
use stacklab_traffic::protocol::AgentError;
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
        [sender, receiver]: [Reached; 2],
        interrupted: &'static AtomicBool,
    ) -> Result<Self, Failure> {
        let ends = HostPair::meet(systems, services, [sender.1, receiver.1], interrupted)?;
        Ok(RemoteRig { machines: [sender.0, receiver.0], ends })
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
        let addresses = self.machines.each_ref().map(|machine| machine.address(cell.family));
        self.ends.path(addresses, link_config, cell)
    }

    fn end(&mut self, collected: Result<Vec<Collected>, AgentError>) -> Result<Vec<Evidence>, Failure> {
        Ok(Evidence::of_each(collected?))
    }
}
