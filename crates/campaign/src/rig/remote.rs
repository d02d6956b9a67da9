//! Two real machines on existing networks.

use crate::CampaignError;
use crate::rig::adapter::Adapter;
use crate::rig::host_pair::{HostPair, Kernels, names, planned_path};
use crate::rig::remote_host::{Reached, RemoteHost};
use crate::rig::{Cells, CpuCover, Network, Rig, RigKind};
use crate::trial::evidence::Evidence;
use crate::trial::settings::{CpuAffinity, Steers};
use stacklab_model::{Cell, LinkConfig, Services, Station, System, Systems};
use stacklab_store::HostRow;
use stacklab_testbed::{Host, TestbedError};
use stacklab_traffic::host::unix_time::now_unix_ns;
use stacklab_trial::Path;
use std::sync::atomic::AtomicBool;

pub(crate) struct Remote {
    machines: [RemoteHost; 2],
    /// The states of the machines' Wi-Fi adapters when the trial began.
    before: [Option<Result<Station, String>>; 2],
}

impl Remote {
    /// Sends hello to the agents on both machines.
    pub(crate) fn rig(
        systems: &Systems,
        services: &Services,
        [sender, receiver]: [Reached; 2],
        interrupted: &'static AtomicBool,
    ) -> Result<Rig, CampaignError> {
        let streams = [sender.1, receiver.1];
        let ends = HostPair::connect(systems, names(systems, services), streams, interrupted)?;
        let is = RigKind {
            cells: Cells::OfHosts(systems.clone(), services.clone()),
            here: systems.0.contains(&System::Localhost),
            cubic: false,
            divides: false,
            steers: Steers::None,
            cpu: CpuCover::BySystem,
            buckets: Vec::new(),
            in_guest: false,
        };
        let network = Remote { machines: [sender.0, receiver.0], before: [None, None] };
        Ok(Rig { ends, is, network: Box::new(network) })
    }

    /// The state of each machine's Wi-Fi adapter on the network under test.
    fn look(&self) -> [Option<Result<Station, String>>; 2] {
        self.machines.each_ref().map(|machine| machine.adapter.as_ref().map(Adapter::look))
    }
}

impl Network for Remote {
    fn tool_hosts(&self) -> Option<[&Host; 2]> {
        None
    }

    fn describe(&self, link_config: &LinkConfig) -> String {
        let [sender, receiver] = self.machines.each_ref().map(|machine| &machine.system);
        let rate = link_config.rate.map_or_else(String::new, |rate| format!(", {rate}"));
        let adapters = self.machines.iter().filter_map(|machine| machine.adapter.as_ref());
        let wifi: String = adapters.map(|adapter| format!(", Wi-Fi at {adapter}")).collect();
        format!("{sender} and {receiver} on their own network, MTU {}{rate}{wifi}", link_config.mtu)
    }

    fn hosts(&mut self, ends: &mut HostPair, kernels: &mut Kernels) -> Result<Vec<HostRow>, CampaignError> {
        let kinds = ends.systems.0.each_ref().map(|system| system.kind().to_owned());
        Ok(ends.hosts(now_unix_ns(), kinds, |agent| kernels.facts(agent))?)
    }

    fn path(&self, link_config: &LinkConfig, cell: &Cell) -> Path {
        let addresses = self.machines.each_ref().map(|machine| machine.address(cell.family));
        planned_path(addresses, link_config, cell)
    }

    fn configure(&mut self, _: &Cell, _: CpuAffinity) -> Result<(), TestbedError> {
        Ok(())
    }

    fn begin(&mut self, _: &mut HostPair, _: u64) -> Result<(), CampaignError> {
        self.before = self.look();
        Ok(())
    }

    fn end(&mut self, _: &mut HostPair, evidence: &mut [Evidence]) -> Result<(), CampaignError> {
        let (before, after) = (std::mem::take(&mut self.before), self.look());
        let mut pairs = before.into_iter().zip(after).map(|(before, after)| Some([before?, after?]));
        let adapters = [0, 1].map(|_| pairs.next().flatten());
        evidence.iter_mut().for_each(|arm| arm.adapters = adapters.clone());
        Ok(())
    }
}
