//! The two ends of a path, as each end has them and as the other end sees them: translators and NATs change addresses.

use crate::addressing::{NPT_HOST, POOL_HOST, SHARED, TRANSLATED};
use crate::{CustomerId, Site};
use stacklab_model::{Family, Mechanism, Nat, Publisher, Sharing, Translation};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

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
    ends_of(CustomerId::FIRST, mechanism, family)
}

/// The same if the sender is this one of several customers.
pub(crate) fn ends_of(customer: CustomerId, mechanism: Mechanism, family: Family) -> Option<PathEnds> {
    if !mechanism.carries(family) {
        return None;
    }
    let sender = Site::Near.client_address(customer, mechanism, family);
    let same = Site::Far.client_address(customer, mechanism, family);
    let v4 = Site::Far.client_address(customer, mechanism, Family::Ipv4);
    let v6 = Site::Far.client_address(customer, mechanism, Family::Ipv6);
    let pool = POOL_HOST.into();
    let (receiver, destination, source) = match mechanism.translation() {
        Some(Translation::Far) => (v4, embed_v4(v4), pool),
        Some(Translation::Near) => (v6, pool, embed_v4(sender)),
        Some(Translation::Both) => (v4, v4, change_source(customer, mechanism, family).unwrap_or(pool)),
        None => {
            let destination = change_destination(customer, mechanism, family).unwrap_or(same);
            (same, destination, change_source(customer, mechanism, family).unwrap_or(sender))
        }
    };
    Some(PathEnds { sender, receiver, destination, source })
}

fn embed_v4(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) => embed_address(address).into(),
        other => other,
    }
}

/// The address of a container's host, if the receiver is a container behind it.
fn change_destination(customer: CustomerId, mechanism: Mechanism, family: Family) -> Option<IpAddr> {
    match mechanism.publisher()? {
        Publisher::Dnat | Publisher::DockerProxy | Publisher::Pasta => {
            Some(Site::Far.outer(customer, family))
        }
        Publisher::Slirp | Publisher::Macvlan => None,
    }
}

/// The sender's address behind a router's NAT, or the container's host whose program has its own connections, if the
/// mechanism has one.
fn change_source(customer: CustomerId, mechanism: Mechanism, family: Family) -> Option<IpAddr> {
    match mechanism.publisher() {
        Some(Publisher::DockerProxy) => return Some(Site::Far.gateway(customer, mechanism, family)),
        Some(Publisher::Slirp) => return Some(Site::Near.outer(customer, family)),
        Some(Publisher::Dnat | Publisher::Pasta | Publisher::Macvlan) | None => {}
    }
    match (mechanism.nat(), mechanism.sharing()) {
        (Some(Nat::Masquerade), _) => Some(Site::Near.outer(customer, family)),
        (Some(Nat::Prefix), _) => Some(NPT_HOST.into()),
        (None, Some(Sharing::AtFarRouter)) => Some(Site::Far.gateway(customer, mechanism, family)),
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

impl Site {
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
                assert_eq!(changed, mechanism.translates() || mechanism.begins_at_sender(), "{mechanism}");
            }
        }
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
}
