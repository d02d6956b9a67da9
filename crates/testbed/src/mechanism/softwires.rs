//! DS-Lite, lw4o6 and MAP: what shares an IPv4 address at an end of a softwire, as rules of nftables. The tunnel or the
//! translator is there already.

use crate::addressing::{SHARED, TUNNEL};
use crate::kernel::netlink::Route;
use crate::kernel::rule::{Selector, add_rule};
use crate::mechanism::nat::{add_rules, write_rules, write_source_change};
use crate::{CustomerId, Fault, INTERFACE, Router, Site};
use stacklab_model::{CustomerPorts, Family, Mechanism, Nat, PortSet, Sharing};
use std::net::Ipv6Addr;

/// The first port of the first customer's range with lw4o6.
const FIRST_PORT: u16 = 1024;
/// The first customer's number with MAP, and how many bits of a port are before, and in, such a number. The rest of the
/// bits counts within it (RFC 7597, appendix A, example 1).
const PSID: u16 = 0x34;
const OFFSET_BITS: u32 = 6;
const PSID_BITS: u32 = 8;
const REST_BITS: u32 = 16 - OFFSET_BITS - PSID_BITS;

/// The bits of a port with the customer's number.
const PSID_MASK: u16 = ((1 << PSID_BITS) - 1) << REST_BITS;

/// The customer's network on the middle link with MAP-T: its number follows the provider's prefix (RFC 7597, section
/// 5.2).
pub(crate) const CUSTOMER: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2001, 2, 0, PSID << 8, 0, 0, 0, 0), 56);

/// The customer's address there, with the shared address and the number at its end (RFC 7597, section 6).
pub(crate) fn customer_host() -> Ipv6Addr {
    let end = u128::from(SHARED.to_bits()) << 16 | u128::from(PSID);
    Ipv6Addr::from(u128::from(CUSTOMER.0) | end)
}

/// The ports that a customer has of its address.
pub(crate) fn choose_ports(customer: CustomerId, mechanism: Mechanism) -> CustomerPorts {
    match mechanism.sharing() {
        Some(Sharing::AtNearRouter(ports)) => choose_set(customer, ports),
        Some(Sharing::AtFarRouter) | None => CustomerPorts::Any,
    }
}

fn choose_set(customer: CustomerId, ports: PortSet) -> CustomerPorts {
    let place = u16::from(customer.number()) - 1;
    match ports {
        PortSet::Range => {
            let first = FIRST_PORT + place * ports.count();
            CustomerPorts::Range { first, last: first + (ports.count() - 1) }
        }
        PortSet::Psid => CustomerPorts::Masked { mask: PSID_MASK, bits: (PSID + place) << REST_BITS },
    }
}

pub(crate) fn build(router: &Router, sharing: Sharing) -> Result<(), Fault> {
    if router.site == Site::Far && router.customers > 1 {
        choose_tables(router)?;
    }
    match (sharing, router.site) {
        (Sharing::AtFarRouter, Site::Near) => Ok(()),
        // What all customers send leaves from the far router's own address.
        (Sharing::AtFarRouter, Site::Far) => {
            let mut rules = write_rules(Nat::Masquerade, &[Family::Ipv4], INTERFACE);
            if router.customers > 1 {
                rules += &write_zones(&router.list_links());
            }
            add_rules(&rules)
        }
        (Sharing::AtNearRouter(ports), Site::Near) => share_at_near_router(router, ports),
        (Sharing::AtNearRouter(ports), Site::Far) => {
            for link in router.list_links() {
                let route = Route { to: (SHARED.into(), 32), device: link.tunnel(), via: None, mtu: None };
                route.add_to_table(link.customer_table())?;
            }
            share_at_near_router(router, ports)
        }
    }
}

/// What this router does with ports where the near one is the NAT.
pub(crate) fn share_at_near_router(router: &Router, ports: PortSet) -> Result<(), Fault> {
    match router.site {
        Site::Near => add_rules(&write_near_nat(choose_set(router.customer, ports))),
        Site::Far => {
            let links = router.list_links();
            let choice = if links.len() > 1 { write_choice(&links, ports) } else { String::new() };
            add_rules(&(write_relay(&links, ports) + &choice))
        }
    }
}

/// A mark chooses the table of a customer's routes.
fn choose_tables(router: &Router) -> Result<(), Fault> {
    for customer in CustomerId::list(router.customers) {
        add_rule(Family::Ipv4, Selector::Mark(customer.mark()), customer.table())?;
    }
    Ok(())
}

/// Customers with the same addresses: each softwire is a zone of connection tracking, so that their connections do
/// not mix, and what comes back is marked with the customer whose connection it is of.
fn write_zones(links: &[Router]) -> String {
    let marks = write_map(links, |link| format!("\"{}\"", link.tunnel()));
    format!(
        "add chain ip stacklab zones {{ type filter hook prerouting priority raw; }}\n\
         add rule ip stacklab zones ct original zone set iifname map {marks}\n\
         add chain ip stacklab marks {{ type filter hook prerouting priority mangle; }}\n\
         add rule ip stacklab marks ct mark set iifname map {marks}\n\
         add rule ip stacklab marks iifname \"{INTERFACE}\" meta mark set ct mark\n"
    )
}

/// The far router chooses the customer by the port, and keeps no state. An answer to an echo has a number for a port,
/// and an error has the packet's own port behind its headers.
fn write_choice(links: &[Router], ports: PortSet) -> String {
    let marks = write_map(links, |link| write_set(choose_set(link.customer, ports)));
    let mask = match ports {
        PortSet::Range => String::new(),
        PortSet::Psid => format!(" & {PSID_MASK}"),
    };
    let mut rules =
        "add chain ip stacklab choice { type filter hook prerouting priority mangle; }\n".to_owned();
    for (packets, port) in [
        ("meta l4proto { tcp, udp }", "th dport"),
        ("icmp type echo-reply", "@th,32,16"),
        ("icmp type { destination-unreachable, time-exceeded, parameter-problem }", "@th,224,16"),
    ] {
        rules += &format!(
            "add rule ip stacklab choice ip daddr {SHARED} {packets} meta mark set {port}{mask} map {marks}\n"
        );
    }
    rules
}

/// The ports of a customer as a key of a map.
fn write_set(ports: CustomerPorts) -> String {
    match ports {
        CustomerPorts::Range { first, last } => format!("{first}-{last}"),
        CustomerPorts::Masked { bits, .. } => bits.to_string(),
        CustomerPorts::Any => "0-65535".to_owned(),
    }
}

/// A map to the customers' marks.
fn write_map(links: &[Router], key: impl Fn(&Router) -> String) -> String {
    let elements: Vec<String> =
        links.iter().map(|link| format!("{} : {}", key(link), link.customer.mark())).collect();
    format!("{{ {} }}", elements.join(", "))
}

/// What the customer sends leaves from its ports of the shared address. An echo request has a number for a port.
fn write_near_nat(ports: CustomerPorts) -> String {
    let change = match ports {
        CustomerPorts::Any => format!("snat to {SHARED}"),
        CustomerPorts::Range { first, last } => format!("snat to {SHARED}:{first}-{last}"),
        CustomerPorts::Masked { bits, .. } => {
            let ranges = list_ranges(bits);
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
fn write_relay(links: &[Router], ports: PortSet) -> String {
    let mut rules = "add table ip stacklab\n\
                     add chain ip stacklab relay { type filter hook forward priority filter; }\n"
        .to_owned();
    for link in links {
        let tunnel = link.tunnel();
        rules += &format!("add rule ip stacklab relay iifname \"{tunnel}\" ip saddr != {SHARED} drop\n");
    }
    rules += "add rule ip stacklab relay ip frag-off & 0x1fff != 0 accept\n";
    for link in links {
        rules += &write_check(link.tunnel(), choose_set(link.customer, ports));
    }
    rules
}

/// Of the ports of a customer's tunnel.
fn write_check(tunnel: &str, ports: CustomerPorts) -> String {
    let mut rules = String::new();
    for (direction, port) in [("iifname", "sport"), ("oifname", "dport")] {
        let is_other = match ports {
            CustomerPorts::Any => continue,
            CustomerPorts::Range { first, last } => format!("th {port} != {first}-{last}"),
            CustomerPorts::Masked { mask, bits } => format!("th {port} & {mask} != {bits}"),
        };
        let packets = format!("{direction} \"{tunnel}\" meta l4proto {{ tcp, udp }}");
        rules += &format!("add rule ip stacklab relay {packets} {is_other} drop\n");
    }
    rules
}

/// The ranges of ports with a customer's number, which these bits are. The first, of the well-known ports, is left out.
fn list_ranges(bits: u16) -> Vec<[u16; 2]> {
    let mut ranges = Vec::new();
    for offset in 1..1_u16 << OFFSET_BITS {
        let first = offset << (16 - OFFSET_BITS) | bits;
        ranges.push([first, first + (1 << REST_BITS) - 1]);
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::Translator;

    fn list_links(mechanism: Mechanism, customers: u32) -> Vec<Router> {
        let router = Router::of_chain(Site::Far, mechanism, 1500, Translator::Tayga);
        Router { customers, ..router }.list_links()
    }

    #[test]
    fn the_port_chooses_the_customer() {
        let rules = write_choice(&list_links(Mechanism::Lw4o6, 2), PortSet::Range);
        assert!(rules.contains("meta mark set th dport map { 1024-2047 : 1, 2048-3071 : 2 }"), "{rules}");
        let rules = write_choice(&list_links(Mechanism::MapEncapsulation, 2), PortSet::Psid);
        assert!(rules.contains("meta mark set th dport & 1020 map { 208 : 1, 212 : 2 }"), "{rules}");
        let rules = write_relay(&list_links(Mechanism::Lw4o6, 2), PortSet::Range);
        assert!(rules.contains("iifname \"tunnel-2\" meta l4proto { tcp, udp } th sport != 2048-3071 drop"));
    }

    #[test]
    fn a_softwire_is_a_zone() {
        let rules = write_zones(&list_links(Mechanism::DsLite, 2));
        let map = "{ \"tunnel\" : 1, \"tunnel-2\" : 2 }";
        assert!(rules.contains(&format!("ct original zone set iifname map {map}")), "{rules}");
    }

    #[test]
    fn port_sets_are_those_of_the_rfc() {
        let ranges = list_ranges(PSID << REST_BITS);
        assert_eq!((ranges.len(), ranges[0], ranges[1]), (63, [1232, 1235], [2256, 2259]));
        assert_eq!(ranges[62], [64720, 64723]);
        let relay = write_relay(&list_links(Mechanism::MapEncapsulation, 1), PortSet::Psid);
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
    fn each_customer_has_as_many_ports_as_its_set() {
        for ports in [PortSet::Range, PortSet::Psid] {
            for customer in CustomerId::list(16) {
                let set = choose_set(customer, ports);
                let count = (0..=u16::MAX).filter(|port| set.contain(*port)).count();
                assert_eq!(count, usize::from(ports.count()), "{set}");
            }
        }
    }

    #[test]
    fn the_customer_uses_its_ports_alone() {
        let first = CustomerId::FIRST;
        assert!(write_near_nat(choose_set(first, PortSet::Range)).contains("snat to 198.18.67.18:1024-2047"));
        let rules = write_near_nat(choose_set(first, PortSet::Psid));
        assert!(rules.contains("numgen inc mod 63 map { 0 : 198.18.67.18 . 1232-1235, 1 :"), "{rules}");
        let relay = write_relay(&list_links(Mechanism::Lw4o6, 1), PortSet::Range);
        assert!(relay.contains("th sport != 1024-2047 drop"));
    }
}
