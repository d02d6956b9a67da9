//! Prefixes with the lengths of the Internet's table, in networks that no packet of a testbed has. The same number of
//! them is always the same list.

use stacklab_model::Family;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The prefixes of a family.
struct Shape {
    /// The leading bits of the networks among which prefixes are spread evenly, and how many bits these are.
    blocks: Vec<u16>,
    block_bits: u8,
    /// Prefix lengths, and how many of a thousand prefixes have each.
    lengths: &'static [(u8, u32)],
    /// The network of the testbeds' addresses, around which prefixes are as dense as elsewhere.
    left_out: (IpAddr, u8),
}

/// Rounded shares of lengths in the table of a router without a default route, docs/mechanisms.md.
const LENGTHS_V4: [(u8, u32); 9] =
    [(24, 610), (23, 100), (22, 115), (21, 50), (20, 45), (19, 30), (18, 20), (17, 10), (16, 20)];
const LENGTHS_V6: [(u8, u32); 9] =
    [(48, 470), (47, 25), (46, 40), (44, 105), (42, 25), (40, 115), (36, 60), (32, 130), (29, 30)];

impl Shape {
    fn of(family: Family) -> Self {
        match family {
            Family::Ipv4 => Shape {
                blocks: (1..224).filter(|first| ![10, 127].contains(first)).collect(),
                block_bits: 8,
                lengths: &LENGTHS_V4,
                left_out: (Ipv4Addr::new(198, 18, 0, 0).into(), 15),
            },
            Family::Ipv6 => Shape {
                blocks: list_blocks_v6(),
                block_bits: 16,
                lengths: &LENGTHS_V6,
                left_out: (Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 0).into(), 48),
            },
        }
    }

    /// The prefix of this length and number, at the upper end of 128 bits. Numbers that follow each other are far
    /// apart, and no two have the same prefix.
    fn place(&self, length: u8, number: u64) -> Option<u128> {
        let blocks = self.blocks.len() as u64;
        let free_bits = length - self.block_bits;
        let position = number / blocks;
        if position >> free_bits > 0 {
            return None;
        }
        // A product with an odd number is a permutation of all numbers with that many bits.
        let spread = position.wrapping_mul(GOLDEN >> (64 - free_bits) | 1) & ((1 << free_bits) - 1);
        let block = u128::from(self.blocks[(number % blocks) as usize]);
        Some(block << (128 - self.block_bits) | u128::from(spread) << (128 - length))
    }

    /// Whether the network that is left out lies in the prefix, or the prefix in it.
    fn leaves_out(&self, prefix: u128, length: u8) -> bool {
        let (network, network_bits) = self.left_out;
        let common_bits = length.min(network_bits);
        (prefix ^ to_bits(network)) >> (128 - common_bits) == 0
    }
}

/// The fraction of the golden section, of 64 bits.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The networks of 16 bits from which the regional registries have assigned most of IPv6.
fn list_blocks_v6() -> Vec<u16> {
    let mut blocks = vec![0x2001];
    for first in [0x2400, 0x2600, 0x2800, 0x2a00, 0x2c00] {
        blocks.extend(first..first + 0x10);
    }
    blocks
}

/// That many different prefixes of a family, each an address and a length.
pub(crate) fn list_prefixes(family: Family, count: u32) -> Vec<(IpAddr, u8)> {
    let shape = Shape::of(family);
    let mut all = Vec::with_capacity(count as usize);
    for (length, of_length) in share_out(shape.lengths, count) {
        let candidates = (0..).map_while(|number| shape.place(length, number));
        let usable = candidates.filter(|prefix| !shape.leaves_out(*prefix, length));
        all.extend(usable.take(of_length as usize).map(|prefix| (to_address(family, prefix), length)));
    }
    all
}

/// How many prefixes have each length. The first length, the most frequent one, has what remains by rounding.
fn share_out(lengths: &[(u8, u32)], count: u32) -> Vec<(u8, u32)> {
    let parts = lengths.iter().map(|(length, share)| (*length, share_of(count, *share)));
    let mut parts: Vec<_> = parts.collect();
    let given: u32 = parts.iter().map(|(_, number)| number).sum();
    parts[0].1 += count - given;
    parts
}

fn share_of(count: u32, per_thousand: u32) -> u32 {
    (u64::from(count) * u64::from(per_thousand) / 1000) as u32
}

fn to_bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)) << 96,
        IpAddr::V6(address) => u128::from(address),
    }
}

fn to_address(family: Family, bits: u128) -> IpAddr {
    match family {
        Family::Ipv4 => Ipv4Addr::from((bits >> 96) as u32).into(),
        Family::Ipv6 => Ipv6Addr::from(bits).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CustomerId, Site, ends};
    use stacklab_model::{MAX_ROUTES, Mechanism};
    use std::collections::HashSet;

    #[test]
    fn a_million_prefixes_are_all_different() {
        for family in Family::ALL {
            let all = list_prefixes(*family, MAX_ROUTES);
            assert_eq!(all.len(), 1_000_000, "{family}");
            let different: HashSet<_> = all.iter().collect();
            assert_eq!(different.len(), 1_000_000, "{family}");
        }
    }

    #[test]
    fn lengths_have_the_stated_shares() {
        assert_eq!(count_length(Family::Ipv4, 24), 6100);
        assert_eq!(count_length(Family::Ipv4, 16), 200);
        assert_eq!(count_length(Family::Ipv6, 48), 4700);
        assert_eq!(count_length(Family::Ipv6, 32), 1300);
        for lengths in [LENGTHS_V4, LENGTHS_V6] {
            assert_eq!(lengths.iter().map(|(_, share)| share).sum::<u32>(), 1000);
        }
    }

    /// How many of ten thousand prefixes have a length.
    fn count_length(family: Family, wanted: u8) -> usize {
        list_prefixes(family, 10_000).iter().filter(|(_, length)| *length == wanted).count()
    }

    #[test]
    fn few_prefixes_are_as_many_as_asked() {
        for count in [0, 1, 7, 999] {
            assert_eq!(list_prefixes(Family::Ipv6, count).len(), count as usize);
        }
        let one = list_prefixes(Family::Ipv4, 1);
        assert_eq!(one, [(Ipv4Addr::new(1, 0, 0, 0).into(), 24)]);
    }

    #[test]
    fn no_prefix_has_an_address_of_a_testbed() {
        for family in Family::ALL {
            let all: HashSet<_> = list_prefixes(*family, MAX_ROUTES).into_iter().collect();
            for address in list_addresses(*family) {
                for length in 1..=48 {
                    let prefix = to_address(*family, to_bits(address) >> (128 - length) << (128 - length));
                    assert!(!all.contains(&(prefix, length)), "{address} is in {prefix}/{length}");
                }
            }
        }
    }

    /// The addresses that packets of a family have in any testbed.
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

    #[test]
    fn prefixes_are_close_to_those_of_the_testbed() {
        // What is looked up must go as deep into the table as any other address.
        let near = list_prefixes(Family::Ipv4, 100_000);
        let near = near.iter().filter(|(address, _)| address.to_string().starts_with("198.")).count();
        assert!((400..500).contains(&near), "{near}");
        let near = list_prefixes(Family::Ipv6, 100_000);
        let near = near.iter().filter(|(address, _)| address.to_string().starts_with("2001:")).count();
        assert!((1200..1300).contains(&near), "{near}");
    }
}
