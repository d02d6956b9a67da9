//! This host and a listening agent, over both families.

use crate::CampaignError;
use crate::rig::host_pair::{HostPair, Kernels, names};
use crate::rig::{Cells, CpuCover, Network, Rig, RigKind};
use crate::trial::evidence::Evidence;
use crate::trial::settings::{CpuAffinity, Steers};
use stacklab_model::{Cell, Family, LinkConfig, Role, ScopedAddr, Services, System, Systems};
use stacklab_store::HostRow;
use stacklab_testbed::{Host, TestbedError};
use stacklab_traffic::foreign::may_choose_congestion_control;
use stacklab_traffic::host::route::Route;
use stacklab_traffic::host::unix_time::now_unix_ns;
use stacklab_traffic::protocol::{AgentClient, AgentError};
use stacklab_trial::Path;
use std::collections::BTreeMap;

/// This host and another one, over both families.
pub struct BothFamilies {
    /// The other host, as the user names it.
    name: String,
    ways: BTreeMap<Family, Way>,
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
    pub(crate) fn rig(
        name: String,
        ways: BTreeMap<Family, Way>,
        reverse: bool,
        [here, there]: [AgentClient; 2],
    ) -> Result<Rig, AgentError> {
        let (mut agents, mut systems) = ([here, there], [System::Localhost, System::Ssh(name.clone())]);
        if reverse {
            agents.reverse();
            systems.reverse();
        }
        let names = names(&Systems::NAMESPACES, &Services::default());
        let ends = HostPair::handshake(Systems(systems), names, agents)?;
        let is = RigKind {
            cells: Cells::All,
            here: true,
            cubic: may_choose_congestion_control("cubic"),
            divides: false,
            steers: Steers::None,
            cpu: CpuCover::Machines,
            buckets: Vec::new(),
            in_guest: false,
        };
        Ok(Rig { ends, is, network: Box::new(BothFamilies { name, ways, reverse }) })
    }
}

impl Network for BothFamilies {
    fn tool_hosts(&self) -> Option<[&Host; 2]> {
        None
    }

    fn describe(&self, _: &LinkConfig) -> String {
        let from = if self.reverse { "from" } else { "to" };
        let ways = self.ways.values().map(|way| {
            let Way { here, there } = way;
            format!("{there} over {} (MTU {})", here.interface, here.mtu)
        });
        format!("{from} {}: {}", self.name, ways.collect::<Vec<_>>().join(", "))
    }

    fn hosts(&mut self, ends: &mut HostPair, _: &mut Kernels) -> Result<Vec<HostRow>, CampaignError> {
        let mut kinds = ["this host".to_owned(), self.name.clone()];
        if self.reverse {
            kinds.reverse();
        }
        // Without noise floors: they take longer than an answer.
        Ok(ends.hosts(now_unix_ns(), kinds, AgentClient::facts)?)
    }

    fn path(&self, _: &LinkConfig, cell: &Cell) -> Path {
        let Way { here, there } = &self.ways[&cell.family];
        // Its zone is called so here only.
        let (here_address, there) = (here.address.clone(), there.elsewhere());
        let [sender, receiver] = if self.reverse { [there, here_address] } else { [here_address, there] };
        Path {
            // Nothing need be let in here.
            opener: Some(if self.reverse { Role::Receiver } else { Role::Sender }),
            // Other traffic may cross the interfaces; on the loopback interface, both directions do.
            shared: true,
            ..Path::unplanned(sender, receiver, here.mtu)
        }
    }

    fn configure(&mut self, _: &Cell, _: CpuAffinity) -> Result<(), TestbedError> {
        Ok(())
    }

    fn begin(&mut self, _: &mut HostPair, _: u64) -> Result<(), CampaignError> {
        Ok(())
    }

    fn end(&mut self, _: &mut HostPair, _: &mut [Evidence]) -> Result<(), CampaignError> {
        Ok(())
    }
}
