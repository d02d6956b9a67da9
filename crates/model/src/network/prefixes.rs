//! Prefixes with the lengths of the Internet's table, in networks that no host of a testbed has, and an address of each
//! for packets to many destinations. A longer list begins with all shorter ones.

use crate::{Family, MAX_ROUTES, SplitMix64};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A network of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Prefix {
    pub address: IpAddr,
    /// Bits.
    pub length: u8,
}

/// The prefixes of a family.
struct Shape {
    family: Family,
    /// The leading bits of the networks among which prefixes are spread evenly, and how many bits these are.
    blocks: Vec<u16>,
    block_bits: u8,
    /// Prefix lengths, and how many of a thousand prefixes have each.
    lengths: &'static [(u8, u32)],
}

/// A host of a prefix is looked for so often outside longer prefixes.
const MAX_TRIES: u64 = 256;
/// In the largest table a few prefixes have longer ones for all of their addresses; in one of this size none has.
const ROUTES_WITH_GAPS: u32 = 400_000;

impl Prefix {
    /// The network of the testbeds' addresses, around which prefixes are as dense as elsewhere: RFC 2544 and RFC 5180
    /// reserve it for benchmarks.
    pub fn of_testbeds(family: Family) -> Self {
        match family {
            Family::Ipv4 => Prefix { address: Ipv4Addr::new(198, 18, 0, 0).into(), length: 15 },
            Family::Ipv6 => Prefix { address: Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 0).into(), length: 48 },
        }
    }
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
                family,
                blocks: (1..224).filter(|first| ![10, 127].contains(first)).collect(),
                block_bits: 8,
                lengths: &LENGTHS_V4,
            },
            Family::Ipv6 => Shape { family, blocks: list_blocks_v6(), block_bits: 16, lengths: &LENGTHS_V6 },
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
        let spread = position.wrapping_mul(choose_factor(free_bits)) & ((1 << free_bits) - 1);
        let block = u128::from(self.blocks[(number % blocks) as usize]);
        Some(block << (128 - self.block_bits) | u128::from(spread) << (128 - length))
    }

    /// The next prefix of this length from this number on, which moves behind it.
    fn next(&self, length: u8, number: &mut u64) -> u128 {
        loop {
            let prefix = self.place(length, *number).expect("there is room for the largest table");
            *number += 1;
            if !self.leaves_out(prefix, length) {
                return prefix;
            }
        }
    }

    /// The number of the prefix of this length in which an address lies; `None` if it lies in no block.
    fn find_number(&self, address: u128, length: u8) -> Option<u64> {
        let block = (address >> (128 - self.block_bits)) as u16;
        let block = self.blocks.binary_search(&block).ok()? as u64;
        let free_bits = length - self.block_bits;
        let mask = (1 << free_bits) - 1;
        let spread = (address >> (128 - length)) as u64 & mask;
        let position = spread.wrapping_mul(invert(choose_factor(free_bits))) & mask;
        Some(position * self.blocks.len() as u64 + block)
    }

    /// Whether a table of that many routes may have one to an address that is longer than this.
    fn has_longer_route(&self, address: u128, length: u8, routes: u32) -> bool {
        let left_out = Prefix::of_testbeds(self.family).length;
        let mut longer = self.lengths.iter().filter(|(other, _)| *other > length);
        longer.any(|(other, share)| {
            // Numbers whose prefixes lie in the testbeds' network are passed over.
            let passed_over = 1 << other.saturating_sub(left_out);
            let most = u64::from(routes) * u64::from(*share) / 1000 + passed_over;
            self.find_number(address, *other).is_some_and(|number| number < most)
        })
    }

    /// An address of the prefix for which no table has a longer route; where that is not to be had, none of
    /// [`ROUTES_WITH_GAPS`].
    fn choose_host(&self, prefix: u128, length: u8) -> u128 {
        let address_bits = match self.family {
            Family::Ipv4 => u128::from(u32::MAX) << 96,
            Family::Ipv6 => u128::MAX,
        };
        let host_bits = address_bits & (u128::MAX >> length);
        for routes in [MAX_ROUTES, ROUTES_WITH_GAPS] {
            for attempt in 0..MAX_TRIES {
                let seed = (prefix >> 64) as u64 ^ attempt;
                let drawn = u128::from(SplitMix64::mix(seed)) << 64 | u128::from(SplitMix64::mix(!seed));
                let host = prefix | drawn & host_bits;
                if !self.has_longer_route(host, length, routes) {
                    return host;
                }
            }
        }
        prefix
    }

    /// Whether the network that is left out lies in the prefix, or the prefix in it.
    fn leaves_out(&self, prefix: u128, length: u8) -> bool {
        let network = Prefix::of_testbeds(self.family);
        let common_bits = length.min(network.length);
        (prefix ^ to_bits(network.address)) >> (128 - common_bits) == 0
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

/// A product with this odd number is a permutation of all numbers with that many bits.
fn choose_factor(bits: u8) -> u64 {
    GOLDEN >> (64 - bits) | 1
}

/// The number by which a product with an odd one is undone, modulo 2^64: each step of Newton's doubles the right bits.
fn invert(odd: u64) -> u64 {
    let mut inverse = odd;
    for _ in 0..5 {
        inverse = inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse)));
    }
    inverse
}

/// That many different prefixes of a family.
pub fn list_prefixes(family: Family, count: u32) -> Vec<Prefix> {
    let shape = Shape::of(family);
    let order = mix_lengths(shape.lengths);
    let mut numbers = vec![0; shape.lengths.len()];
    let mut all = Vec::with_capacity(count as usize);
    for place in 0..count as usize {
        let which = order[place % order.len()];
        let (length, _) = shape.lengths[which];
        let bits = shape.next(length, &mut numbers[which]);
        all.push(Prefix { address: to_address(family, bits), length });
    }
    all
}

/// An address in each of that many prefixes. Its best match is this prefix in every table of up to 400,000 routes that
/// has it, and in larger ones but for a few short prefixes.
pub fn list_destinations(family: Family, count: u32) -> Vec<IpAddr> {
    let shape = Shape::of(family);
    let mut all = Vec::with_capacity(count as usize);
    for Prefix { address, length } in list_prefixes(family, count) {
        all.push(to_address(family, shape.choose_host(to_bits(address), length)));
    }
    all
}

/// The places of the lengths of a thousand prefixes, each spread evenly: the next one is what its share is furthest
/// behind with.
fn mix_lengths(lengths: &[(u8, u32)]) -> Vec<usize> {
    let mut given = vec![0_u32; lengths.len()];
    let mut order = Vec::with_capacity(1000);
    for place in 1..=1000 {
        let mut next = 0;
        let mut most = i64::MIN;
        for (which, (_, share)) in lengths.iter().enumerate() {
            let behind = i64::from(share * place) - i64::from(given[which] * 1000);
            if behind > most {
                most = behind;
                next = which;
            }
        }
        given[next] += 1;
        order.push(next);
    }
    order
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
        for (family, lengths) in [(Family::Ipv4, LENGTHS_V4), (Family::Ipv6, LENGTHS_V6)] {
            let all = list_prefixes(family, 10_000);
            for (length, share) in lengths {
                let found = all.iter().filter(|prefix| prefix.length == length).count();
                assert_eq!(found, 10 * share as usize, "{family} /{length}");
            }
        }
    }

    #[test]
    fn a_longer_list_begins_with_a_shorter_one() {
        for family in Family::ALL {
            let all = list_prefixes(*family, 2500);
            for count in [0, 1, 7, 999, 2001] {
                assert_eq!(list_prefixes(*family, count), all[..count as usize], "{family}");
            }
        }
        let first = Prefix { address: Ipv4Addr::new(1, 0, 0, 0).into(), length: 24 };
        assert_eq!(list_prefixes(Family::Ipv4, 1), [first]);
    }

    #[test]
    fn each_destination_has_another_route() {
        for family in Family::ALL {
            let table = list_prefixes(*family, ROUTES_WITH_GAPS);
            let routes: HashSet<Prefix> = table.iter().copied().collect();
            for (destination, own) in list_destinations(*family, 50_000).into_iter().zip(&table) {
                let best = (0..=48).rev().map(|length| cut(*family, destination, length));
                let best = best.into_iter().find(|prefix| routes.contains(prefix));
                assert_eq!(best, Some(*own), "{destination}");
            }
        }
    }

    /// The prefix of this length in which an address lies.
    fn cut(family: Family, address: IpAddr, length: u8) -> Prefix {
        let bits = to_bits(address) & !u128::MAX.checked_shr(length.into()).unwrap_or(0);
        Prefix { address: to_address(family, bits), length }
    }

    #[test]
    fn a_prefix_is_found_by_its_address() {
        for (family, length) in
            [(Family::Ipv4, 24), (Family::Ipv4, 16), (Family::Ipv6, 48), (Family::Ipv6, 29)]
        {
            let shape = Shape::of(family);
            for number in [0, 1, 222, 5000] {
                let prefix = shape.place(length, number).unwrap();
                assert_eq!(shape.find_number(prefix, length), Some(number), "{family} /{length}");
            }
        }
    }

    #[test]
    fn prefixes_are_close_to_those_of_the_testbed() {
        // What is looked up must go as deep into the table as any other address.
        let near = list_prefixes(Family::Ipv4, 100_000);
        let near = near.iter().filter(|prefix| prefix.address.to_string().starts_with("198.")).count();
        assert!((400..500).contains(&near), "{near}");
        let near = list_prefixes(Family::Ipv6, 100_000);
        let near = near.iter().filter(|prefix| prefix.address.to_string().starts_with("2001:")).count();
        assert!((1200..1300).contains(&near), "{near}");
    }
}
