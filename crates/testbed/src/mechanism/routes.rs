//! Further routes on a router: what passes is looked up among them. No packet of a study has one of their networks, but
//! for those to several destinations. The kernel's own count proves that they are there.

use crate::kernel::batch::RequestBatch;
use crate::kernel::genl::message::{attribute, number};
use crate::kernel::memory::MemoryWatch;
use crate::kernel::netlink::index;
use crate::mechanism::destinations::find_next_hop;
use crate::{Attempt, Fault, INTERFACE, MIDDLE, Router};
use nix::sys::socket::SockProtocol;
use stacklab_model::{Family, Prefix, Table, available_memory, list_prefixes};
use std::fs;
use std::net::IpAddr;

/// What a route of both families takes at most, bytes.
const ROUTE_BYTES: u64 = 1000;

/// The request for a new route (`RTM_NEWROUTE`), and its attributes (linux/rtnetlink.h).
const NEW_ROUTE: u16 = 24;
const DESTINATION: u16 = 1;
const DEVICE: u16 = 4;
const GATEWAY: u16 = 5;
/// `struct rtmsg` after family and prefix length: no source, no TOS, main table, static, everywhere, unicast.
const KIND: [u8; 6] = [0, 0, 254, 4, 0, 1];

/// Routes that the kernel may add meanwhile, to addresses and groups of an interface whose link it finds to be up.
const MAX_OWN_ROUTES: u64 = 16;

/// Adds the router's further routes: to its client, or, for several destinations, to the other router. None may be
/// there already, and each family's count must rise by as many.
pub(crate) fn build(router: &Router, memory: &mut MemoryWatch) -> Result<(), Fault> {
    let routes = router.tables.routes;
    if routes == 0 {
        return Ok(());
    }
    check_memory(routes)?;
    let mut before = Vec::new();
    for family in Family::ALL {
        before.push(count_routes(*family)?);
    }
    memory.add_to_both(Table::Routes, routes, |family, numbers| {
        let device = if router.tables.destinations > 1 { MIDDLE } else { INTERFACE };
        let via = match device {
            MIDDLE => find_next_hop(router, family),
            _ => router.site.client_address(router.customer, router.mechanism, family),
        };
        let prefixes = list_prefixes(family, routes);
        let numbers = numbers.start as usize..numbers.end as usize;
        add_routes(&prefixes[numbers], device, via).attempt(format!("add {routes} {family} routes"))
    })?;
    for (family, before) in Family::ALL.iter().zip(before) {
        let added = check_count(before, count_routes(*family)?, routes);
        added.attempt(format!("add {routes} {family} routes"))?;
    }
    Ok(())
}

fn check_count(before: u64, after: u64, asked: u32) -> Result<(), String> {
    let added = after.saturating_sub(before);
    let asked = u64::from(asked);
    if (asked..=asked + MAX_OWN_ROUTES).contains(&added) {
        return Ok(());
    }
    Err(format!("the kernel counts {added} of them"))
}

fn add_routes(prefixes: &[Prefix], device: &str, via: IpAddr) -> Result<(), Fault> {
    let device = index(device)?;
    let mut batch = RequestBatch::open(SockProtocol::NetlinkRoute).attempt("open a netlink socket")?;
    for Prefix { address, length } in prefixes {
        let route = write_route(*address, *length, via, device);
        batch.create(NEW_ROUTE, &route).attempt(format!("add a route before {address}/{length}"))?;
    }
    batch.finish().attempt("add the last routes")
}

/// The body of the request for a route.
fn write_route(to: IpAddr, length: u8, via: IpAddr, device: u32) -> Vec<u8> {
    let family = match to {
        IpAddr::V4(_) => libc::AF_INET,
        IpAddr::V6(_) => libc::AF_INET6,
    };
    let mut body = vec![family as u8, length];
    body.extend(KIND);
    // Flags.
    body.extend([0; 4]);
    body.extend(attribute(DESTINATION, &octets(to)));
    body.extend(attribute(GATEWAY, &octets(via)));
    body.extend(number(DEVICE, device));
    body
}

/// An address as bytes in the order of the network.
pub(super) fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().into(),
        IpAddr::V6(address) => address.octets().into(),
    }
}

/// The kernel has no limit but its memory, and ends processes where that is used up.
fn check_memory(routes: u32) -> Result<(), Fault> {
    let needed = u64::from(routes) * ROUTE_BYTES;
    match available_memory() {
        Some(available) if available < needed => {
            let reason = format!(
                "they take about {} MB of memory, and {} MB are available: ask for fewer routes",
                needed / 1_000_000,
                available / 1_000_000
            );
            Err(reason).attempt(format!("add {routes} routes of each family"))
        }
        _ => Ok(()),
    }
}

/// The routes of a family in this namespace, the local ones included, by the kernel's count.
pub(crate) fn count_routes(family: Family) -> Result<u64, Fault> {
    let (file, read): (_, fn(&str) -> Option<u64>) = match family {
        Family::Ipv4 => ("fib_triestat", read_trie),
        Family::Ipv6 => ("rt6_stats", read_stats),
    };
    let path = format!("/proc/thread-self/net/{file}");
    let text = fs::read_to_string(&path).attempt(format!("read {path}"))?;
    read(&text).ok_or("it has another form").attempt(format!("count the routes in {path}"))
}

/// The prefixes of the main table, which has the local one's too where no rule separates them.
fn read_trie(text: &str) -> Option<u64> {
    let (_, main) = text.split_once("Main:")?;
    read_number(main, "Prefixes:")
}

/// The fourth of several numbers in base 16.
fn read_stats(text: &str) -> Option<u64> {
    u64::from_str_radix(text.split_whitespace().nth(3)?, 16).ok()
}

/// The number after the first of these words.
fn read_number(text: &str, word: &str) -> Option<u64> {
    let (_, rest) = text.split_once(word)?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CustomerId, Site, ends};
    use stacklab_model::{MAX_ROUTES, Mechanism};
    use std::collections::HashSet;
    use std::net::{Ipv4Addr, Ipv6Addr};

    #[test]
    fn reads_the_kernels_counts() {
        let trie = "Basic info: size of leaf: 48 bytes, size of tnode: 40 bytes.\nMain:\n\tAver depth:     3.15\n\
                    \tLeaves:         13\n\tPrefixes:       14\nLocal:\n\tPrefixes:       9\n";
        assert_eq!(read_trie(trie), Some(14));
        assert_eq!(read_trie("Local:\n\tPrefixes: 9\n"), None);
        assert_eq!(read_stats("0013 000b 0022 186ae 0000 0000 0000\n"), Some(100_014));
    }

    #[test]
    fn a_route_is_what_the_kernel_reads() {
        let via = Ipv4Addr::new(198, 18, 1, 1).into();
        let body = write_route(Ipv4Addr::new(1, 2, 3, 0).into(), 24, via, 7);
        // As strace shows it of `ip route add 1.2.3.0/24 via 198.18.1.1 dev st0 proto static`.
        let head = b"\x02\x18\0\0\xfe\x04\0\x01\0\0\0\0";
        let rest = b"\x08\0\x01\0\x01\x02\x03\0\x08\0\x05\0\xc6\x12\x01\x01\x08\0\x04\0\x07\0\0\0";
        assert_eq!(body, [&head[..], rest].concat(), "on a little-endian machine");
        let via = Ipv6Addr::LOCALHOST.into();
        assert_eq!(write_route(Ipv6Addr::UNSPECIFIED.into(), 48, via, 7).len(), 12 + 20 + 20 + 8);
    }

    #[test]
    fn no_route_has_an_address_of_a_testbed() {
        for family in Family::ALL {
            let all: HashSet<Prefix> = list_prefixes(*family, MAX_ROUTES).into_iter().collect();
            for address in list_addresses(*family) {
                for length in 1..=48 {
                    let address = cut(address, length);
                    assert!(!all.contains(&Prefix { address, length }), "{address}/{length}");
                }
            }
        }
    }

    /// The addresses that packets of a family have in any testbed with one destination.
    fn list_addresses(family: Family) -> Vec<IpAddr> {
        let mut all = Vec::new();
        for mechanism in Mechanism::ALL {
            for site in [Site::Near, Site::Far] {
                let customer = CustomerId::FIRST;
                all.extend([site.outer(customer, family), site.gateway(customer, *mechanism, family)]);
            }
            for ends in Family::ALL.iter().filter_map(|family| ends(*mechanism, *family)) {
                let ends = [ends.sender, ends.receiver, ends.destination, ends.source];
                all.extend(ends.into_iter().filter(|address| Family::of(*address) == family));
            }
        }
        all
    }

    /// The first bits of an address.
    fn cut(address: IpAddr, length: u8) -> IpAddr {
        match address {
            IpAddr::V4(address) => {
                Ipv4Addr::from(u32::from(address) & !u32::MAX.unbounded_shr(length.into())).into()
            }
            IpAddr::V6(address) => Ipv6Addr::from(u128::from(address) & !(u128::MAX >> length)).into(),
        }
    }

    #[test]
    fn refuses_a_count_that_is_not_what_was_asked() {
        check_count(7, 100_007, 100_000).unwrap();
        check_count(7, 100_010, 100_000).unwrap();
        for after in [0, 100_006, 100_024] {
            let error = check_count(7, after, 100_000).unwrap_err();
            assert!(error.starts_with("the kernel counts "), "{after}");
        }
    }

    #[test]
    fn refuses_more_routes_than_memory() {
        let error = check_memory(u32::MAX).unwrap_err().to_string();
        assert!(error.contains("they take about 4294967 MB of memory"), "{error}");
        check_memory(1).unwrap();
    }
}
