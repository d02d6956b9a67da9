//! This host and a listening agent, over both families.

use crate::rig::host_pair::{HostPair, names};
use crate::rig::{CpuCover, Network, Rig, RigKind};
use stacklab_model::{Cell, Family, LinkConfig, Role, ScopedAddr, Services, System, Systems};
use stacklab_traffic::foreign::may_choose_congestion_control;
use stacklab_traffic::host::zone::Route;
use stacklab_traffic::protocol::{AgentClient, AgentError};
use stacklab_trial::Path;
use std::collections::BTreeMap;

/// The way to another host in each family; in reverse, that host is the sender.
struct BothFamilies {
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

/// Sends hello to the agents, this host's first, then that of the host that the user names so.
pub(super) fn rig(
    name: String,
    ways: BTreeMap<Family, Way>,
    reverse: bool,
    mut agents: [AgentClient; 2],
) -> Result<Rig, AgentError> {
    let mut systems = [System::Localhost, System::Ssh(name.clone())];
    let mut kinds = ["this host".to_owned(), name.clone()];
    if reverse {
        agents.reverse();
        systems.reverse();
        kinds.reverse();
    }
    let described = ways
        .values()
        .map(|Way { here, there }| format!("{there} over {} (MTU {})", here.interface, here.mtu));
    let described = described.collect::<Vec<_>>().join(", ");
    let description = format!("{} {name}: {described}", if reverse { "from" } else { "to" });
    let names = names(&Systems::NAMESPACES, &Services::default());
    let ends = HostPair::handshake(Systems(systems), names, kinds, agents)?;
    let is = RigKind {
        here: true,
        cubic: may_choose_congestion_control("cubic"),
        cpu: CpuCover::Machines,
        ..RigKind::default()
    };
    Ok(Rig::new(ends, is, description, BothFamilies { ways, reverse }))
}

impl Network for BothFamilies {
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
}
