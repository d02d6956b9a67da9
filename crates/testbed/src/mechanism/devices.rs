//! The netlink messages that create tunnel devices (linux/if_tunnel.h, linux/if_link.h), by their definitions.

use crate::kernel::genl::message::attribute;
use crate::mechanism::udp_port::{GUE, number_family};
use rtnetlink::packet_route::link::{InfoData, InfoKind, LinkMessage};
use rtnetlink::{LinkMessageBuilder, LinkUnspec};
use stacklab_model::{Mechanism, Remote, Setup, Tunnel};
use std::net::{IpAddr, Ipv6Addr};

pub(crate) const VXLAN_PORT: u16 = 4789;
pub(crate) const GENEVE_PORT: u16 = 6081;
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

/// The netlink message that creates a mechanism's device between two addresses, this router's first.
pub(crate) fn write_tunnel_device(
    name: &str,
    mechanism: Mechanism,
    tunnel: &Tunnel,
    ends: [IpAddr; 2],
) -> LinkMessage {
    // The protocol number of the inner packets; zero for both families.
    let inside = match mechanism.definition().carries {
        [family] => number_family(*family),
        _ => 0,
    };
    let attributes = match tunnel.device.setup {
        Setup::IpTunnel => write_ip_tunnel(inside, tunnel, ends),
        Setup::Gue => [write_ip_tunnel(inside, tunnel, ends), GUE.write_attributes()].concat(),
        Setup::Gre | Setup::GreInEsp => gre(tunnel, ends),
        Setup::Vxlan => vxlan(ends),
        Setup::Geneve => geneve(ends),
        // WireGuard is configured after its creation, and FOU has a device for each family; the others have none.
        Setup::WireGuard | Setup::Fou | Setup::Segments | Setup::SegmentsToTable | Setup::Esp => Vec::new(),
    };
    write_device(name, tunnel.device.kind, &attributes)
}

/// The netlink message that creates a device of a kind.
pub(super) fn write_device(name: &str, kind: &'static str, attributes: &[Vec<u8>]) -> LinkMessage {
    let device = LinkMessageBuilder::<LinkUnspec>::new_with_info_kind(InfoKind::from(kind));
    let device = device.name(name.to_owned());
    if attributes.is_empty() {
        return device.build();
    }
    device.set_info_data(InfoData::Other(attributes.concat())).build()
}

/// A tunnel's device, for an error.
pub(super) fn describe_device(device: &str, [own, other]: [IpAddr; 2]) -> String {
    format!("the {device} from {own} to {other}")
}

/// The attributes of a device that carries packets of this protocol number.
pub(super) fn write_ip_tunnel(inside: u8, tunnel: &Tunnel, [own, other]: [IpAddr; 2]) -> Vec<Vec<u8>> {
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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::CustomerId;
    use crate::addressing::{Site, TUNNEL};
    use rtnetlink::packet_route::link::{LinkAttribute, LinkInfo};

    /// The type of the near router's device, and its attributes as `number:bytes`.
    fn describe_near(mechanism: Mechanism) -> String {
        let tunnel = mechanism.tunnel().unwrap();
        let ends = [Site::Near, Site::Far].map(|site| site.outer(CustomerId::FIRST, tunnel.outer()));
        describe_message(&write_tunnel_device(TUNNEL, mechanism, tunnel, ends))
    }

    pub(crate) fn describe_message(message: &LinkMessage) -> String {
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
    fn devices_have_what_their_definitions_say() {
        assert_eq!(describe_near(Mechanism::SixInFour), "sit 2:c6120001 4:40 9:29 3:c6120002");
        assert_eq!(describe_near(Mechanism::SixToFour), "sit 2:c6120001 4:40 9:29");
        let prefix = "20010002000000000000000000000000";
        let sixrd = format!("sit 2:c6120001 4:40 9:29 11:{prefix} 13:3000 12:c6120000 14:1000");
        assert_eq!(describe_near(Mechanism::SixRd), sixrd);
        assert_eq!(describe_near(Mechanism::Gre4), "gre 6:c6120001 8:40 7:c6120002");
        let near = "200100020000ffff0000000000000001";
        let far = "200100020000ffff0000000000000002";
        assert_eq!(describe_near(Mechanism::Gre6), format!("ip6gre 6:{near} 8:40 7:{far} 13:01000000"));
        assert_eq!(
            describe_near(Mechanism::FourInSix),
            format!("ip6tnl 2:{near} 4:40 9:04 3:{far} 8:01000000")
        );
        assert_eq!(describe_near(Mechanism::Ipip), "ipip 2:c6120001 4:40 9:04 3:c6120002");
        assert_eq!(describe_near(Mechanism::WireGuard6), "wireguard");
        let vxlan4 = "vxlan 1:01000000 4:c6120001 2:c6120002 5:40 7:00 15:12b5";
        assert_eq!(describe_near(Mechanism::Vxlan4), vxlan4);
        let vxlan6 = format!("vxlan 1:01000000 17:{near} 16:{far} 5:40 7:00 15:12b5");
        assert_eq!(describe_near(Mechanism::Vxlan6), vxlan6);
        assert_eq!(
            describe_near(Mechanism::Gue4),
            "sit 2:c6120001 4:40 9:00 3:c6120002 15:0200 16:0200 18:17c0"
        );
        assert_eq!(describe_near(Mechanism::Geneve4), "geneve 1:01000000 2:c6120002 3:40 5:17c1");
        assert_eq!(describe_near(Mechanism::Geneve6), format!("geneve 1:01000000 7:{far} 3:40 5:17c1"));
    }
}
