//! Transition mechanisms on a router, in its namespace or its guest. They are built after its links and addresses.
//! Each is built from its definition ([`stacklab_model::MechanismDef`]), regardless of its name: packets are
//! forwarded, tunnelled or translated, or have another source address.

use crate::addressing::{TUNNEL, TUNNEL_V6};
use crate::kernel::memory::MemoryWatch;
use crate::kernel::netlink::{Route, raise};
use crate::mechanism::tunnels::Keys;
use crate::{CustomerId, Fault, INTERFACE, MIDDLE, Site};
use serde::{Deserialize, Serialize};
use stacklab_model::{Family, Mechanism, Method, Rules, Setup, Tables, Translator, Tunnel};
use std::net::IpAddr;

mod command;
pub(crate) mod connection_table;
pub(crate) mod conntrack;
pub(crate) mod destinations;
pub(crate) mod devices;
pub mod esp;
pub(crate) mod fou;
pub(crate) mod layers;
pub mod nat;
pub(crate) mod neighbours;
pub mod offload;
pub(crate) mod publish;
pub(crate) mod routes;
pub mod rules;
pub(crate) mod segments;
pub(crate) mod softwires;
pub mod translate;
pub(crate) mod tunnels;
pub(crate) mod udp_port;

pub(crate) fn build(router: &Router, memory: &mut MemoryWatch) -> Result<(), Fault> {
    rules::build(router.rules, memory)?;
    routes::build(router, memory)?;
    neighbours::build(router, memory)?;
    conntrack::build(router.tables, memory)?;
    offload::build(router.tables.offload)?;
    match &router.mechanism.definition().method {
        Method::Forwarding => forward(router),
        Method::Tunnel(tunnel) => build_tunnels(router, tunnel),
        Method::Translation(_) => translate::build(router),
        Method::Nat(nat) => {
            forward(router)?;
            nat::build(router, *nat)
        }
        Method::Publishing(publisher) => {
            forward(router)?;
            publish::build(router, *publisher)
        }
        Method::Softwire(tunnel, sharing) => {
            build_tunnels(router, tunnel)?;
            softwires::build(router, *sharing)
        }
        Method::Mapping(ports) => {
            translate::build(router)?;
            softwires::share_at_near_router(router, *ports)
        }
    }
}

fn build_tunnels(router: &Router, tunnel: &Tunnel) -> Result<(), Fault> {
    router.list_links().iter().try_for_each(|link| tunnels::build(link, tunnel))
}

/// Packets of the link's families are forwarded: of both for dual stack.
fn forward(router: &Router) -> Result<(), Fault> {
    for link in router.list_links() {
        for family in link.mechanism.link_families() {
            let via = Some(link.other_outer(*family));
            Route { to: link.other_network(*family), device: link.middle(), via, mtu: None }.add()?;
        }
    }
    destinations::route(router)
}

/// A router on which a mechanism is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Router {
    /// Its end of the path.
    pub site: Site,
    /// The customer that it is of, or, of a far router's end of a middle link, the one at the other end.
    pub customer: CustomerId,
    /// The number of customers.
    pub customers: u32,
    /// The mechanism to build.
    pub mechanism: Mechanism,
    /// MTU of the middle link, bytes.
    pub mtu: u32,
    /// The translator on it, if the mechanism translates.
    pub translator: Translator,
    /// The firewall's rules on it.
    pub rules: Rules,
    /// Its tables.
    pub tables: Tables,
    /// The keys that it needs, if the mechanism encrypts.
    pub keys: Option<Keys>,
}

impl Router {
    /// A router of a chain of four hosts, without firewall, tables and keys.
    pub fn of_chain(site: Site, mechanism: Mechanism, mtu: u32, translator: Translator) -> Self {
        Router {
            site,
            customer: CustomerId::FIRST,
            customers: 1,
            mechanism,
            mtu,
            translator,
            rules: Rules::default(),
            tables: Tables::default(),
            keys: None,
        }
    }

    /// Its ends of middle links: a far router has one for each customer.
    pub(crate) fn list_links(&self) -> Vec<Router> {
        if self.site == Site::Near {
            return vec![*self];
        }
        CustomerId::list(self.customers).into_iter().map(|customer| Router { customer, ..*self }).collect()
    }

    /// Its interface on the customer's middle link.
    pub(crate) fn middle(&self) -> &'static str {
        if self.site == Site::Near { MIDDLE } else { self.customer.middle() }
    }

    /// Its tunnel device there.
    pub(crate) fn tunnel(&self) -> &'static str {
        if self.site == Site::Near { TUNNEL } else { self.customer.tunnel() }
    }

    pub(crate) fn own_outer(&self, family: Family) -> IpAddr {
        self.site.outer(self.customer, family)
    }

    pub(crate) fn other_outer(&self, family: Family) -> IpAddr {
        self.site.other().outer(self.customer, family)
    }

    /// The network of the other router's client.
    pub(crate) fn other_network(&self, family: Family) -> (IpAddr, u8) {
        self.site.other().network(self.customer, self.mechanism, family)
    }

    /// The table of its routes to a customer whose addresses others have too. It is chosen by a mark.
    pub(crate) fn customer_table(&self) -> Option<u32> {
        let chooses = self.site == Site::Far && self.customers > 1 && self.mechanism.sharing().is_some();
        chooses.then(|| self.customer.table())
    }

    pub(crate) fn raise_tunnel(&self) -> Result<(), Fault> {
        let carried = Family::ALL.iter().filter_map(|family| self.mechanism.leaves(*family, self.mtu));
        raise(self.tunnel(), carried.min().unwrap_or(self.mtu))
    }

    pub(crate) fn route_into_tunnel(&self) -> Result<(), Fault> {
        for family in Family::ALL.iter().filter(|family| self.mechanism.carries(**family)) {
            let other = self.site.other();
            let frames = self.mechanism.tunnel().is_some_and(Tunnel::carries_frames);
            let via = frames.then(|| other.tunnel_end(*family).0);
            let route = Route { to: self.other_network(*family), device: self.tunnel(), via, mtu: None };
            route.add_to_table(self.customer_table())?;
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

/// An interface of a router, for people who work on it by hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouterInterface {
    /// Its name on the router.
    pub name: &'static str,
    /// The router's addresses on it. A device that only tunnels packets has none.
    pub addresses: Vec<IpAddr>,
}

/// The interfaces of a router: towards its client, on the middle links and, where the mechanism or the translator has a
/// device, into the tunnels.
pub fn list_router_interfaces(router: &Router) -> Vec<RouterInterface> {
    let Router { site, customer, mechanism, translator, .. } = *router;
    let setup = mechanism.tunnel().map(|tunnel| tunnel.device.setup);
    let gateways = Family::ALL.iter().map(|family| site.gateway(customer, mechanism, *family)).collect();
    let mut interfaces = vec![RouterInterface { name: INTERFACE, addresses: gateways }];
    for link in router.list_links() {
        let families = mechanism.link_families().iter();
        let mut addresses: Vec<IpAddr> = families.map(|family| link.own_outer(*family)).collect();
        if setup == Some(Setup::Fou) && addresses.iter().all(IpAddr::is_ipv6) {
            addresses.push(fou::choose_second_end(site).into());
        }
        interfaces.push(RouterInterface { name: link.middle(), addresses });
        if has_tunnel_device(mechanism, translator, site) {
            let addresses = list_tunnel_addresses(mechanism, site);
            interfaces.push(RouterInterface { name: link.tunnel(), addresses });
        }
    }
    if setup == Some(Setup::Fou) {
        interfaces.push(RouterInterface { name: TUNNEL_V6, addresses: Vec::new() });
    }
    interfaces
}

fn has_tunnel_device(mechanism: Mechanism, translator: Translator, site: Site) -> bool {
    match &mechanism.definition().method {
        Method::Forwarding | Method::Nat(_) | Method::Publishing(_) => false,
        Method::Tunnel(tunnel) | Method::Softwire(tunnel, _) => {
            !matches!(tunnel.device.setup, Setup::Segments | Setup::SegmentsToTable | Setup::Esp)
        }
        Method::Translation(_) | Method::Mapping(_) => {
            translator == Translator::Tayga && translates_at(mechanism, site)
        }
    }
}

/// Only a device that carries Ethernet frames has addresses.
fn list_tunnel_addresses(mechanism: Mechanism, site: Site) -> Vec<IpAddr> {
    if !mechanism.tunnel().is_some_and(Tunnel::carries_frames) {
        return Vec::new();
    }
    let carried = Family::ALL.iter().filter(|family| mechanism.carries(**family));
    carried.map(|family| site.tunnel_end(*family).0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn describe(mechanism: Mechanism, translator: Translator, site: Site) -> Vec<String> {
        let mut lines = Vec::new();
        let router = Router::of_chain(site, mechanism, 1500, translator);
        for RouterInterface { name, addresses } in list_router_interfaces(&router) {
            let words = addresses.iter().map(IpAddr::to_string);
            lines.push([name.to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" "));
        }
        lines
    }

    #[test]
    fn router_interfaces_have_names_and_addresses() {
        let tayga = Translator::Tayga;
        let near = describe(Mechanism::SixInFour, tayga, Site::Near);
        assert_eq!(near, ["st0 198.18.1.254 2001:2:0:1::fe", "st1 198.18.0.1", "tunnel"]);
        let vxlan = describe(Mechanism::Vxlan4, tayga, Site::Far);
        assert_eq!(vxlan[2], "tunnel 198.18.66.2 2001:2:0:7e::2");
        let fou = describe(Mechanism::Fou6, tayga, Site::Near);
        assert_eq!(fou[1..], ["st1 2001:2:0:ffff::1 2001:2:0:ffff::61", "tunnel", "tunnel6"]);
    }

    #[test]
    fn only_a_router_with_a_device_has_a_tunnel() {
        for (mechanism, translator, site, count) in [
            (Mechanism::Native, Translator::Tayga, Site::Near, 2),
            (Mechanism::Esp4, Translator::Tayga, Site::Near, 2),
            (Mechanism::Nat64, Translator::Tayga, Site::Near, 2),
            (Mechanism::Nat64, Translator::Tayga, Site::Far, 3),
            (Mechanism::Nat64, Translator::Jool, Site::Far, 2),
        ] {
            let interfaces = list_router_interfaces(&Router::of_chain(site, mechanism, 1500, translator));
            assert_eq!(interfaces.len(), count, "{mechanism} {translator:?} {site:?}");
        }
    }
}
