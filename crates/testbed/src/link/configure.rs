//! Addresses, neighbours and routes of a host. The code is the same for a namespace and a guest.

use crate::kernel::sysctl;
use crate::link::addressing::{
    access_point_addresses, address, peer, prefix_bits, routed_hardware_address, station_addresses,
};
use crate::link::interface::{Route, add_address, add_neighbour};
use crate::{BSSID, Fault, INTERFACE, MIDDLE, Node, Router, Site, hardware_address, mechanism};
use stacklab_model::{Family, Mechanism, Role};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Configures the addresses and the neighbour of an end of a direct link. Its interface must be up.
pub fn configure_end(role: Role) -> Result<(), Fault> {
    Family::ALL.iter().try_for_each(|family| {
        let ((own, prefix), (other, _)) = (address(*family, role), address(*family, peer(role)));
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
pub fn configure_router(router: &Router) -> Result<(), Fault> {
    let Router { site, mechanism, .. } = *router;
    sysctl::forward()?;
    configure_on_client_network(site.router(), site, mechanism)?;
    for family in mechanism.link_families() {
        let (own, other) = (site.outer(*family), site.other().outer(*family));
        add_address(MIDDLE, own, prefix_bits(*family))?;
        add_neighbour(MIDDLE, other, routed_hardware_address(site.other().router(), MIDDLE))?;
    }
    mechanism::build(router)
}

/// Configures a client or its router on the client's network, in its namespace or its guest. Its interface must be up.
pub fn configure_on_client_network(node: Node, site: Site, mechanism: Mechanism) -> Result<(), Fault> {
    let is_router = node == site.router();
    for family in Family::ALL {
        let (client, gateway) = (site.client_address(mechanism, *family), site.gateway(mechanism, *family));
        let [own, other] = if is_router { [gateway, client] } else { [client, gateway] };
        let neighbour = if is_router { site.client() } else { site.router() };
        add_address(INTERFACE, own, prefix_bits(*family))?;
        add_neighbour(INTERFACE, other, routed_hardware_address(neighbour, INTERFACE))?;
        if !is_router {
            let all: IpAddr = match family {
                Family::Ipv4 => Ipv4Addr::UNSPECIFIED.into(),
                Family::Ipv6 => Ipv6Addr::UNSPECIFIED.into(),
            };
            Route { to: (all, 0), device: INTERFACE, via: Some(gateway), mtu: None }.add()?;
        }
    }
    Ok(())
}

/// Sets a client's path MTU to the other client with routes, which never expire, in its namespace or its guest.
pub fn fix_path_mtus(site: Site, mechanism: Mechanism, middle_mtu: u32) -> Result<(), Fault> {
    for (to, mtu) in site.paths(mechanism, middle_mtu) {
        let bits = if to.is_ipv4() { 32 } else { 128 };
        let gateway = site.gateway(mechanism, Family::of(to));
        Route { to: (to, bits), device: INTERFACE, via: Some(gateway), mtu: Some(mtu) }.add()?;
    }
    Ok(())
}
