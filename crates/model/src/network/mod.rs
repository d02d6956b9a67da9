//! The network between hosts: topology and links.

pub(crate) mod address;
pub(crate) mod customers;
pub(crate) mod headers;
pub(crate) mod prefixes;
pub(crate) mod wire_cost;

use crate::wifi::WifiConfig;
use crate::{
    Cell, FlowOffload, Mechanism, Rate, RouterQueue, Rules, Systems, Tables, Tracking, Translator, WirePath,
    count_customers, print_duration,
};
use serde::{Deserialize, Serialize};

/// The configuration of every link between hosts. Every link has addresses of both families.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkConfig {
    /// Rate of the link in each direction, Ethernet overhead included; `None` is without a limit.
    pub rate: Option<Rate>,
    pub mtu: u32,
    /// Whether segmentation and receive offloads stay on. Without them a packet in the kernel is one on the wire.
    pub offloads: bool,
}

impl LinkConfig {
    /// Largest IP packet of the link in a cell, bytes. The cell's own value applies if the study varies it.
    pub fn mtu_of(&self, cell: &Cell) -> u32 {
        cell.settings.mtu.unwrap_or(self.mtu)
    }

    /// Messages per second of a cell, by the path segment with the longest headers. `None` without a rate, or if the
    /// mechanism does not carry the family.
    pub fn messages_per_second(&self, cell: &Cell) -> Option<f64> {
        let rate = self.rate?;
        let payload = cell.payload_bytes();
        let plain = WirePath::plain(cell.family, cell.transport, self.mtu_of(cell));
        let crossing = WirePath { mechanism: Mechanism::of(cell), ..plain };
        let most = plain.wire_size(payload)?.wire_bytes.max(crossing.wire_size(payload)?.wire_bytes);
        Some(rate.bits_per_second() as f64 / 8.0 / f64::from(most))
    }
}

/// How a study's hosts are connected.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Topology {
    #[default]
    Link,
    /// Client, router, router, client: a chain with three links.
    Routed(Links),
    /// Station, access point, station: a Wi-Fi network for each combination of its settings that cells have.
    Wifi(WifiConfig),
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Links {
    pub near: OwnLink,
    /// Between the routers, with the link configuration's rate and MTU: the bottleneck.
    pub middle: OwnLink,
    pub far: OwnLink,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RoutedKind {
    pub mechanism: Mechanism,
    pub clients: Systems,
    pub routers: Systems,
    pub translator: Option<Translator>,
    pub rules: Rules,
    pub tables: Tables,
    pub queue: RouterQueue,
    /// How many customers there are, each with a near router; 1 is the chain of four hosts.
    pub customers: u32,
}

impl RoutedKind {
    pub fn of(cell: &Cell) -> Self {
        RoutedKind {
            mechanism: Mechanism::of(cell),
            clients: Systems::of(cell),
            routers: Systems::of_routers(cell),
            translator: Translator::of(cell),
            rules: Rules::of(cell),
            tables: Tables::of(cell),
            queue: RouterQueue::of(cell),
            customers: count_customers(cell),
        }
    }

    /// Whether the near router has rules of nftables besides those of its mechanism.
    pub fn filters(&self) -> bool {
        self.rules.count > 0
            || self.tables.tracking != Tracking::Off
            || self.tables.offload != FlowOffload::Off
    }

    pub fn of_namespaces(mechanism: Mechanism) -> Self {
        let clients = Systems::NAMESPACES;
        let routers = Systems::NAMESPACES;
        RoutedKind {
            mechanism,
            clients,
            routers,
            translator: None,
            rules: Rules::default(),
            tables: Tables::default(),
            queue: RouterQueue::Inline,
            customers: 1,
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct OwnLink {
    /// Rate and MTU are set where they differ from the link configuration's.
    pub rate: Option<Rate>,
    pub mtu: Option<u32>,
    pub delay_ns: u64,
    pub loss: f64,
}

impl Topology {
    pub fn round_trip_ns(&self) -> u64 {
        self.links().iter().map(|link| 2 * link.delay_ns).sum()
    }

    pub fn slowest(&self, link_config: &LinkConfig) -> Option<Rate> {
        let own = self.links().into_iter().filter_map(|link| link.rate);
        own.chain(link_config.rate).min_by_key(|rate| rate.bits_per_second())
    }

    /// The first link that no other one is slower than; `None` without routers or a limited rate. Several customers
    /// share the far link, and each has the others.
    pub fn bottleneck(&self, link_config: &LinkConfig, customers: u32) -> Option<&'static str> {
        let Topology::Routed(links) = self else { return None };
        let rates =
            links.all().into_iter().filter_map(|(name, link)| Some((name, link.of(link_config).rate?)));
        // The first of several: `min_by_key` gives the first minimum.
        Some(
            match rates.min_by_key(|(name, rate)| rate.bits_per_second() * count_links(name, customers))?.0 {
                "near" => {
                    "near link, the sender's own: it queues at the sender, and no queue builds at a router"
                }
                "middle" => "middle link: packets queue at the near router",
                _ => "far link: packets queue at the far router",
            },
        )
    }

    /// Whether what is sent faster than the path carries it waits at the sender.
    pub fn queues_at_sender(&self, link_config: &LinkConfig) -> bool {
        match self {
            Topology::Routed(_) => {
                self.bottleneck(link_config, 1).is_some_and(|link| link.starts_with("near"))
            }
            Topology::Link | Topology::Wifi(_) => true,
        }
    }

    /// The link configuration with the rate that all customers of a cell have together: each has a near and a middle
    /// link, and they share the far one.
    pub fn joint_link(&self, link_config: &LinkConfig, cell: &Cell) -> LinkConfig {
        let Topology::Routed(links) = self else { return link_config.clone() };
        if link_config.rate.is_none() {
            return link_config.clone();
        }
        let customers = count_customers(cell);
        let rates = links.all().into_iter().filter_map(|(name, link)| {
            Some(link.of(link_config).rate?.bits_per_second().saturating_mul(count_links(name, customers)))
        });
        LinkConfig { rate: rates.min().map(Rate), ..link_config.clone() }
    }

    fn links(&self) -> Vec<OwnLink> {
        let Topology::Routed(links) = self else { return Vec::new() };
        links.all().map(|(_, link)| link).to_vec()
    }
}

/// How many links of this name there are.
fn count_links(name: &str, customers: u32) -> u64 {
    if name == "far" { 1 } else { customers.into() }
}

impl Links {
    pub fn all(&self) -> [(&'static str, OwnLink); 3] {
        [("near", self.near), ("middle", self.middle), ("far", self.far)]
    }
}

impl OwnLink {
    pub fn impairs(&self) -> bool {
        self.delay_ns > 0 || self.loss > 0.0
    }

    /// What is its own, in words: `1 Gbit/s`, `MTU 9000`, `delay 5 ms`; empty if nothing is.
    pub fn describe(&self) -> Vec<String> {
        let rate = self.rate.map(|rate| rate.to_string());
        let mtu = self.mtu.map(|mtu| format!("MTU {mtu}"));
        rate.into_iter().chain(mtu).chain(self.impairments()).collect()
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
    use crate::CellSettings;

    #[test]
    fn customers_share_only_the_far_link() {
        let link_config = LinkConfig { rate: Some(Rate(100)), mtu: 1500, offloads: false };
        let far = OwnLink { rate: Some(Rate(1000)), ..OwnLink::default() };
        let plain = Cell::new(crate::Family::Ipv4, crate::Transport::Udp, crate::SizeOf::Payload, 64);
        for (customers, far, rate) in
            [(1, OwnLink::default(), 100), (4, OwnLink::default(), 100), (4, far, 400), (16, far, 1000)]
        {
            let settings = CellSettings { customers: Some(customers), ..CellSettings::default() };
            let cell = Cell { settings: settings.into(), ..plain.clone() };
            let topology = Topology::Routed(Links { far, ..Links::default() });
            assert_eq!(topology.joint_link(&link_config, &cell).rate, Some(Rate(rate)), "{customers}");
        }
        let unlimited = LinkConfig { rate: None, ..link_config };
        assert_eq!(Topology::Routed(Links::default()).joint_link(&unlimited, &plain), unlimited);
    }
    use crate::{Family, SizeOf, Transport};

    fn cell(mechanism: Mechanism) -> Cell {
        let mut cell = Cell::new(Family::Ipv6, Transport::Udp, SizeOf::Payload, 1400);
        cell.settings.mechanism = Some(mechanism);
        cell
    }

    #[test]
    fn message_rate_follows_headers_on_the_fullest_link() {
        let link_config = LinkConfig { rate: Some(Rate(100_000_000)), mtu: 1500, offloads: false };
        // IPv6 40, UDP 8, and 38 for the frame: preamble, header, check sequence, gap.
        assert_eq!(link_config.messages_per_second(&cell(Mechanism::Native)), Some(12_500_000.0 / 1486.0));
        assert_eq!(link_config.messages_per_second(&cell(Mechanism::SixInFour)), Some(12_500_000.0 / 1506.0));
        // A packet that a translator makes smaller was larger before.
        assert_eq!(link_config.messages_per_second(&cell(Mechanism::Nat64)), Some(12_500_000.0 / 1486.0));
        assert_eq!(
            LinkConfig { rate: None, ..link_config }.messages_per_second(&cell(Mechanism::Native)),
            None
        );
    }

    #[test]
    fn link_has_rate_and_mtu_of_the_bed_or_its_own() {
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
        let own = OwnLink { rate: Some(Rate(1_000_000_000)), mtu: Some(9000), ..link };
        assert_eq!(own.describe(), ["1 Gbit/s", "MTU 9000", "delay 5 ms", "loss 0.1 %"]);
    }
}
