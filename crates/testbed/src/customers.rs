//! The customers before the far router: each has a link from the sender, a near router and a middle link, whose names,
//! networks and numbers follow from the customer's.

use crate::mechanism::softwires::choose_ports;
use crate::path_ends::ends_of;
use serde::{Deserialize, Serialize};
use stacklab_model::{Customer, Family, MAX_CLIENTS, Mechanism, Uplink};
use std::net::SocketAddr;

/// A customer by its place, from 0. A testbed with one has the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CustomerId(u8);

/// What is called after a customer. The first one's names are those of a chain of four hosts.
struct Names {
    /// The sender's interface towards its router.
    uplink: &'static str,
    /// The far router's interface on its middle link, and into its tunnel.
    middle: &'static str,
    tunnel: &'static str,
    router: &'static str,
}

macro_rules! names {
    ($($number:literal)+) => {
        [
            Names { uplink: "st0", middle: "st1", tunnel: "tunnel", router: "router1" },
            $(Names {
                uplink: concat!("st0-", $number),
                middle: concat!("st1-", $number),
                tunnel: concat!("tunnel-", $number),
                router: concat!("router1-", $number),
            },)+
        ]
    };
}

const NAMES: [Names; MAX_CLIENTS as usize] = names!(2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);

/// Numbers that the networks of the customers after the first begin with.
const MIDDLE_OCTETS: u8 = 128;
const MIDDLE_WORDS: u16 = 0xfe00;
const NEAR_OCTETS: u8 = 160;
/// The routing tables of customers.
const TABLES: u32 = 100;

impl CustomerId {
    /// The only one, or the first of several.
    pub const FIRST: CustomerId = CustomerId(0);

    pub(crate) fn first() -> Self {
        Self::FIRST
    }

    pub(crate) fn is_first(&self) -> bool {
        *self == Self::FIRST
    }

    /// That many of them, at most [`MAX_CLIENTS`].
    pub fn list(count: u32) -> Vec<CustomerId> {
        (0..count.min(MAX_CLIENTS) as u8).map(CustomerId).collect()
    }

    /// Its number, from 1.
    pub fn number(self) -> u8 {
        self.0 + 1
    }

    fn names(self) -> &'static Names {
        &NAMES[usize::from(self.0)]
    }

    /// The sender's interface towards its router.
    pub fn uplink(self) -> &'static str {
        self.names().uplink
    }

    pub(crate) fn middle(self) -> &'static str {
        self.names().middle
    }

    pub(crate) fn tunnel(self) -> &'static str {
        self.names().tunnel
    }

    pub(crate) fn router(self) -> &'static str {
        self.names().router
    }

    pub(crate) fn table(self) -> u32 {
        TABLES + self.mark()
    }

    /// The mark of packets to it, and its zone of connection tracking.
    pub(crate) fn mark(self) -> u32 {
        self.number().into()
    }

    pub(crate) fn middle_octet(self) -> u8 {
        if self == Self::FIRST { 0 } else { MIDDLE_OCTETS + self.0 }
    }

    pub(crate) fn middle_word(self) -> u16 {
        if self == Self::FIRST { 0xffff } else { MIDDLE_WORDS + u16::from(self.0) }
    }

    pub(crate) fn near_octet(self) -> u8 {
        if self == Self::FIRST { 1 } else { NEAR_OCTETS + self.0 }
    }

    /// What is this customer's of a testbed with several, as the receiver sees it. `None` if the mechanism does not
    /// carry the family.
    pub fn describe(self, mechanism: Mechanism, family: Family) -> Option<Customer> {
        let ends = ends_of(self, mechanism, family)?;
        let uplink = Uplink { interface: self.uplink().to_owned(), address: ends.sender };
        Some(Customer { uplink, source: ends.source, ports: choose_ports(self, mechanism) })
    }

    /// Its packets come from its address, and its ports.
    pub(crate) fn check_source(
        self,
        source: SocketAddr,
        mechanism: Mechanism,
        family: Family,
    ) -> Result<(), String> {
        let expected = self.describe(mechanism, family).expect("the family is carried");
        let number = self.number();
        if source.ip() != expected.source {
            return Err(format!(
                "packets of customer {number} arrive from {}, not from {}",
                source.ip(),
                expected.source
            ));
        }
        if !expected.ports.contain(source.port()) {
            return Err(format!(
                "packets of customer {number} arrive from port {}, not from {}",
                source.port(),
                expected.ports
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_customer_has_its_own_names_and_networks() {
        let all = CustomerId::list(MAX_CLIENTS);
        let names: BTreeSet<&str> =
            all.iter().flat_map(|id| [id.uplink(), id.middle(), id.tunnel()]).collect();
        assert_eq!(names.len(), 3 * all.len());
        assert!(names.iter().all(|name| name.len() < 16), "the kernel's longest name has 15 bytes");
        let octets: BTreeSet<u8> = all.iter().flat_map(|id| [id.middle_octet(), id.near_octet()]).collect();
        assert_eq!(octets.len(), 2 * all.len());
        assert!(octets.range(2..128).next().is_none(), "these are the receiver's, the pool's and others'");
    }

    /// Where customers share an address, each port is of one of them at most.
    #[test]
    fn no_port_is_of_two_customers() {
        let mut sharing = 0;
        for mechanism in Mechanism::ALL.iter().filter(|mechanism| mechanism.joins_customers()) {
            let all = CustomerId::list(MAX_CLIENTS);
            let all: Vec<Customer> =
                all.iter().filter_map(|id| id.describe(*mechanism, Family::Ipv4)).collect();
            for pair in all.windows(2).filter(|pair| pair[0].source == pair[1].source) {
                sharing += 1;
                let [one, other] = [pair[0].ports, pair[1].ports];
                let common = (0..=u16::MAX).filter(|port| one.contain(*port) && other.contain(*port));
                let is_by_nat = mechanism.name() == "ds-lite";
                assert_eq!(common.count() > 0, is_by_nat, "{mechanism}: {one}, {other}");
            }
        }
        assert_eq!(sharing, 3 * 15, "of ds-lite, lw4o6 and map-e");
    }
}
