//! The destinations of a stream's datagrams, if they are several: one is drawn for each datagram.

use stacklab_model::{Family, SplitMix64, TrialSpec, list_destinations};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

/// The last list: a million addresses take a second, and each slice of a trial needs them.
static LAST: Mutex<Option<Listed>> = Mutex::new(None);

struct Listed {
    family: Family,
    count: u32,
    addresses: Arc<[IpAddr]>,
}

/// Lists the destinations of a trial, if they are several, before its time begins.
pub(crate) fn prepare(spec: &TrialSpec) {
    if spec.destinations > 1 {
        list(spec.family, spec.destinations);
    }
}

fn list(family: Family, count: u32) -> Arc<[IpAddr]> {
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(listed) = last.as_ref().filter(|listed| (listed.family, listed.count) == (family, count)) {
        return Arc::clone(&listed.addresses);
    }
    let addresses: Arc<[IpAddr]> = list_destinations(family, count).into();
    *last = Some(Listed { family, count, addresses: Arc::clone(&addresses) });
    addresses
}

/// Addresses that lie behind the receiver's, and the seed of the next draw.
pub(crate) struct Destinations {
    addresses: Arc<[IpAddr]>,
    port: u16,
    random: SplitMix64,
}

impl Destinations {
    /// Those of a trial whose receiver has this port.
    pub(crate) fn of(spec: &TrialSpec, port: u16) -> Self {
        let addresses = list(spec.family, spec.destinations);
        Destinations { addresses, port, random: SplitMix64(spec.token.into()) }
    }

    /// The destination of the next datagram. All are equally likely.
    pub(crate) fn draw(&mut self) -> SocketAddr {
        let drawn = (u128::from(self.random.next_u64()) * self.addresses.len() as u128) >> 64;
        SocketAddr::new(self.addresses[drawn as usize], self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use stacklab_model::{Family, Transport};
    use std::collections::BTreeMap;

    fn spread(family: Family, token: u32) -> Destinations {
        let mut spec = fixtures::spec(family, Transport::Udp);
        (spec.destinations, spec.token) = (100, token);
        Destinations::of(&spec, 7)
    }

    #[test]
    fn each_destination_is_drawn_about_as_often() {
        for family in Family::ALL {
            let mut destinations = spread(*family, 1);
            let mut counts: BTreeMap<SocketAddr, u32> = BTreeMap::new();
            for _ in 0..10_000 {
                *counts.entry(destinations.draw()).or_default() += 1;
            }
            assert_eq!(counts.len(), 100, "{family}");
            assert!(counts.values().all(|count| (50..200).contains(count)), "{counts:?}");
        }
    }

    #[test]
    fn draws_follow_from_the_token() {
        let mut draws = Vec::new();
        for token in [5, 5, 6] {
            let mut destinations = spread(Family::Ipv6, token);
            draws.push([(); 20].map(|()| destinations.draw()));
        }
        assert_eq!(draws[0], draws[1]);
        assert_ne!(draws[0], draws[2]);
    }
}
