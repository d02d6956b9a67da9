//! The addresses of all hosts, the routes of each mechanism's packets, and the translation of addresses. All
//! addresses are from the networks for benchmarks (RFC 2544, RFC 5180), except 6to4, which has its own prefix.

use crate::Node;
use serde::{Deserialize, Serialize};
use stacklab_model::{Family, Mechanism, Nat, Remote, Role, Sharing, Translation};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A host's interface: a client's only one, or a router's interface towards its client.
pub const INTERFACE: &str = "st0";
/// A router's interface on the middle link.
pub const MIDDLE: &str = "st1";
/// The access point's bridge between its network and a wire.
pub const BRIDGE: &str = "br0";
/// A router's tunnel device, or its translator's device.
pub(crate) const TUNNEL: &str = "tunnel";
/// A router's tunnel device for IPv6 inside, where each family has one.
pub(crate) const TUNNEL_V6: &str = "tunnel6";

/// The prefix in which translators embed IPv4 addresses (RFC 6052). It is a network-specific prefix: the well-known
/// prefix does not carry non-global addresses.
pub(crate) const TRANSLATED: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2001, 2, 0, 0x64, 0, 0, 0, 0), 96);
/// The prefix to which 464XLAT's near translator maps the addresses of its clients.
pub(crate) const XLAT: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2001, 2, 0, 0xc1a7, 0, 0, 0, 0), 64);
/// The IPv4 addresses that represent IPv6 hosts.
pub(crate) const POOL: (Ipv4Addr, u8) = (Ipv4Addr::new(198, 18, 64, 0), 24);
/// The translator's own address in the pool, and the addresses of the hosts behind it.
pub(crate) const POOL_OWN: Ipv4Addr = Ipv4Addr::new(198, 18, 64, 1);
pub(crate) const POOL_HOST: Ipv4Addr = Ipv4Addr::new(198, 18, 64, 2);
/// The prefix below which NPTv6 places the near network on the middle link.
pub(crate) const NPT: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2001, 2, 0, 0x101, 0, 0, 0, 0), 64);
/// The IPv4 address that the customers of lw4o6 and MAP share.
pub(crate) const SHARED: Ipv4Addr = Ipv4Addr::new(198, 18, 67, 18);
const NPT_HOST: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0, 0x101, 0, 0, 0, 1);
/// The client's address on the middle link with 464XLAT.
pub(crate) const XLAT_HOST: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0, 0xc1a7, 0, 0, 0, 1);

/// The length of the prefix of each network of a testbed, bits.
pub fn prefix_bits(family: Family) -> u8 {
    match family {
        Family::Ipv4 => 24,
        Family::Ipv6 => 64,
    }
}

/// A host's address on a direct link, and the length of the link's prefix. RFC 2544 reserves 198.18.0.0/15 for
/// benchmarks, and RFC 5180 reserves 2001:2::/48.
pub(crate) fn address(family: Family, role: Role) -> (IpAddr, u8) {
    number_address(family, number(role))
}

fn number_address(family: Family, number: u8) -> (IpAddr, u8) {
    let address = match family {
        Family::Ipv4 => Ipv4Addr::new(198, 18, 0, number).into(),
        Family::Ipv6 => Ipv6Addr::new(0x2001, 2, 0, 1, 0, 0, 0, number.into()).into(),
    };
    (address, prefix_bits(family))
}

/// A host's addresses on a direct link, IPv4 first.
pub fn addresses(role: Role) -> [IpAddr; 2] {
    FAMILIES.map(|family| address(family, role).0)
}

/// The access point's addresses in a Wi-Fi network and the lengths of their prefixes, IPv4 first. Its stations have
/// those of a direct link.
pub fn access_point_addresses() -> [(IpAddr, u8); 2] {
    station_addresses(0)
}

/// The addresses of a Wi-Fi network's other station of this number, from 1, IPv4 first.
pub fn station_addresses(station: u8) -> [(IpAddr, u8); 2] {
    FAMILIES.map(|family| number_address(family, ACCESS_POINT + station))
}

const FAMILIES: [Family; 2] = [Family::Ipv4, Family::Ipv6];
const ACCESS_POINT: u8 = 3;
/// The access point's hardware address, which identifies its network (BSSID).
pub const BSSID: [u8; 6] = local(ACCESS_POINT);

/// The hardware address of a Wi-Fi network's other station.
pub fn station_hardware_address(station: u8) -> [u8; 6] {
    local(ACCESS_POINT + station)
}

/// A host's hardware address on a direct link: locally administered, and the same in every testbed. Neighbour entries
/// can therefore be written before the interfaces exist.
pub fn hardware_address(role: Role) -> [u8; 6] {
    local(number(role))
}

const fn local(number: u8) -> [u8; 6] {
    [0x02, 0, 0, 0, 0, number]
}

/// A hardware address as text, in the format for virtual machines: `02:00:00:00:00:01`.
pub fn hardware_address_text(address: [u8; 6]) -> String {
    address.map(|byte| format!("{byte:02x}")).join(":")
}

/// The hardware address of a link end that is bridged to a guest. The guest's interface has the host's address.
pub fn bridged_address(own: [u8; 6]) -> [u8; 6] {
    let mut other = own;
    other[0] |= 0x04;
    other
}

/// The other host of a direct link.
pub fn peer(role: Role) -> Role {
    match role {
        Role::Sender => Role::Receiver,
        Role::Receiver => Role::Sender,
    }
}

fn number(role: Role) -> u8 {
    match role {
        Role::Sender => 1,
        Role::Receiver => 2,
    }
}

/// An end of the path: a client's network behind its router.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Site {
    /// The sender's.
    Near,
    /// The receiver's.
    Far,
}

impl Site {
    pub(crate) fn number(self) -> u8 {
        match self {
            Site::Near => 1,
            Site::Far => 2,
        }
    }

    pub(crate) fn other(self) -> Site {
        match self {
            Site::Near => Site::Far,
            Site::Far => Site::Near,
        }
    }

    fn nodes(self) -> [Node; 2] {
        match self {
            Site::Near => [Node::Sender, Node::Router1],
            Site::Far => [Node::Receiver, Node::Router2],
        }
    }

    /// The client at this site.
    pub fn client(self) -> Node {
        self.nodes()[0]
    }

    pub(crate) fn router(self) -> Node {
        self.nodes()[1]
    }

    pub(crate) fn outer(self, family: Family) -> IpAddr {
        match family {
            Family::Ipv4 => self.outer_v4().into(),
            Family::Ipv6 => Ipv6Addr::new(0x2001, 2, 0, 0xffff, 0, 0, 0, self.number().into()).into(),
        }
    }

    /// Its router's address on a tunnel that carries Ethernet frames, and the length of the prefix there.
    pub(crate) fn tunnel_end(self, family: Family) -> (IpAddr, u8) {
        let address = match family {
            Family::Ipv4 => Ipv4Addr::new(198, 18, 66, self.number()).into(),
            Family::Ipv6 => Ipv6Addr::new(0x2001, 2, 0, 0x7e, 0, 0, 0, self.number().into()).into(),
        };
        (address, prefix_bits(family))
    }

    fn outer_v4(self) -> Ipv4Addr {
        Ipv4Addr::new(198, 18, 0, self.number())
    }

    /// An address in its client's network, by its last byte.
    fn host(self, mechanism: Mechanism, family: Family, last: u8) -> IpAddr {
        match family {
            Family::Ipv4 => Ipv4Addr::new(198, 18, self.number(), last).into(),
            Family::Ipv6 => Ipv6Addr::from(u128::from(self.network_v6(mechanism)) | u128::from(last)).into(),
        }
    }

    pub(crate) fn network(self, mechanism: Mechanism, family: Family) -> (IpAddr, u8) {
        (self.host(mechanism, family, 0), prefix_bits(family))
    }

    pub(crate) fn client_address(self, mechanism: Mechanism, family: Family) -> IpAddr {
        self.host(mechanism, family, 1)
    }

    pub(crate) fn gateway(self, mechanism: Mechanism, family: Family) -> IpAddr {
        self.host(mechanism, family, 254)
    }

    /// Its client's addresses, IPv4 first.
    pub fn client_addresses(self, mechanism: Mechanism) -> [IpAddr; 2] {
        FAMILIES.map(|family| self.client_address(mechanism, family))
    }

    /// Its router's addresses on the client's network, IPv4 first.
    pub fn gateways(self, mechanism: Mechanism) -> [IpAddr; 2] {
        FAMILIES.map(|family| self.gateway(mechanism, family))
    }

    /// The address that its client uses for the other client, with the path MTU to it for this MTU of the middle
    /// link: one for each of the sender's families that is carried.
    pub(crate) fn paths(self, mechanism: Mechanism, mtu: u32) -> Vec<(IpAddr, u32)> {
        let paths = Family::ALL.iter().filter_map(|family| {
            let (ends, [there, back]) = ends(mechanism, *family).zip(path_mtus(mechanism, *family, mtu))?;
            Some(match self {
                Site::Near => (ends.destination, there),
                Site::Far => (ends.source, back),
            })
        });
        paths.collect()
    }

    /// 2001:2:0:SITE::/64. If routers derive each other's address from the destination, the prefix that the mechanism
    /// defines, followed by the site's number if there is room: 2002:V4ADDR:SITE::/64 with 6to4.
    fn network_v6(self, mechanism: Mechanism) -> Ipv6Addr {
        let site = u16::from(self.number());
        let remote = mechanism.tunnel().map(|tunnel| tunnel.remote);
        let Some(Remote::InDestination { prefix, common }) = remote else {
            return Ipv6Addr::new(0x2001, 2, 0, site, 0, 0, 0, 0);
        };
        let own = u32::from(self.outer_v4()) & u32::MAX.checked_shr(common.1.into()).unwrap_or(0);
        let length = u32::from(prefix.1) + 32 - u32::from(common.1);
        let subnet = if length < 64 { u128::from(site) << 64 } else { 0 };
        Ipv6Addr::from(u128::from(prefix.0) | u128::from(own) << (128 - length) | subnet)
    }
}

/// The addresses of a trial's two ends, as each end has them and as the other end sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathEnds {
    /// The sender's own address.
    pub sender: IpAddr,
    /// The receiver's own address.
    pub receiver: IpAddr,
    /// The receiver's address as seen by the sender.
    pub destination: IpAddr,
    /// The sender's address as seen by the receiver.
    pub source: IpAddr,
}

/// The two ends of a trial for a family of the sender. `None` if the mechanism does not carry that family.
pub fn ends(mechanism: Mechanism, family: Family) -> Option<PathEnds> {
    if !mechanism.carries(family) {
        return None;
    }
    let sender = Site::Near.client_address(mechanism, family);
    let same = Site::Far.client_address(mechanism, family);
    let v4 = Site::Far.client_address(mechanism, Family::Ipv4);
    let v6 = Site::Far.client_address(mechanism, Family::Ipv6);
    let pool = POOL_HOST.into();
    let (receiver, destination, source) = match mechanism.translation() {
        Some(Translation::Far) => (v4, embed_v4(v4), pool),
        Some(Translation::Near) => (v6, pool, embed_v4(sender)),
        Some(Translation::Both) => (v4, v4, changed_source(mechanism, family).unwrap_or(pool)),
        None => (same, same, changed_source(mechanism, family).unwrap_or(sender)),
    };
    Some(PathEnds { sender, receiver, destination, source })
}

fn embed_v4(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) => embed_address(address).into(),
        other => other,
    }
}

/// The sender's address behind a router's NAT, if the mechanism has one.
fn changed_source(mechanism: Mechanism, family: Family) -> Option<IpAddr> {
    match (mechanism.nat(), mechanism.sharing()) {
        (Some(Nat::Masquerade), _) => Some(Site::Near.outer(family)),
        (Some(Nat::Prefix), _) => Some(NPT_HOST.into()),
        (None, Some(Sharing::AtFarRouter)) => Some(Site::Far.gateway(mechanism, family)),
        (None, Some(Sharing::AtNearRouter(_))) => Some(SHARED.into()),
        (None, None) => None,
    }
}

/// The path MTU of each end towards the other, the sender's first, for links with this MTU.
pub(crate) fn path_mtus(mechanism: Mechanism, family: Family, mtu: u32) -> Option<[u32; 2]> {
    let there = mechanism.leaves(family, mtu)?;
    let receiver = Family::of(ends(mechanism, family)?.receiver);
    // A translator does not fragment packets that become smaller.
    Some([there, mechanism.reverse().leaves(receiver, mtu)?])
}

pub(crate) fn embed_address(address: Ipv4Addr) -> Ipv6Addr {
    let [a, b, c, d] = address.octets().map(u16::from);
    let mut words = TRANSLATED.0.segments();
    (words[6], words[7]) = (a << 8 | b, c << 8 | d);
    Ipv6Addr::from(words)
}

/// The hardware address of an interface of a routed testbed: locally administered, the same in every testbed.
pub(crate) fn routed_hardware_address(node: Node, interface: &str) -> [u8; 6] {
    let place = Node::ALL.iter().position(|n| *n == node).unwrap_or(0);
    let last = match interface {
        MIDDLE => 1,
        TUNNEL => 2,
        _ => 0,
    };
    [0x02, 0, 0, 1, place as u8, last]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mechanism_has_ends_for_what_it_carries() {
        for mechanism in Mechanism::ALL {
            for family in Family::ALL {
                let ends = ends(*mechanism, *family);
                assert_eq!(ends.is_some(), mechanism.carries(*family), "{mechanism} {family}");
                let Some(ends) = ends else { continue };
                assert_eq!(Family::of(ends.sender), *family);
                assert_eq!(Family::of(ends.sender), Family::of(ends.destination));
                assert_eq!(Family::of(ends.receiver), Family::of(ends.source));
                let changed = ends.destination != ends.receiver || ends.source != ends.sender;
                assert_eq!(changed, mechanism.translates() || mechanism.changes_source(), "{mechanism}");
            }
        }
    }

    fn list_paths(site: Site, mechanism: Mechanism) -> Vec<String> {
        site.paths(mechanism, 1500).iter().map(|(to, mtu)| format!("{to} {mtu}")).collect()
    }

    #[test]
    fn each_client_knows_the_path_mtu_to_the_other() {
        assert_eq!(list_paths(Site::Near, Mechanism::Native), ["198.18.2.1 1500", "2001:2:0:2::1 1500"]);
        assert_eq!(list_paths(Site::Far, Mechanism::Native), ["198.18.1.1 1500", "2001:2:0:1::1 1500"]);
        // Each client uses its own family. The path MTU is smaller where IPv4 becomes IPv6.
        assert_eq!(list_paths(Site::Near, Mechanism::Nat64), ["2001:2:0:64::c612:201 1500"]);
        assert_eq!(list_paths(Site::Far, Mechanism::Nat64), ["198.18.64.2 1480"]);
        assert_eq!(list_paths(Site::Near, Mechanism::Siit), ["198.18.64.2 1480"]);
        assert_eq!(list_paths(Site::Far, Mechanism::Siit), ["2001:2:0:64::c612:101 1500"]);
        assert_eq!(list_paths(Site::Far, Mechanism::Xlat464), ["198.18.64.2 1480"]);
        assert_eq!(list_paths(Site::Far, Mechanism::MapTranslation), ["198.18.67.18 1480"]);
    }

    #[test]
    fn addresses_are_those_that_the_mechanisms_ask_for() {
        let six_to_four = ends(Mechanism::SixToFour, Family::Ipv6).unwrap();
        assert_eq!(six_to_four.sender.to_string(), "2002:c612:1:1::1");
        for other in [Mechanism::SixInFour, Mechanism::SixRd] {
            assert_eq!(ends(other, Family::Ipv6).unwrap().sender.to_string(), "2001:2:0:1::1");
        }
        let nat64 = ends(Mechanism::Nat64, Family::Ipv6).unwrap();
        assert_eq!(nat64.destination.to_string(), "2001:2:0:64::c612:201");
        assert_eq!(path_mtus(Mechanism::Nat64, Family::Ipv6, 1500), Some([1500, 1480]));
        assert_eq!(path_mtus(Mechanism::Siit, Family::Ipv4, 1500), Some([1480, 1500]));
        assert_eq!(path_mtus(Mechanism::Gre6, Family::Ipv4, 1500), Some([1456, 1456]));
    }

    #[test]
    fn every_host_has_an_address_of_each_family() {
        let map = Role::ALL.iter().flat_map(|role| {
            Family::ALL.iter().map(move |family| {
                let (address, prefix) = address(*family, *role);
                assert_eq!(Family::of(address), *family);
                format!("{role} {address}/{prefix}")
            })
        });
        assert_eq!(
            map.collect::<Vec<_>>(),
            [
                "sender 198.18.0.1/24",
                "sender 2001:2:0:1::1/64",
                "receiver 198.18.0.2/24",
                "receiver 2001:2:0:1::2/64",
            ]
        );
    }

    #[test]
    fn hardware_addresses_are_local_unicast_and_differ() {
        for role in Role::ALL {
            assert_eq!(hardware_address(*role)[0] & 0b11, 0b10);
            assert_ne!(hardware_address(*role), hardware_address(peer(*role)));
            let bridged = bridged_address(hardware_address(*role));
            assert_eq!(hardware_address_text(bridged)[..15], *"06:00:00:00:00:");
        }
    }
}
