//! Two real machines on existing networks.

use crate::CampaignError;
use crate::rig::Rig;
use crate::rig::adapter::Adapter;
use crate::rig::host_pair::HostPair;
use crate::rig::kernels::Kernels;
use crate::rig::remote_host::{Reached, RemoteHost};
use crate::trial::evidence::Evidence;
use crate::trial::settings::Steers;
use stacklab_model::{Cell, CpuScope, LinkConfig, Services, Station, System, Systems};
use stacklab_store::HostRow;
use stacklab_traffic::host::unix_time::now_unix_ns;
use stacklab_traffic::protocol::AgentError;
use stacklab_trial::{Collected, Path};
use std::sync::atomic::AtomicBool;

/// Two connected machines.
pub(crate) struct RemoteRig {
    machines: [RemoteHost; 2],
    ends: HostPair,
    /// The states of the machines' Wi-Fi adapters when the trial began.
    before: [Option<Result<Station, String>>; 2],
}

impl RemoteRig {
    /// Sends hello to the agents on both machines.
    ///
    /// # Errors
    /// When an agent does not answer.
    pub(crate) fn new(
        systems: &Systems,
        services: &Services,
        [sender, receiver]: [Reached; 2],
        interrupted: &'static AtomicBool,
    ) -> Result<Self, CampaignError> {
        let ends = HostPair::connect(systems, services, [sender.1, receiver.1], interrupted)?;
        Ok(RemoteRig { machines: [sender.0, receiver.0], ends, before: [None, None] })
    }

    /// The state of each machine's Wi-Fi adapter on the network under test.
    fn look(&self) -> [Option<Result<Station, String>>; 2] {
        self.machines.each_ref().map(|machine| machine.adapter().map(Adapter::look))
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
        self.ends.systems.0.contains(&System::Localhost)
    }

    fn describe(&self, link_config: &LinkConfig) -> String {
        let [sender, receiver] = &self.machines;
        let rate = link_config.rate.map_or_else(String::new, |rate| format!(", {rate}"));
        let adapters = self.machines.iter().filter_map(RemoteHost::adapter);
        let wifi = adapters.map(|adapter| format!(", Wi-Fi at {adapter}"));
        let wifi: String = wifi.collect();
        format!("{sender} and {receiver} on their own network, MTU {}{rate}{wifi}", link_config.mtu)
    }

    fn hosts(&mut self, kernels: &mut Kernels) -> Result<Vec<HostRow>, CampaignError> {
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

    fn begin(&mut self, _seed: u64) -> Result<(), CampaignError> {
        self.before = self.look();
        Ok(())
    }

    fn end(&mut self, collected: Result<Vec<Collected>, AgentError>) -> Result<Vec<Evidence>, CampaignError> {
        let mut evidence = Evidence::of_each(collected?);
        let (before, after) = (std::mem::take(&mut self.before), self.look());
        let mut pairs = before.into_iter().zip(after).map(|(before, after)| Some([before?, after?]));
        let adapters = [0, 1].map(|_| pairs.next().flatten());
        evidence.iter_mut().for_each(|arm| arm.adapters = adapters.clone());
        Ok(evidence)
    }
}
