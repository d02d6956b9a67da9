//! Tunnels: the device that a definition describes ([`stacklab_model::Tunnel`]), and the routes into it. WireGuard is
//! configured over generic netlink (linux/wireguard.h), with random keys.

use crate::addressing::{TUNNEL, routed_hardware_address};
use crate::kernel::genl::message::{attribute, text};
use crate::kernel::genl::socket::Socket;
use crate::kernel::netlink::{Route, add_address, add_device, add_neighbour, change, without_link_local};
use crate::mechanism::{esp, segments};
use crate::{Attempt, Fault, Router};
use rtnetlink::packet_route::link::{InfoData, InfoKind, LinkMessage};
use rtnetlink::{LinkMessageBuilder, LinkUnspec};
use serde::{Deserialize, Serialize};
use stacklab_model::{Family, Mechanism, Remote, Setup, Tunnel};
use std::net::{IpAddr, Ipv6Addr};
use x25519_dalek::{X25519_BASEPOINT_BYTES, x25519};

const HOP_LIMIT: u8 = 64;
/// Attributes of linux/if_tunnel.h: IFLA_IPTUN_* and IFLA_GRE_*.
const IPTUN_LOCAL: u16 = 2;
const IPTUN_REMOTE: u16 = 3;
const IPTUN_TTL: u16 = 4;
const IPTUN_FLAGS: u16 = 8;
const IPTUN_PROTO: u16 = 9;
const IPTUN_6RD_PREFIX: u16 = 11;
const IPTUN_6RD_RELAY_PREFIX: u16 = 12;
const IPTUN_6RD_PREFIXLEN: u16 = 13;
const IPTUN_6RD_RELAY_PREFIXLEN: u16 = 14;
const IPTUN_ENCAP_TYPE: u16 = 15;
const IPTUN_ENCAP_FLAGS: u16 = 16;
const IPTUN_ENCAP_DPORT: u16 = 18;
/// TUNNEL_ENCAP_GUE and TUNNEL_ENCAP_FLAG_CSUM6 (linux/if_tunnel.h): UDP over IPv6 has a checksum.
const ENCAP_GUE: u16 = 2;
const ENCAP_CSUM6: u16 = 2;
const GRE_LOCAL: u16 = 6;
const GRE_REMOTE: u16 = 7;
const GRE_TTL: u16 = 8;
const GRE_FLAGS: u16 = 13;
/// Attributes of linux/if_link.h: IFLA_VXLAN_* and IFLA_GENEVE_*.
const VXLAN_ID: u16 = 1;
const VXLAN_REMOTE_V4: u16 = 2;
const VXLAN_LOCAL_V4: u16 = 4;
const VXLAN_TTL: u16 = 5;
const VXLAN_LEARNING: u16 = 7;
const VXLAN_PORT_NUMBER: u16 = 15;
const VXLAN_REMOTE_V6: u16 = 16;
const VXLAN_LOCAL_V6: u16 = 17;
const GENEVE_ID: u16 = 1;
const GENEVE_REMOTE_V4: u16 = 2;
const GENEVE_TTL: u16 = 3;
const GENEVE_PORT_NUMBER: u16 = 5;
const GENEVE_REMOTE_V6: u16 = 7;
/// The identifier of the only network that such a tunnel carries.
const NETWORK_ID: u32 = 1;
/// IP6_TNL_F_IGN_ENCAP_LIMIT: sends outer IPv6 headers without the tunnel encapsulation limit (RFC 2473), a
/// destination options header of 8 bytes.
const NO_ENCAPSULATION_LIMIT: u32 = 1;
/// The default prefix of `sit` devices (6to4).
const SIX_TO_FOUR: Ipv6Addr = Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0);

pub(crate) fn build(router: &Router, tunnel: &Tunnel) -> Result<(), Fault> {
    match tunnel.device.setup {
        Setup::Segments => return segments::build(router, tunnel.count_segments()),
        Setup::Esp => return esp::build(router, tunnel),
        Setup::Gue => open_gue_port(tunnel.outer())?,
        Setup::IpTunnel | Setup::Gre | Setup::WireGuard | Setup::Vxlan | Setup::Geneve => {}
    }
    let outer = tunnel.outer();
    let own = router.site.outer(outer);
    let other = router.site.other().outer(outer);
    let what = format!("the {} device of {} from {own} to {other}", tunnel.device.kind, router.mechanism);
    add_device(device(TUNNEL, router.mechanism, tunnel, [own, other]), &what)?;
    if tunnel.device.setup == Setup::WireGuard {
        set_up_wireguard(router, other)?;
    }
    if tunnel.carries_frames() {
        join_ethernet(router)?;
    }
    router.raise_tunnel()?;
    if tunnel.carries_frames() {
        add_ethernet_ends(router)?;
    }
    match tunnel.remote {
        Remote::Configured => router.route_into_tunnel(),
        Remote::InDestination { prefix: (network, length), .. } => {
            Route { to: (network.into(), length), device: TUNNEL, via: None, mtu: None }.add()
        }
    }
}

/// Gives the device of Ethernet frames a known hardware address, and nothing that sends by itself.
fn join_ethernet(router: &Router) -> Result<(), Fault> {
    let own = routed_hardware_address(router.site.router(), TUNNEL);
    change(TUNNEL, "set the hardware address of", |link| link.address(own.to_vec()))?;
    without_link_local(TUNNEL)
}

/// The addresses of the routers on the device: each is the other's gateway, and nobody asks for neighbours.
fn add_ethernet_ends(router: &Router) -> Result<(), Fault> {
    let other = router.site.other();
    for family in Family::ALL.iter().filter(|family| router.mechanism.carries(**family)) {
        let (own, prefix) = router.site.tunnel_end(*family);
        add_address(TUNNEL, own, prefix)?;
        let neighbour = routed_hardware_address(other.router(), TUNNEL);
        add_neighbour(TUNNEL, other.tunnel_end(*family).0, neighbour)?;
    }
    Ok(())
}

/// The netlink message that creates a mechanism's device between two addresses, this router's first.
pub(crate) fn device(name: &str, mechanism: Mechanism, tunnel: &Tunnel, ends: [IpAddr; 2]) -> LinkMessage {
    let kind = InfoKind::from(tunnel.device.kind);
    let device = LinkMessageBuilder::<LinkUnspec>::new_with_info_kind(kind).name(name.to_owned());
    let attributes = match tunnel.device.setup {
        Setup::IpTunnel => ip_tunnel(mechanism, tunnel, ends),
        Setup::Gue => [ip_tunnel(mechanism, tunnel, ends), gue()].concat(),
        Setup::Gre => gre(tunnel, ends),
        Setup::Vxlan => vxlan(ends),
        Setup::Geneve => geneve(ends),
        // WireGuard is configured after its creation; the others have no device.
        Setup::WireGuard | Setup::Segments | Setup::Esp => return device.build(),
    };
    device.set_info_data(InfoData::Other(attributes.concat())).build()
}

fn ip_tunnel(mechanism: Mechanism, tunnel: &Tunnel, [own, other]: [IpAddr; 2]) -> Vec<Vec<u8>> {
    // The protocol number of the inner packets; zero for both families.
    let inside = match mechanism.definition().carries {
        [Family::Ipv4] => libc::IPPROTO_IPIP as u8,
        [Family::Ipv6] => libc::IPPROTO_IPV6 as u8,
        _ => 0,
    };
    let mut attributes = vec![
        attribute(IPTUN_LOCAL, &octets(own)),
        attribute(IPTUN_TTL, &[HOP_LIMIT]),
        attribute(IPTUN_PROTO, &[inside]),
    ];
    match tunnel.remote {
        Remote::Configured => attributes.push(attribute(IPTUN_REMOTE, &octets(other))),
        Remote::InDestination { prefix: (SIX_TO_FOUR, _), .. } => {}
        Remote::InDestination { prefix, common } => attributes.extend([
            attribute(IPTUN_6RD_PREFIX, &prefix.0.octets()),
            attribute(IPTUN_6RD_PREFIXLEN, &u16::from(prefix.1).to_ne_bytes()),
            attribute(IPTUN_6RD_RELAY_PREFIX, &common.0.octets()),
            attribute(IPTUN_6RD_RELAY_PREFIXLEN, &u16::from(common.1).to_ne_bytes()),
        ]),
    }
    if own.is_ipv6() {
        attributes.push(attribute(IPTUN_FLAGS, &NO_ENCAPSULATION_LIMIT.to_ne_bytes()));
    }
    attributes
}

/// The source port differs by flow.
fn gue() -> Vec<Vec<u8>> {
    vec![
        attribute(IPTUN_ENCAP_TYPE, &ENCAP_GUE.to_ne_bytes()),
        attribute(IPTUN_ENCAP_FLAGS, &ENCAP_CSUM6.to_ne_bytes()),
        attribute(IPTUN_ENCAP_DPORT, &GUE_PORT.to_be_bytes()),
    ]
}

/// The port at which the kernel takes packets of a family out of UDP. It must be there before a device that sends to
/// one.
pub(crate) fn open_gue_port(outer: Family) -> Result<(), Fault> {
    let family = match outer {
        Family::Ipv4 => libc::AF_INET,
        Family::Ipv6 => libc::AF_INET6,
    };
    let lines = [
        attribute(FOU_PORT, &GUE_PORT.to_be_bytes()),
        attribute(FOU_FAMILY, &[family as u8]),
        attribute(FOU_TYPE, &[FOU_GUE]),
    ];
    let opened = Socket::open("fou").and_then(|mut socket| socket.ask(FOU_ADD, &lines.concat()));
    opened.map(drop).attempt("open a port for GUE")
}

fn gre(tunnel: &Tunnel, [own, other]: [IpAddr; 2]) -> Vec<Vec<u8>> {
    let mut attributes = vec![attribute(GRE_LOCAL, &octets(own)), attribute(GRE_TTL, &[HOP_LIMIT])];
    if tunnel.remote == Remote::Configured {
        attributes.push(attribute(GRE_REMOTE, &octets(other)));
    }
    if own.is_ipv6() {
        attributes.push(attribute(GRE_FLAGS, &NO_ENCAPSULATION_LIMIT.to_ne_bytes()));
    }
    attributes
}

/// There is one other end, so nothing is learnt from packets.
fn vxlan([own, other]: [IpAddr; 2]) -> Vec<Vec<u8>> {
    let [local, remote] = match own {
        IpAddr::V4(_) => [VXLAN_LOCAL_V4, VXLAN_REMOTE_V4],
        IpAddr::V6(_) => [VXLAN_LOCAL_V6, VXLAN_REMOTE_V6],
    };
    vec![
        attribute(VXLAN_ID, &NETWORK_ID.to_ne_bytes()),
        attribute(local, &octets(own)),
        attribute(remote, &octets(other)),
        attribute(VXLAN_TTL, &[HOP_LIMIT]),
        attribute(VXLAN_LEARNING, &[0]),
        attribute(VXLAN_PORT_NUMBER, &VXLAN_PORT.to_be_bytes()),
    ]
}

fn geneve([own, other]: [IpAddr; 2]) -> Vec<Vec<u8>> {
    let remote = if own.is_ipv4() { GENEVE_REMOTE_V4 } else { GENEVE_REMOTE_V6 };
    vec![
        attribute(GENEVE_ID, &NETWORK_ID.to_ne_bytes()),
        attribute(remote, &octets(other)),
        attribute(GENEVE_TTL, &[HOP_LIMIT]),
        attribute(GENEVE_PORT_NUMBER, &GENEVE_PORT.to_be_bytes()),
    ]
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

pub(crate) const WIREGUARD_PORT: u16 = 51820;
pub(crate) const VXLAN_PORT: u16 = 4789;
pub(crate) const GENEVE_PORT: u16 = 6081;
pub(crate) const GUE_PORT: u16 = 6080;

/// Command and attributes of linux/fou.h, and its type of GUE.
const FOU_ADD: u8 = 1;
const FOU_PORT: u16 = 1;
const FOU_FAMILY: u16 = 2;
const FOU_TYPE: u16 = 4;
const FOU_GUE: u8 = 2;

/// Commands and attributes of linux/wireguard.h.
const SET_DEVICE: u8 = 1;
const DEVICE_NAME: u16 = 2;
const DEVICE_PRIVATE_KEY: u16 = 3;
const DEVICE_LISTEN_PORT: u16 = 6;
const DEVICE_PEERS: u16 = 8;
const PEER_PUBLIC_KEY: u16 = 1;
const PEER_ENDPOINT: u16 = 4;
const PEER_ALLOWED: u16 = 9;
const ALLOWED_FAMILY: u16 = 1;
const ALLOWED_ADDRESS: u16 = 2;
const ALLOWED_MASK: u16 = 3;
/// The bit in an attribute's type which marks nested attributes.
const NESTED: u16 = 1 << 15;

/// The keys that a router needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keys {
    own: [u8; 32],
    /// The other router's public key.
    other: [u8; 32],
}

impl Keys {
    /// Generates keys for the near and the far router. `None` if the mechanism does not encrypt.
    pub(crate) fn draw(mechanism: Mechanism) -> Result<[Option<Self>; 2], Fault> {
        if mechanism.tunnel().is_none_or(|tunnel| tunnel.device.setup != Setup::WireGuard) {
            return Ok([None, None]);
        }
        let mut private = [[0; 32]; 2];
        let drawn = private.iter_mut().try_for_each(|key| getrandom::fill(key));
        drawn.attempt("draw keys for WireGuard")?;
        let [near, far] = private;
        let near_public = x25519(near, X25519_BASEPOINT_BYTES);
        let far_public = x25519(far, X25519_BASEPOINT_BYTES);
        Ok([Some(Keys { own: near, other: far_public }), Some(Keys { own: far, other: near_public })])
    }
}

pub(crate) fn set_up_wireguard(router: &Router, other: IpAddr) -> Result<(), Fault> {
    let keys = router.keys.ok_or("it has none").attempt("find the router's keys for WireGuard")?;
    let lines = [
        text(DEVICE_NAME, TUNNEL),
        attribute(DEVICE_PRIVATE_KEY, &keys.own),
        attribute(DEVICE_LISTEN_PORT, &WIREGUARD_PORT.to_ne_bytes()),
        attribute(DEVICE_PEERS | NESTED, &attribute(NESTED, &peer(other, &keys.other))),
    ];
    let set = Socket::open("wireguard").and_then(|mut socket| socket.ask(SET_DEVICE, &lines.concat()));
    set.map(drop).attempt("give the WireGuard device its key and its peer")
}

fn peer(other: IpAddr, key: &[u8; 32]) -> Vec<u8> {
    let all = Family::ALL.iter().flat_map(|family| {
        let (number, bytes): (u16, &[u8]) = match family {
            Family::Ipv4 => (libc::AF_INET as u16, &[0; 4]),
            Family::Ipv6 => (libc::AF_INET6 as u16, &[0; 16]),
        };
        let one = [
            attribute(ALLOWED_FAMILY, &number.to_ne_bytes()),
            attribute(ALLOWED_ADDRESS, bytes),
            attribute(ALLOWED_MASK, &[0]),
        ];
        attribute(NESTED, &one.concat())
    });
    let lines = [
        attribute(PEER_PUBLIC_KEY, key),
        attribute(PEER_ENDPOINT, &socket_address(other)),
        attribute(PEER_ALLOWED | NESTED, &all.collect::<Vec<u8>>()),
    ];
    lines.concat()
}

/// `struct sockaddr_in` or `sockaddr_in6` with the port.
fn socket_address(address: IpAddr) -> Vec<u8> {
    let port = WIREGUARD_PORT.to_be_bytes();
    match address {
        IpAddr::V4(address) => {
            [&(libc::AF_INET as u16).to_ne_bytes()[..], &port, &address.octets(), &[0; 8]].concat()
        }
        IpAddr::V6(address) => {
            [&(libc::AF_INET6 as u16).to_ne_bytes()[..], &port, &[0; 4], &address.octets(), &[0; 4]].concat()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::addressing::Site;
    use rtnetlink::packet_route::link::{LinkAttribute, LinkInfo};

    /// The type of the near router's device, and its attributes as `number:bytes`.
    fn describe_device(mechanism: Mechanism) -> String {
        let tunnel = mechanism.tunnel().unwrap();
        let ends = [Site::Near, Site::Far].map(|site| site.outer(tunnel.outer()));
        let message = device(TUNNEL, mechanism, tunnel, ends);
        let infos = message.attributes.iter().find_map(|attribute| match attribute {
            LinkAttribute::LinkInfo(infos) => Some(infos),
            _ => None,
        });
        let said = infos.unwrap().iter().map(|info| match info {
            LinkInfo::Kind(kind) => kind.to_string(),
            LinkInfo::Data(InfoData::Other(bytes)) => {
                let mut rest = &bytes[..];
                let mut said = Vec::new();
                while let [low, high, kind, 0, ..] = rest {
                    let length = usize::from(u16::from_ne_bytes([*low, *high]));
                    let value = rest[4..length].iter().map(|byte| format!("{byte:02x}"));
                    said.push(format!("{kind}:{}", value.collect::<String>()));
                    rest = &rest[length.next_multiple_of(4)..];
                }
                assert!(rest.is_empty());
                said.join(" ")
            }
            other => panic!("{other:?}"),
        });
        said.collect::<Vec<String>>().join(" ")
    }

    #[test]
    fn devices_are_told_what_their_definitions_say() {
        assert_eq!(describe_device(Mechanism::SixInFour), "sit 2:c6120001 4:40 9:29 3:c6120002");
        assert_eq!(describe_device(Mechanism::SixToFour), "sit 2:c6120001 4:40 9:29");
        let prefix = "20010002000000000000000000000000";
        let sixrd = format!("sit 2:c6120001 4:40 9:29 11:{prefix} 13:3000 12:c6120000 14:1000");
        assert_eq!(describe_device(Mechanism::SixRd), sixrd);
        assert_eq!(describe_device(Mechanism::Gre4), "gre 6:c6120001 8:40 7:c6120002");
        let near = "200100020000ffff0000000000000001";
        let far = "200100020000ffff0000000000000002";
        assert_eq!(describe_device(Mechanism::Gre6), format!("ip6gre 6:{near} 8:40 7:{far} 13:01000000"));
        assert_eq!(
            describe_device(Mechanism::FourInSix),
            format!("ip6tnl 2:{near} 4:40 9:04 3:{far} 8:01000000")
        );
        assert_eq!(describe_device(Mechanism::Ipip), "ipip 2:c6120001 4:40 9:04 3:c6120002");
        assert_eq!(describe_device(Mechanism::WireGuard6), "wireguard");
        let vxlan4 = "vxlan 1:01000000 4:c6120001 2:c6120002 5:40 7:00 15:12b5";
        assert_eq!(describe_device(Mechanism::Vxlan4), vxlan4);
        let vxlan6 = format!("vxlan 1:01000000 17:{near} 16:{far} 5:40 7:00 15:12b5");
        assert_eq!(describe_device(Mechanism::Vxlan6), vxlan6);
        assert_eq!(
            describe_device(Mechanism::Gue4),
            "sit 2:c6120001 4:40 9:00 3:c6120002 15:0200 16:0200 18:17c0"
        );
        assert_eq!(describe_device(Mechanism::Geneve4), "geneve 1:01000000 2:c6120002 3:40 5:17c1");
        assert_eq!(describe_device(Mechanism::Geneve6), format!("geneve 1:01000000 7:{far} 3:40 5:17c1"));
    }
}
