//! The topology of a testbed.

use crate::factors::cell::Cell;
use crate::factors::mechanism::{Mechanism, Translator};
use crate::factors::system::Systems;
use crate::network::link_config::LinkConfig;
use crate::units::{Rate, print_duration};
use crate::wifi::WifiConfig;
use serde::{Deserialize, Serialize};

/// How a study's hosts are connected.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Topology {
    /// Two hosts, one link.
    #[default]
    Link,
    /// Client, router, router, client: a chain with three links.
    Routed(Links),
    /// Station, access point, station: a Wi-Fi network for each combination of its settings that cells have.
    Wifi(WifiConfig),
}

/// The three links of a routed testbed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Links {
    /// Between the sender and its router.
    pub near: OwnLink,
    /// Between the routers, with the link configuration's rate and MTU: the bottleneck.
    pub middle: OwnLink,
    /// Between the receiver and its router.
    pub far: OwnLink,
}

/// The differences between routed testbeds within a study.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RoutedKind {
    /// How packets cross the link between the routers.
    pub mechanism: Mechanism,
    /// The systems of the clients.
    pub clients: Systems,
    /// The systems of the routers.
    pub routers: Systems,
    /// The translator on the routers; unset if the routers' own translator is used.
    pub translator: Option<Translator>,
}

impl RoutedKind {
    /// The testbed in which a cell is measured.
    pub fn of(cell: &Cell) -> Self {
        let (clients, routers) = (Systems::of(cell), Systems::of_routers(cell));
        RoutedKind { mechanism: Mechanism::of(cell), clients, routers, translator: Translator::of(cell) }
    }

    /// Four namespaces.
    pub fn of_namespaces(mechanism: Mechanism) -> Self {
        let (clients, routers) = (Systems::NAMESPACES, Systems::NAMESPACES);
        RoutedKind { mechanism, clients, routers, translator: None }
    }
}

/// The properties of one link, in each direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct OwnLink {
    /// Its rate, if it differs from the link configuration's.
    pub rate: Option<Rate>,
    /// Largest IP packet, bytes, if it differs from the link configuration's.
    pub mtu: Option<u32>,
    /// Added delay, nanoseconds.
    pub delay_ns: u64,
    /// The share of packets that the link drops.
    pub loss: f64,
}

impl Topology {
    /// The delay that the links add to a round trip, nanoseconds.
    pub fn round_trip_ns(&self) -> u64 {
        self.links().iter().map(|link| 2 * link.delay_ns).sum()
    }

    /// The rate of the slowest link; `None` if none is limited.
    pub fn slowest(&self, link_config: &LinkConfig) -> Option<Rate> {
        let own = self.links().into_iter().filter_map(|link| link.rate);
        own.chain(link_config.rate).min_by_key(|rate| rate.bits_per_second())
    }

    /// What limits the rate of traffic from the sender: the first link that no other one is slower than. `None` without
    /// routers or a limited rate.
    pub fn bottleneck(&self, link_config: &LinkConfig) -> Option<&'static str> {
        let Topology::Routed(links) = self else { return None };
        let rates =
            links.all().into_iter().filter_map(|(name, link)| Some((name, link.of(link_config).rate?)));
        // The first of several: `min_by_key` gives the first minimum.
        Some(match rates.min_by_key(|(_, rate)| rate.bits_per_second())?.0 {
            "near" => "near link, the sender's own: it queues at the sender, and no queue builds at a router",
            "middle" => "middle link: packets queue at the near router",
            _ => "far link: packets queue at the far router",
        })
    }

    fn links(&self) -> Vec<OwnLink> {
        match self {
            Topology::Link | Topology::Wifi(_) => Vec::new(),
            Topology::Routed(links) => links.all().map(|(_, link)| link).to_vec(),
        }
    }
}

impl Links {
    /// All links with their names, in the order of the hosts.
    pub fn all(&self) -> [(&'static str, OwnLink); 3] {
        [("near", self.near), ("middle", self.middle), ("far", self.far)]
    }
}

impl OwnLink {
    /// Whether the link adds delay or loss in addition to its rate limit.
    pub fn impairs(&self) -> bool {
        self.delay_ns > 0 || self.loss > 0.0
    }

    /// The complete link: values that it does not set come from the link configuration.
    pub fn of(&self, link_config: &LinkConfig) -> LinkConfig {
        LinkConfig {
            rate: self.rate.or(link_config.rate),
            mtu: self.mtu.unwrap_or(link_config.mtu),
            offloads: link_config.offloads,
        }
    }

    /// Its delay and loss in words, `delay 5 ms`, `loss 0.1 %`; empty if it has neither.
    pub fn impairments(&self) -> Vec<String> {
        let delay = (self.delay_ns > 0).then(|| format!("delay {}", print_duration(self.delay_ns)));
        let loss = (self.loss > 0.0).then(|| format!("loss {} %", (self.loss * 1e8).round() / 1e6));
        delay.into_iter().chain(loss).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_has_the_beds_rate_and_mtu_unless_it_has_its_own() {
        let link_config = LinkConfig { rate: Some(Rate(1_000_000)), mtu: 1500, offloads: false };
        assert_eq!(OwnLink::default().of(&link_config), link_config);
        let own = OwnLink { rate: Some(Rate(5_000_000)), mtu: Some(9000), ..OwnLink::default() };
        assert_eq!(own.of(&link_config), LinkConfig { rate: own.rate, mtu: 9000, offloads: false });
    }

    #[test]
    fn only_what_impairs_is_told() {
        assert!(OwnLink::default().impairments().is_empty() && !OwnLink::default().impairs());
        let link = OwnLink { delay_ns: 5_000_000, loss: 0.001, ..OwnLink::default() };
        assert_eq!(link.impairments(), ["delay 5 ms", "loss 0.1 %"]);
        assert!(link.impairs());
    }
}
