//! DS-Lite, lw4o6 and MAP: what shares an IPv4 address at an end of a softwire, as rules of nftables. The tunnel or the
//! translator is there already.

use crate::addressing::{SHARED, TUNNEL};
use crate::kernel::netlink::Route;
use crate::mechanism::nat::{add_rules, write_rules, write_source_change};
use crate::{Fault, INTERFACE, Router, Site};
use stacklab_model::{Family, Nat, PortSet, Sharing};
use std::net::Ipv6Addr;

/// The customer's range of ports with lw4o6, first and last.
const RANGE: [u16; 2] = [1024, 2047];
/// The customer's number with MAP, and how many bits of a port are before, and in, such a number. The rest of the
/// bits counts within it (RFC 7597, appendix A, example 1).
const PSID: u16 = 0x34;
const OFFSET_BITS: u32 = 6;
const PSID_BITS: u32 = 8;
const REST_BITS: u32 = 16 - OFFSET_BITS - PSID_BITS;

/// The customer's network on the middle link with MAP-T: its number follows the provider's prefix (RFC 7597, section
/// 5.2).
pub(crate) const CUSTOMER: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2001, 2, 0, PSID << 8, 0, 0, 0, 0), 56);

/// The customer's address there, with the shared address and the number at its end (RFC 7597, section 6).
pub(crate) fn customer_host() -> Ipv6Addr {
    let end = u128::from(SHARED.to_bits()) << 16 | u128::from(PSID);
    Ipv6Addr::from(u128::from(CUSTOMER.0) | end)
}

pub(crate) fn build(router: &Router, sharing: Sharing) -> Result<(), Fault> {
    match (sharing, router.site) {
        (Sharing::AtFarRouter, Site::Near) => Ok(()),
        // What all customers send leaves from the far router's own address.
        (Sharing::AtFarRouter, Site::Far) => {
            add_rules(&write_rules(Nat::Masquerade, &[Family::Ipv4], INTERFACE))
        }
        (Sharing::AtNearRouter(ports), site) => {
            if site == Site::Far {
                Route { to: (SHARED.into(), 32), device: TUNNEL, via: None, mtu: None }.add()?;
            }
            share_at_near_router(site, ports)
        }
    }
}

/// What this router does with ports where the near one is the NAT.
pub(crate) fn share_at_near_router(site: Site, ports: PortSet) -> Result<(), Fault> {
    match site {
        Site::Near => add_rules(&write_near_nat(ports)),
        Site::Far => add_rules(&write_relay(ports)),
    }
}

/// What the customer sends leaves from its ports of the shared address. An echo request has a number for a port.
fn write_near_nat(ports: PortSet) -> String {
    let change = match ports {
        PortSet::Range => format!("snat to {SHARED}:{}-{}", RANGE[0], RANGE[1]),
        PortSet::Psid => {
            let ranges = list_ranges();
            let mut elements = Vec::new();
            for (number, [first, last]) in ranges.iter().enumerate() {
                elements.push(format!("{number} : {SHARED} . {first}-{last}"));
            }
            let elements = elements.join(", ");
            format!("snat ip addr . port to numgen inc mod {} map {{ {elements} }}", ranges.len())
        }
    };
    write_source_change(Family::Ipv4, TUNNEL, &format!("meta l4proto {{ tcp, udp, icmp }} {change}"))
}

/// The far router passes only what comes from the customer's ports, or goes to them. Of fragments only the first has
/// ports.
fn write_relay(ports: PortSet) -> String {
    let [from, to] = ["sport", "dport"].map(|port| match ports {
        PortSet::Range => format!("th {port} != {}-{}", RANGE[0], RANGE[1]),
        PortSet::Psid => {
            let mask = ((1_u32 << PSID_BITS) - 1) << REST_BITS;
            format!("th {port} & {mask} != {}", u32::from(PSID) << REST_BITS)
        }
    });
    format!(
        "add table ip stacklab\n\
         add chain ip stacklab relay {{ type filter hook forward priority filter; }}\n\
         add rule ip stacklab relay iifname \"{TUNNEL}\" ip saddr != {SHARED} drop\n\
         add rule ip stacklab relay ip frag-off & 0x1fff != 0 accept\n\
         add rule ip stacklab relay iifname \"{TUNNEL}\" meta l4proto {{ tcp, udp }} {from} drop\n\
         add rule ip stacklab relay oifname \"{TUNNEL}\" meta l4proto {{ tcp, udp }} {to} drop\n"
    )
}

/// The ranges of ports with the customer's number. The first, of the well-known ports, is left out.
fn list_ranges() -> Vec<[u16; 2]> {
    let mut ranges = Vec::new();
    for offset in 1..1_u16 << OFFSET_BITS {
        let first = offset << (16 - OFFSET_BITS) | PSID << REST_BITS;
        ranges.push([first, first + (1 << REST_BITS) - 1]);
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_sets_are_those_of_the_rfc() {
        let ranges = list_ranges();
        assert_eq!((ranges.len(), ranges[0], ranges[1]), (63, [1232, 1235], [2256, 2259]));
        assert_eq!(ranges[62], [64720, 64723]);
        let relay = write_relay(PortSet::Psid);
        assert!(
            relay.contains("th sport & 1020 != 208 drop") && relay.contains("th dport & 1020 != 208"),
            "{relay}"
        );
        for [first, last] in ranges {
            assert!(first & 1020 == 208 && last & 1020 == 208, "{first} to {last}");
        }
    }

    #[test]
    fn the_customers_address_has_its_number_twice() {
        assert_eq!(customer_host().to_string(), "2001:2:0:3400:0:c612:4312:34");
    }

    #[test]
    fn the_customer_uses_its_ports_alone() {
        assert!(write_near_nat(PortSet::Range).contains("snat to 198.18.67.18:1024-2047"));
        let rules = write_near_nat(PortSet::Psid);
        assert!(rules.contains("numgen inc mod 63 map { 0 : 198.18.67.18 . 1232-1235, 1 :"), "{rules}");
        assert!(write_relay(PortSet::Range).contains("th sport != 1024-2047 drop"));
    }
}
