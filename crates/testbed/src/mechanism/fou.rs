//! FOU: packets in UDP, with nothing between. A port takes out one protocol, so each family inside has a port and a
//! device.

use crate::addressing::{TUNNEL, TUNNEL_V6, prefix_bits, routed_hardware_address};
use crate::kernel::netlink::{Route, add_address, add_device, add_neighbour, raise};
use crate::mechanism::devices::{describe_device, write_device, write_ip_tunnel};
use crate::mechanism::udp_port::{UdpPort, number_family};
use crate::{CustomerId, Fault, MIDDLE, Router, Site};
use rtnetlink::packet_route::link::LinkMessage;
use stacklab_model::{Family, Tunnel};
use std::net::{IpAddr, Ipv6Addr};

pub(crate) fn build(router: &Router, tunnel: &Tunnel) -> Result<(), Fault> {
    if tunnel.outer() == Family::Ipv6 {
        add_second_end(router.site)?;
    }
    for family in router.mechanism.definition().carries {
        add_end(name_device(*family), router.site, tunnel, *family)?;
        raise(name_device(*family), router.mechanism.leaves(*family, router.mtu).unwrap_or(router.mtu))?;
        let to = router.other_network(*family);
        Route { to, device: name_device(*family), via: None, mtu: None }.add()?;
    }
    Ok(())
}

/// Whether this kernel has these ports and devices.
pub(crate) fn try_devices(tunnel: &Tunnel) -> Result<(), Fault> {
    for family in Family::ALL {
        add_end(&format!("st-{}-{family}", tunnel.device.ability), Site::Near, tunnel, *family)?;
    }
    Ok(())
}

/// Opens the port and adds the device for packets of a family.
fn add_end(name: &str, site: Site, tunnel: &Tunnel, inside: Family) -> Result<(), Fault> {
    let port = UdpPort::of_fou(inside);
    port.open(tunnel.outer())?;
    let ends = [site, site.other()].map(|site| choose_end(site, tunnel.outer(), inside));
    let what = describe_device(&format!("{} device", tunnel.device.ability), ends);
    add_device(write_fou_device(name, tunnel, inside, ends), &what)
}

fn write_fou_device(name: &str, tunnel: &Tunnel, inside: Family, ends: [IpAddr; 2]) -> LinkMessage {
    let kind = match (tunnel.outer(), inside) {
        (Family::Ipv4, Family::Ipv6) => "sit",
        _ => tunnel.device.kind,
    };
    let attributes =
        [write_ip_tunnel(number_family(inside), tunnel, ends), UdpPort::of_fou(inside).write_attributes()];
    write_device(name, kind, &attributes.concat())
}

/// Where packets of a family inside begin and end.
fn choose_end(site: Site, outer: Family, inside: Family) -> IpAddr {
    match (outer, inside) {
        (Family::Ipv6, Family::Ipv6) => choose_second_end(site).into(),
        _ => site.outer(CustomerId::FIRST, outer),
    }
}

/// The second address of a router on the middle link, for IPv6 in IPv6.
pub(super) fn choose_second_end(site: Site) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 2, 0, 0xffff, 0, 0, 0, 0x60 | u16::from(site.number()))
}

fn add_second_end(site: Site) -> Result<(), Fault> {
    add_address(MIDDLE, choose_second_end(site).into(), prefix_bits(Family::Ipv6))?;
    let other = site.other();
    let neighbour = routed_hardware_address(other.router(), MIDDLE);
    add_neighbour(MIDDLE, choose_second_end(other).into(), neighbour)
}

/// The device that packets of a family enter.
fn name_device(inside: Family) -> &'static str {
    match inside {
        Family::Ipv4 => TUNNEL,
        Family::Ipv6 => TUNNEL_V6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mechanism::devices::tests::describe_message;
    use stacklab_model::Mechanism;

    fn describe_end(mechanism: Mechanism, inside: Family) -> String {
        let tunnel = mechanism.tunnel().unwrap();
        let ends = [Site::Near, Site::Far].map(|site| choose_end(site, tunnel.outer(), inside));
        describe_message(&write_fou_device(TUNNEL, tunnel, inside, ends))
    }

    #[test]
    fn each_family_has_a_device_with_its_port() {
        assert_eq!(
            describe_end(Mechanism::Fou4, Family::Ipv4),
            "ipip 2:c6120001 4:40 9:04 3:c6120002 15:0100 16:0200 18:1e5e"
        );
        assert_eq!(
            describe_end(Mechanism::Fou4, Family::Ipv6),
            "sit 2:c6120001 4:40 9:29 3:c6120002 15:0100 16:0200 18:1e60"
        );
        let ends = "2:200100020000ffff0000000000000061 4:40 9:29 3:200100020000ffff0000000000000062";
        assert_eq!(
            describe_end(Mechanism::Fou6, Family::Ipv6),
            format!("ip6tnl {ends} 8:01000000 15:0100 16:0200 18:1e60")
        );
    }
}
