//! Who has which address. Both networks are set aside for benchmarks, so no real network is hidden by them.

use stacklab_model::{Family, Role};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The name of the link's interface, the same on both hosts.
pub(crate) const INTERFACE: &str = "st0";

/// A host's address on the link, and the length of the link's prefix: 198.18.0.0/15 is for benchmarks by RFC 2544,
/// 2001:2::/48 by RFC 5180.
pub(crate) fn address(family: Family, role: Role) -> (IpAddr, u8) {
    let number = number(role);
    match family {
        Family::Ipv4 => (Ipv4Addr::new(198, 18, 0, number).into(), 24),
        Family::Ipv6 => (Ipv6Addr::new(0x2001, 2, 0, 1, 0, 0, 0, number.into()).into(), 64),
    }
}

/// A host's addresses on the link.
pub(crate) fn addresses(role: Role) -> Vec<IpAddr> {
    Family::ALL.iter().map(|family| address(*family, role).0).collect()
}

/// A host's hardware address: locally administered, and the same in every testbed, so that the neighbour entries
/// can be written before the interfaces exist.
pub(crate) fn hardware_address(role: Role) -> [u8; 6] {
    [0x02, 0, 0, 0, 0, number(role)]
}

/// A hardware address as text, as virtual machines take it: `02:00:00:00:00:01`.
pub(crate) fn hardware_address_text(address: [u8; 6]) -> String {
    address.map(|byte| format!("{byte:02x}")).join(":")
}

/// The hardware address of an end of a link that is bridged to a guest, whose interface has the host's own.
pub(crate) fn bridged_address(own: [u8; 6]) -> [u8; 6] {
    let mut other = own;
    other[0] |= 0x04;
    other
}

/// The host at the other end of the link.
pub(crate) fn peer(role: Role) -> Role {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_has_an_address_of_every_family_in_one_prefix() {
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
