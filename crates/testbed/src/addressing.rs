//! The addresses of all hosts, the routes of each mechanism's packets, and the translation of addresses. All
//! addresses are from the networks for benchmarks (RFC 2544, RFC 5180), except 6to4, which has its own prefix.

use crate::{CustomerId, Node};
use serde::{Deserialize, Serialize};
use stacklab_model::{Family, Mechanism, Remote, Role};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A host's interface: a client's only one, or a router's interface towards its client.
pub const INTERFACE: &str = "st0";
/// A router's interface on the middle link.
pub const MIDDLE: &str = "st1";
/// The access point's bridge between its network and a wire.
pub const BRIDGE: &str = "br0";
/// A router's tunnel device, or its translator's device.
pub const TUNNEL: &str = "tunnel";
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
pub(crate) const NPT_HOST: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0, 0x101, 0, 0, 0, 1);
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

    /// Its router's address on a customer's middle link.
    pub(crate) fn outer(self, customer: CustomerId, family: Family) -> IpAddr {
        middle_address(customer, family, self.number())
    }

    /// Its router's address on a tunnel that carries Ethernet frames, and the length of the prefix there.
    pub(crate) fn tunnel_end(self, family: Family) -> (IpAddr, u8) {
        let address = match family {
            Family::Ipv4 => Ipv4Addr::new(198, 18, 66, self.number()).into(),
            Family::Ipv6 => Ipv6Addr::new(0x2001, 2, 0, 0x7e, 0, 0, 0, self.number().into()).into(),
        };
        (address, prefix_bits(family))
    }

    /// An address in its client's network, by its last byte.
    fn host(self, customer: CustomerId, mechanism: Mechanism, family: Family, last: u8) -> IpAddr {
        match family {
            Family::Ipv4 => Ipv4Addr::new(198, 18, self.octet(customer, mechanism), last).into(),
            Family::Ipv6 => {
                Ipv6Addr::from(u128::from(self.network_v6(customer, mechanism)) | u128::from(last)).into()
            }
        }
    }

    /// The third byte of the addresses in its client's network. Customers behind a shared address have the same
    /// private ones: the provider's router must keep them apart by what they come through.
    fn octet(self, customer: CustomerId, mechanism: Mechanism) -> u8 {
        match self {
            Site::Near if mechanism.sharing().is_none() => customer.near_octet(),
            Site::Near | Site::Far => self.number(),
        }
    }

    pub(crate) fn network(self, customer: CustomerId, mechanism: Mechanism, family: Family) -> (IpAddr, u8) {
        (self.host(customer, mechanism, family, 0), prefix_bits(family))
    }

    pub(crate) fn client_address(self, customer: CustomerId, mechanism: Mechanism, family: Family) -> IpAddr {
        if self.is_client_on_middle_link(mechanism) {
            return middle_address(customer, family, CONTAINER);
        }
        self.host(customer, mechanism, family, 1)
    }

    /// Whether its client is beside its router, and not behind it.
    pub(crate) fn is_client_on_middle_link(self, mechanism: Mechanism) -> bool {
        self == Site::Far && mechanism.is_on_middle_link()
    }

    /// The address to which its client sends what is for others, and the hardware address there.
    pub(crate) fn next_hop(
        self,
        customer: CustomerId,
        mechanism: Mechanism,
        family: Family,
    ) -> (IpAddr, [u8; 6]) {
        if self.is_client_on_middle_link(mechanism) {
            let other = self.other();
            let hardware = customer_hardware_address(customer, other.router(), MIDDLE);
            return (other.outer(customer, family), hardware);
        }
        let hardware = customer_hardware_address(customer, self.router(), INTERFACE);
        (self.gateway(customer, mechanism, family), hardware)
    }

    pub(crate) fn gateway(self, customer: CustomerId, mechanism: Mechanism, family: Family) -> IpAddr {
        self.host(customer, mechanism, family, 254)
    }

    /// Its client's addresses, IPv4 first; the first customer's of several.
    pub fn client_addresses(self, mechanism: Mechanism) -> [IpAddr; 2] {
        FAMILIES.map(|family| self.client_address(CustomerId::FIRST, mechanism, family))
    }

    /// Its router's addresses on the client's network, IPv4 first; the first customer's of several.
    pub fn gateways(self, mechanism: Mechanism) -> [IpAddr; 2] {
        FAMILIES.map(|family| self.gateway(CustomerId::FIRST, mechanism, family))
    }

    /// 2001:2:0:SITE::/64. If routers derive each other's address from the destination, the prefix that the mechanism
    /// defines, followed by the site's number if there is room: 2002:V4ADDR:SITE::/64 with 6to4.
    fn network_v6(self, customer: CustomerId, mechanism: Mechanism) -> Ipv6Addr {
        let site = u16::from(self.octet(customer, mechanism));
        let remote = mechanism.tunnel().map(|tunnel| tunnel.remote);
        let Some(Remote::InDestination { prefix, common }) = remote else {
            return Ipv6Addr::new(0x2001, 2, 0, site, 0, 0, 0, 0);
        };
        let own = u32::from(Ipv4Addr::new(198, 18, 0, self.number()))
            & u32::MAX.checked_shr(common.1.into()).unwrap_or(0);
        let length = u32::from(prefix.1) + 32 - u32::from(common.1);
        let subnet = if length < 64 { u128::from(site) << 64 } else { 0 };
        Ipv6Addr::from(u128::from(prefix.0) | u128::from(own) << (128 - length) | subnet)
    }
}

/// The last byte of the addresses of a container on the middle link.
const CONTAINER: u8 = 3;

/// An address on a customer's middle link, by its last byte.
fn middle_address(customer: CustomerId, family: Family, last: u8) -> IpAddr {
    match family {
        Family::Ipv4 => Ipv4Addr::new(198, 18, customer.middle_octet(), last).into(),
        Family::Ipv6 => Ipv6Addr::new(0x2001, 2, 0, customer.middle_word(), 0, 0, 0, last.into()).into(),
    }
}

/// The hardware address of an interface of a routed testbed: locally administered, the same in every testbed.
pub(crate) fn routed_hardware_address(node: Node, interface: &str) -> [u8; 6] {
    customer_hardware_address(CustomerId::FIRST, node, interface)
}

/// The same at the links of a customer. Interfaces have the names that they have at its router.
pub(crate) fn customer_hardware_address(customer: CustomerId, node: Node, interface: &str) -> [u8; 6] {
    let place = Node::ALL.iter().position(|n| *n == node).unwrap_or(0);
    let last = match interface {
        MIDDLE => 1,
        TUNNEL => 2,
        _ => 0,
    };
    [0x02, 0, 0, customer.number(), place as u8, last]
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_client_on_the_middle_link_is_beside_routers() {
        let first = CustomerId::FIRST;
        assert_eq!(list_paths(Site::Near, Mechanism::Macvlan), ["198.18.0.3 1500", "2001:2:0:ffff::3 1500"]);
        let (next, hardware) = Site::Far.next_hop(first, Mechanism::Macvlan, Family::Ipv4);
        assert_eq!(next, Site::Near.outer(first, Family::Ipv4));
        assert_eq!(hardware, routed_hardware_address(Node::Router1, MIDDLE));
        let (next, hardware) = Site::Near.next_hop(first, Mechanism::Macvlan, Family::Ipv4);
        assert_eq!(next, Site::Near.gateway(first, Mechanism::Macvlan, Family::Ipv4));
        assert_eq!(hardware, routed_hardware_address(Node::Router1, INTERFACE));
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
