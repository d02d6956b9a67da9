//! Transition mechanisms on a router, in its namespace or its guest. They are built after its links and addresses.
//! Each is built from its definition ([`stacklab_model::MechanismDef`]), regardless of its name: packets are
//! forwarded, tunnelled or translated, or have another source address.

use crate::addressing::TUNNEL;
use crate::kernel::netlink::{Route, raise};
use crate::mechanism::tunnels::Keys;
use crate::{Fault, MIDDLE, Site};
use serde::{Deserialize, Serialize};
use stacklab_model::{Family, Mechanism, Method, Rules, Tables, Translator, Tunnel};

mod command;
pub(crate) mod conntrack;
pub mod esp;
pub(crate) mod layers;
pub mod nat;
pub(crate) mod prefixes;
pub(crate) mod routes;
pub mod rules;
pub(crate) mod segments;
pub(crate) mod softwires;
pub mod translate;
pub(crate) mod tunnels;

pub(crate) fn build(router: &Router) -> Result<(), Fault> {
    rules::build(router.rules)?;
    routes::build(router)?;
    conntrack::build(router.tables.tracking)?;
    match &router.mechanism.definition().method {
        Method::Forwarding => forward(router),
        Method::Tunnel(tunnel) => tunnels::build(router, tunnel),
        Method::Translation(_) => translate::build(router),
        Method::Nat(nat) => {
            forward(router)?;
            nat::build(router, *nat)
        }
        Method::Softwire(tunnel, sharing) => {
            tunnels::build(router, tunnel)?;
            softwires::build(router, *sharing)
        }
    }
}

/// Packets of the link's families are forwarded: of both for dual stack.
fn forward(router: &Router) -> Result<(), Fault> {
    let other = router.site.other();
    for family in router.mechanism.link_families() {
        let to = other.network(router.mechanism, *family);
        Route { to, device: MIDDLE, via: Some(other.outer(*family)), mtu: None }.add()?;
    }
    Ok(())
}

/// A router on which a mechanism is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Router {
    /// Its end of the path.
    pub site: Site,
    /// The mechanism to build.
    pub mechanism: Mechanism,
    /// MTU of the middle link, bytes.
    pub mtu: u32,
    /// The translator on it, if the mechanism translates.
    pub translator: Translator,
    /// The firewall's rules on it.
    pub rules: Rules,
    /// Further entries of its tables.
    pub tables: Tables,
    /// The keys that it needs, if the mechanism encrypts.
    pub keys: Option<Keys>,
}

impl Router {
    pub(crate) fn raise_tunnel(&self) -> Result<(), Fault> {
        let carried = Family::ALL.iter().filter_map(|family| self.mechanism.leaves(*family, self.mtu));
        raise(TUNNEL, carried.min().unwrap_or(self.mtu))
    }

    pub(crate) fn route_into_tunnel(&self) -> Result<(), Fault> {
        for family in Family::ALL.iter().filter(|family| self.mechanism.carries(**family)) {
            let other = self.site.other();
            let frames = self.mechanism.tunnel().is_some_and(Tunnel::carries_frames);
            let via = frames.then(|| other.tunnel_end(*family).0);
            Route { to: other.network(self.mechanism, *family), device: TUNNEL, via, mtu: None }.add()?;
        }
        Ok(())
    }
}

pub(crate) fn translates_at(mechanism: Mechanism, site: Site) -> bool {
    mechanism.translation().is_some_and(|translation| match site {
        Site::Near => translation.near(),
        Site::Far => translation.far(),
    })
}
