//! Links: veth pairs, offloads, bridges to guests, and the addresses, neighbours and routes of hosts on them.

use crate::addressing::{
    access_point_addresses, address, bridged_address, customer_hardware_address, peer, prefix_bits,
    station_addresses,
};
use crate::kernel::memory::MemoryWatch;
use crate::kernel::namespace::open_other;
use crate::kernel::netlink::{Route, add_address, add_device, add_neighbour, change, index, with_netlink};
use crate::kernel::rule::{Selector, add_rule};
use crate::kernel::sys::{create_lasting, features, switch_off};
use crate::kernel::sysctl;
use crate::{
    Attempt, BSSID, CustomerId, Fault, INTERFACE, MIDDLE, Router, Site, hardware_address, mechanism,
};
use futures_util::TryStreamExt;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::link::{InfoData, InfoVeth};
use rtnetlink::{LinkBridge, LinkMessageBuilder, LinkUnspec, LinkVeth};
use stacklab_model::{Family, Mechanism, Role};
use std::net::IpAddr;
use std::os::fd::AsRawFd;

/// The minimum and maximum MTU: the minimum is required by IPv6 (RFC 8200), the maximum is the driver's.
pub(crate) const MTU_LIMITS: (u32, u32) = (1280, 65535);

/// Creates a veth pair. One end is in the calling thread's namespace, the other in that of process `other`, so neither
/// ever appears in the machine's. Names and hardware addresses are for this end and the other end.
pub fn create_veth(names: [&str; 2], mtu: u32, other: u32, hardware: [[u8; 6]; 2]) -> Result<(), Fault> {
    let [name, other_name] = names;
    let namespace = open_other(other).attempt("open the next host's namespace")?;
    fn end<T>(link: LinkMessageBuilder<T>, address: [u8; 6], mtu: u32) -> LinkMessageBuilder<T> {
        link.mtu(mtu).address(address.to_vec())
    }
    let far = end(LinkUnspec::new_with_name(other_name), hardware[1], mtu).setns_by_fd(namespace.as_raw_fd());
    let near = end(LinkVeth::new(name, name), hardware[0], mtu)
        .set_info_data(InfoData::Veth(InfoVeth::Peer(far.build())));
    add_device(near.build(), &format!("the veth pair {name} with MTU {mtu}"))
}

/// Whether a feature, by its kernel name, is a segmentation offload (TCP, UDP, tunnels, generic) or receive
/// coalescing. Checksum offload stays on: a veth pair passes memory, so data cannot be corrupted, and checksums would
/// read every byte twice for no benefit.
fn joins_or_splits(feature: &str) -> bool {
    // "robust" only says that the device accepts GSO packets from a guest.
    feature != "tx-gso-robust"
        && ["segmentation", "-gso", "-gro", "-lro"].iter().any(|part| feature.contains(part))
}

/// Switches off every such feature of an interface in the calling thread's namespace, and verifies it.
pub fn switch_off_all(interface: &str) -> Result<(), Fault> {
    let before = read_features(interface)?;
    let mut places = Vec::new();
    for (place, (name, is_on)) in before.iter().enumerate() {
        if *is_on && joins_or_splits(name) {
            places.push(place);
        }
    }
    switch_off(interface, &places, before.len())
        .attempt(format!("switch off the offloads of {interface}"))?;
    let mut stay = Vec::new();
    for (name, is_on) in read_features(interface)? {
        if is_on && joins_or_splits(&name) {
            stay.push(name);
        }
    }
    if stay.is_empty() {
        return Ok(());
    }
    Err("the kernel keeps them on").attempt(format!("switch off {} of {interface}", stay.join(", ")))
}

fn read_features(interface: &str) -> Result<Vec<(String, bool)>, Fault> {
    features(interface).attempt(format!("read the offloads of {interface}"))
}

/// The name of the tap device for a link's interface.
pub fn tap_of(link: &str) -> String {
    format!("tap-{link}")
}

/// Removes the namespace's IPv4 addresses from a link's end in the calling thread's namespace, with their routes, and
/// the hardware address `own`, which the guest will use. Its IPv6 addresses are removed at the handover.
pub(crate) fn vacate(link: &str, own: [u8; 6]) -> Result<(), Fault> {
    let index = index(link)?;
    with_netlink(async |netlink| {
        let found = netlink.address().get().set_link_index_filter(index).execute();
        let found: Vec<_> = found.try_collect().await.attempt(format!("read the addresses of {link}"))?;
        for address in found.into_iter().filter(|address| address.header.family == AddressFamily::Inet) {
            let gone = netlink.address().del(address).execute().await;
            gone.attempt(format!("take an address from {link}"))?;
        }
        Ok(())
    })?;
    change(link, "change the hardware address of", |link| link.address(bridged_address(own).to_vec()))
}

/// Creates a bridge in the calling thread's namespace with this hardware address and port, and sets both up.
pub fn create_bridge(bridge: &str, hardware: [u8; 6], port: &str) -> Result<(), Fault> {
    disable_ipv6(port)?;
    let made = LinkBridge::new(bridge).address(hardware.to_vec()).up().build();
    add_device(made, &format!("the bridge {bridge}"))?;
    let controller = index(bridge)?;
    change(port, "put into the bridge", |link| link.controller(controller).up())
}

/// Creates the tap device, bridges it to the link's end in the calling thread's namespace, and sets all three up.
pub(crate) fn hand_over(link: &str, mtu: u32, offloads: bool) -> Result<(), Fault> {
    let tap = &*tap_of(link);
    let bridge = &*format!("br-{link}");
    create_lasting(tap, libc::IFF_TAP).attempt(format!("create the tap device {tap}"))?;
    if !offloads {
        switch_off_all(tap)?;
    }
    add_device(LinkBridge::new(bridge).build(), &format!("the bridge {bridge}"))?;
    let controller = index(bridge)?;
    for port in [tap, link] {
        change(port, "put into the bridge", |link| link.mtu(mtu).controller(controller))?;
    }
    for name in [tap, link, bridge] {
        disable_ipv6(name)?;
        change(name, "raise", |link| link.up())?;
    }
    Ok(())
}

/// Sets a link's end up in the calling thread's namespace, for a guest that sends and receives its frames.
pub(crate) fn leave_to_frames(link: &str, mtu: u32) -> Result<(), Fault> {
    disable_ipv6(link)?;
    change(link, "raise", |link| link.mtu(mtu).up())
}

fn disable_ipv6(interface: &str) -> Result<(), Fault> {
    sysctl::write(&format!("ipv6/conf/{interface}/disable_ipv6"), "1")
}

/// Configures the addresses and the neighbour of an end of a direct link. Its interface must be up.
pub fn configure_end(role: Role) -> Result<(), Fault> {
    Family::ALL.iter().try_for_each(|family| {
        let (own, prefix) = address(*family, role);
        let (other, _) = address(*family, peer(role));
        add_address(INTERFACE, own, prefix)?;
        add_neighbour(INTERFACE, other, hardware_address(peer(role)))
    })
}

/// Configures the addresses of an access point, on its radio's interface or its bridge, which must be up.
pub fn configure_access_point(interface: &str) -> Result<(), Fault> {
    access_point_addresses().into_iter().try_for_each(|(own, prefix)| add_address(interface, own, prefix))
}

/// Configures another station of a Wi-Fi network, whose neighbour is the access point. Its interface must be up.
pub fn configure_station(station: u8) -> Result<(), Fault> {
    for (own, prefix) in station_addresses(station) {
        add_address(INTERFACE, own, prefix)?;
    }
    access_point_addresses().into_iter().try_for_each(|(address, _)| add_neighbour(INTERFACE, address, BSSID))
}

/// Configures a router, in its namespace or its guest: addresses, neighbours and mechanism. Its interfaces must be up.
pub fn configure_router(router: &Router, memory: &mut MemoryWatch) -> Result<(), Fault> {
    let Router { site, mechanism, .. } = *router;
    sysctl::forward()?;
    ClientNetwork { site, customer: router.customer, mechanism }.configure_router()?;
    for link in router.list_links() {
        for family in mechanism.link_families() {
            add_address(link.middle(), link.own_outer(*family), prefix_bits(*family))?;
            let hardware = customer_hardware_address(link.customer, site.other().router(), MIDDLE);
            add_neighbour(link.middle(), link.other_outer(*family), hardware)?;
        }
    }
    mechanism::build(router, memory)
}

/// The network of a client and its router.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientNetwork {
    pub site: Site,
    pub customer: CustomerId,
    pub mechanism: Mechanism,
}

impl ClientNetwork {
    /// The client's interface on it.
    fn device(&self) -> &'static str {
        match self.site {
            Site::Near => self.customer.uplink(),
            Site::Far => INTERFACE,
        }
    }

    /// The table of the client's routes, where it has links of several customers: their addresses may be the same.
    fn table(&self) -> Option<u32> {
        (self.customer != CustomerId::FIRST).then(|| self.customer.table())
    }

    fn client(&self, family: Family) -> IpAddr {
        self.site.client_address(self.customer, self.mechanism, family)
    }

    fn gateway(&self, family: Family) -> IpAddr {
        self.site.gateway(self.customer, self.mechanism, family)
    }

    fn configure_router(&self) -> Result<(), Fault> {
        for family in Family::ALL {
            add_address(INTERFACE, self.gateway(*family), prefix_bits(*family))?;
            if self.site.is_client_on_middle_link(self.mechanism) {
                continue;
            }
            let hardware = customer_hardware_address(self.customer, self.site.client(), INTERFACE);
            add_neighbour(INTERFACE, self.client(*family), hardware)?;
        }
        Ok(())
    }

    /// Configures the client's end.
    pub(crate) fn configure_client(&self) -> Result<(), Fault> {
        for family in Family::ALL {
            let (gateway, hardware) = self.site.next_hop(self.customer, self.mechanism, *family);
            add_address(self.device(), self.client(*family), prefix_bits(*family))?;
            add_neighbour(self.device(), gateway, hardware)?;
            if let Some(table) = self.table() {
                add_rule(*family, Selector::Interface(self.device()), table)?;
            }
            let to = (family.unspecified_address(), 0);
            let route = Route { to, device: self.device(), via: Some(gateway), mtu: None };
            route.add_to_table(self.table())?;
        }
        Ok(())
    }
}

/// Configures a client, in its namespace or its guest. Its interface must be up.
pub fn configure_client(site: Site, mechanism: Mechanism) -> Result<(), Fault> {
    ClientNetwork { site, customer: CustomerId::FIRST, mechanism }.configure_client()
}

/// Sets a client's path MTU to the other client with routes, which never expire, in its namespace or its guest.
pub fn fix_path_mtus(site: Site, mechanism: Mechanism, middle_mtu: u32) -> Result<(), Fault> {
    for (to, mtu) in site.paths(mechanism, middle_mtu) {
        let bits = if to.is_ipv4() { 32 } else { 128 };
        let (gateway, _) = site.next_hop(CustomerId::FIRST, mechanism, Family::of(to));
        Route { to: (to, bits), device: INTERFACE, via: Some(gateway), mtu: Some(mtu) }.add()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_joins_or_splits_goes_and_checksums_stay() {
        for name in [
            "tx-tcp-segmentation",
            "tx-tcp6-segmentation",
            "tx-tcp-mangleid-segmentation",
            "tx-generic-segmentation",
            "tx-udp-segmentation",
            "tx-gso-list",
            "rx-gro",
            "rx-gro-hw",
            "rx-gro-list",
            "rx-udp-gro-forwarding",
            "rx-lro",
        ] {
            assert!(joins_or_splits(name), "{name}");
        }
        for name in ["rx-checksum", "tx-checksum-ip-generic", "tx-scatter-gather", "tx-gso-robust", "highdma"]
        {
            assert!(!joins_or_splits(name), "{name}");
        }
    }
}
