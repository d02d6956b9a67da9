//! This host and a listening agent, over both families.

use crate::CampaignError;
use crate::rig::Rig;
use crate::rig::host_pair::HostPair;
use crate::rig::kernels::Kernels;
use crate::trial::evidence::Evidence;
use stacklab_model::{Cell, CpuScope, Family, LinkConfig, Role, ScopedAddr, Services, System, Systems};
use stacklab_store::HostRow;
use stacklab_traffic::host::route::Route;
use stacklab_traffic::host::unix_time::now_unix_ns;
use stacklab_traffic::protocol::{AgentClient, AgentError};
use stacklab_trial::{Collected, Path};
use std::collections::BTreeMap;

/// This host and another one, over both families.
pub struct BothFamilies {
    ends: HostPair,
    /// The other host, as the user names it.
    name: String,
    ways: BTreeMap<Family, Way>,
    /// Whether the other host is the sender.
    reverse: bool,
}

/// The way to the other host in one family.
pub struct Way {
    /// From this host.
    pub here: Route,
    /// The other host's address, with its zone as this host names it.
    pub there: ScopedAddr,
}

impl BothFamilies {
    /// Sends hello to the agents, this host's first. There is a way in each family.
    ///
    /// # Errors
    /// When an agent does not answer.
    pub fn new(
        name: String,
        ways: BTreeMap<Family, Way>,
        reverse: bool,
        [here, there]: [AgentClient; 2],
    ) -> Result<Self, AgentError> {
        let agents = if reverse { [there, here] } else { [here, there] };
        let systems = Systems([System::Namespace, System::Namespace]);
        let ends = HostPair::handshake(&systems, &Services::default(), agents)?;
        Ok(BothFamilies { ends, name, ways, reverse })
    }
}

impl Rig for BothFamilies {
    fn ends(&self) -> &HostPair {
        &self.ends
    }

    fn ends_mut(&mut self) -> &mut HostPair {
        &mut self.ends
    }

    fn describe(&self, _link_config: &LinkConfig) -> String {
        let from = if self.reverse { "from" } else { "to" };
        let ways = self.ways.values().map(|way| {
            let Way { here, there } = way;
            format!("{there} over {} (MTU {})", here.interface, here.mtu)
        });
        format!("{from} {}: {}", self.name, ways.collect::<Vec<_>>().join(", "))
    }

    fn hosts(&mut self, _kernels: &mut Kernels) -> Result<Vec<HostRow>, CampaignError> {
        let mut kinds = ["this host".to_owned(), self.name.clone()];
        if self.reverse {
            kinds.reverse();
        }
        // Without noise floors: they take longer than an answer.
        Ok(self.ends.hosts(now_unix_ns(), kinds, AgentClient::facts)?)
    }

    fn cpu_scope(&self, _cell: &Cell) -> CpuScope {
        if self.ends.one_machine() { CpuScope::Shared } else { CpuScope::Host }
    }

    fn path(&self, _link_config: &LinkConfig, cell: &Cell) -> Path {
        let Way { here, there } = &self.ways[&cell.family];
        // Its zone is called so here only.
        let (here_address, there) = (here.address.clone(), there.elsewhere());
        let [sender, receiver] = if self.reverse { [there, here_address] } else { [here_address, there] };
        // The path was not planned: its MTU and offloads are taken unchanged.
        Path {
            sender,
            receiver,
            mtu: here.mtu,
            planned_mtu: false,
            offloads: true,
            rate: None,
            shared: false,
            nat: None,
            // Nothing need be let in here.
            opener: Some(if self.reverse { Role::Receiver } else { Role::Sender }),
        }
    }

    fn end(&mut self, collected: Result<Vec<Collected>, AgentError>) -> Result<Vec<Evidence>, CampaignError> {
        Ok(Evidence::of_each(collected?))
    }
}
