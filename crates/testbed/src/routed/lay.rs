//! Three links between four namespaces: pairs of interfaces, addresses, neighbours, shaping.

use super::node::{Machine, Node};
use super::plan::{MIDDLE, NEAR, Site, hardware_address};
use super::wire::{Route, add_address, add_neighbour, raise, set};
use crate::error::{Attempt, Fault, TestbedError};
use crate::mechanism::Router;
use crate::netlink::with_netlink;
use crate::offload::switch_off_all;
use crate::queue::{Impairment, Queue};
use crate::quiet::quiet;
use crate::shape::Bucket;
use rtnetlink::packet_route::link::{InfoData, InfoVeth};
use rtnetlink::{LinkMessageBuilder, LinkUnspec, LinkVeth};
use stacklab_model::{Family, LinkConfig, Mechanism, OwnLink};
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd;

/// A link, alike in both directions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    mtu: u32,
    queue: Queue,
    impair: Option<Impairment>,
}

impl Line {
    /// A link of a link configuration.
    pub fn new(own: &OwnLink, link_config: &LinkConfig) -> Result<Self, TestbedError> {
        let LinkConfig { rate, mtu, .. } = own.of(link_config);
        let bucket = rate.map(|rate| Bucket::new(rate, mtu)).transpose()?;
        let impair = own.impairs().then_some(Impairment { delay_ns: own.delay_ns, loss: own.loss });
        Ok(Line { mtu, queue: Queue { bucket, packets: None }, impair })
    }
}

/// The links of a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lines {
    pub near: Line,
    pub middle: Line,
    pub far: Line,
    pub offloads: bool,
}

/// Lays the links of a row of hosts, which have no addresses yet. Gives whether path MTUs hold for as long as the hosts are
/// there.
pub(super) fn links(machines: &[Machine; 4], lines: &Lines) -> Result<bool, TestbedError> {
    let mut lasting = true;
    for machine in machines {
        lasting &= machine.inside(|| {
            quiet()?;
            settings()?;
            Ok(keep_path_mtus())
        })?;
    }
    for (place, interface, line) in [(0, NEAR, lines.near), (1, MIDDLE, lines.middle), (2, NEAR, lines.far)] {
        let [one, other] = [&machines[place], &machines[place + 1]];
        // The pairs are sender-router1, router1-router2, router2-receiver.
        let pid = other.pid();
        let ends = [hardware_address(one.node, interface), hardware_address(other.node, interface)];
        one.inside(|| connect(interface, line.mtu, pid, ends))?;
    }
    for machine in machines {
        machine.inside(|| shape(machine.node, lines))?;
    }
    Ok(lasting)
}

/// Settings of any host of a row.
pub(crate) fn settings() -> Result<(), Fault> {
    for scope in ["all", "default"] {
        set(&format!("ipv4/conf/{scope}/rp_filter"), "0")?;
        // What came in by a link and leaves by it again is no business of the sender's.
        set(&format!("ipv4/conf/{scope}/send_redirects"), "0")?;
        set(&format!("ipv4/conf/{scope}/accept_redirects"), "0")?;
        set(&format!("ipv6/conf/{scope}/accept_redirects"), "0")?;
    }
    Ok(())
}

/// Has what path MTU discovery has found hold for a campaign, and not for ten minutes; `false` where the setting cannot be
/// reached: without root, and in kernels before 5.16, which have one for all namespaces.
pub(crate) fn keep_path_mtus() -> bool {
    ["ipv4", "ipv6"].iter().all(|family| set(&format!("{family}/route/mtu_expires"), "1000000").is_ok())
}

fn forward() -> Result<(), Fault> {
    set("ipv4/ip_forward", "1")?;
    set("ipv6/conf/all/forwarding", "1")?;
    set("ipv6/conf/default/forwarding", "1")?;
    // Every packet that is too large is answered, so that path MTU discovery does not wait.
    set("ipv4/icmp_ratelimit", "0")?;
    set("ipv6/icmp/ratelimit", "0")
}

/// Makes a pair, one end here and the other born in the namespace of process `other`.
fn connect(name: &str, mtu: u32, other: u32, hardware: [[u8; 6]; 2]) -> Result<(), Fault> {
    let path = format!("/proc/{other}/ns/net");
    let namespace = File::open(&path).attempt(format!("open the next host's namespace {path}"))?;
    fn end<T>(link: LinkMessageBuilder<T>, address: [u8; 6], mtu: u32) -> LinkMessageBuilder<T> {
        link.mtu(mtu).address(address.to_vec())
    }
    let far = end(LinkUnspec::new_with_name(name), hardware[1], mtu).setns_by_fd(namespace.as_raw_fd());
    let near = end(LinkVeth::new(name, name), hardware[0], mtu)
        .set_info_data(InfoData::Veth(InfoVeth::Peer(far.build())));
    with_netlink(async |netlink| {
        let made = netlink.link().add(near.build()).execute().await;
        made.attempt(format!("create the veth pair {name} with MTU {mtu}"))
    })
}

/// Shapes and raises a host's ends of its links.
fn shape(node: Node, lines: &Lines) -> Result<(), Fault> {
    let (outward, is_router) = match node {
        Node::Sender => (lines.near, false),
        Node::Router1 => (lines.near, true),
        Node::Router2 => (lines.far, true),
        Node::Receiver => (lines.far, false),
    };
    let between = is_router.then_some((MIDDLE, lines.middle));
    for (interface, line) in [(NEAR, outward)].into_iter().chain(between) {
        if !lines.offloads {
            switch_off_all(interface)?;
        }
        line.queue.lay_at(interface, None, line.impair)?;
        raise(interface, line.mtu)?;
    }
    Ok(())
}

/// Has a host be a router: its addresses and neighbours on both links, and the mechanism. To be called in its namespace or in
/// its guest, whose interfaces are raised.
pub(crate) fn route(router: &Router) -> Result<(), Fault> {
    let Router { site, mechanism, .. } = *router;
    forward()?;
    join(site.router(), site, mechanism)?;
    for family in mechanism.link_families() {
        let (own, other) = (site.outer(*family), site.other().outer(*family));
        let prefix = match family {
            Family::Ipv4 => 24,
            Family::Ipv6 => 64,
        };
        add_address(MIDDLE, own, prefix)?;
        add_neighbour(MIDDLE, other, hardware_address(site.other().router(), MIDDLE))?;
    }
    router.lay()
}

/// Gives a host its addresses on the network of a client, which it is or whose router it is; its neighbour there; and a
/// client its routes. To be called in its namespace or in its guest, whose interface is raised.
pub(crate) fn join(node: Node, site: Site, mechanism: Mechanism) -> Result<(), Fault> {
    let is_router = node == site.router();
    for family in Family::ALL {
        let (client, gateway) = (site.client_address(mechanism, *family), site.gateway(mechanism, *family));
        let (_, prefix) = site.network(mechanism, *family);
        let [own, other] = if is_router { [gateway, client] } else { [client, gateway] };
        let neighbour = if is_router { site.client() } else { site.router() };
        add_address(NEAR, own, prefix)?;
        add_neighbour(NEAR, other, hardware_address(neighbour, NEAR))?;
        if !is_router {
            let all: IpAddr = match family {
                Family::Ipv4 => Ipv4Addr::UNSPECIFIED.into(),
                Family::Ipv6 => Ipv6Addr::UNSPECIFIED.into(),
            };
            Route { to: (all, 0), device: NEAR, via: Some(gateway), mtu: None }.add()?;
        }
    }
    Ok(())
}

/// Has a client know the path MTU for as long as it stands: by routes to what it calls the other one, which the kernel, unlike
/// what it has found, never forgets. To be called in its namespace or in its guest.
pub(crate) fn fix_path_mtus(site: Site, mechanism: Mechanism, middle_mtu: u32) -> Result<(), Fault> {
    for (to, mtu) in site.paths(mechanism, middle_mtu) {
        let bits = if to.is_ipv4() { 32 } else { 128 };
        let gateway = site.gateway(mechanism, Family::of(to));
        Route { to: (to, bits), device: NEAR, via: Some(gateway), mtu: Some(mtu) }.add()?;
    }
    Ok(())
}
