//! The hosts of a testbed by their position on the path, and the role of a guest there.

use crate::addressing::routed_hardware_address;
use crate::{CustomerId, INTERFACE, MIDDLE, Router, Site, hardware_address};
use serde::{Deserialize, Serialize};
use stacklab_model::wifi::WifiSettings;
use stacklab_model::{Mechanism, Role};
use std::fmt;

/// A host, identified by its position on the path. A direct link has only the sender and the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Node {
    /// The client that sends.
    Sender,
    /// The router next to the sender.
    Router1,
    /// The router next to the receiver.
    Router2,
    /// The client that receives.
    Receiver,
    /// The access point between two stations, which are the sender and the receiver.
    AccessPoint,
    /// One of the other stations of a Wi-Fi network, which are numbered from 1.
    Station(u8),
    /// The router next to the sender of one of several customers, after the first.
    CustomerRouter(CustomerId),
}

const STATIONS: [&str; WifiSettings::MAX_STATIONS as usize] =
    ["station 1", "station 2", "station 3", "station 4", "station 5", "station 6", "station 7", "station 8"];

impl Node {
    /// The four hosts of a routed testbed, in path order.
    pub const ALL: [Node; 4] = [Node::Sender, Node::Router1, Node::Router2, Node::Receiver];

    /// The host's name in messages and in the record.
    pub fn name(self) -> &'static str {
        match self {
            Node::Sender => "sender",
            Node::Router1 => "router1",
            Node::Router2 => "router2",
            Node::Receiver => "receiver",
            Node::AccessPoint => "access point",
            Node::Station(number) => {
                let place = usize::from(number).checked_sub(1);
                place.and_then(|place| STATIONS.get(place)).copied().unwrap_or("a station")
            }
            Node::CustomerRouter(customer) => customer.router(),
        }
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl From<Role> for Node {
    fn from(role: Role) -> Self {
        match role {
            Role::Sender => Node::Sender,
            Role::Receiver => Node::Receiver,
        }
    }
}

/// The role of a guest in place of a host on the path. Addresses are the same in every testbed
/// (`addressing.rs`), and MTUs are bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathRole {
    /// A host at an end of a direct link outside the guest.
    Host {
        /// The end of the link.
        role: Role,
        /// MTU of its interface.
        mtu: u32,
    },
    /// A client (sender or receiver). Its router is outside the guest.
    Client {
        /// Its end of the path.
        site: Site,
        /// The mechanism between the routers.
        mechanism: Mechanism,
        /// MTU of its link.
        mtu: u32,
        /// MTU of the link between the routers.
        middle_mtu: u32,
    },
    /// A router. Its client and the other router are outside the guest.
    Router {
        /// Its site and its mechanism.
        router: Router,
        /// MTU of the link to its client.
        near_mtu: u32,
    },
}

impl PathRole {
    /// The guest's interfaces on links outside the guest.
    pub fn interfaces(&self) -> Vec<Interface> {
        match *self {
            PathRole::Host { role, mtu } => {
                vec![Interface { link: INTERFACE, hardware: hardware_address(role), mtu }]
            }
            PathRole::Client { site, mtu, .. } => vec![place_interface(site.client(), INTERFACE, mtu)],
            PathRole::Router { router, near_mtu } => {
                let node = router.site.router();
                vec![place_interface(node, INTERFACE, near_mtu), place_interface(node, MIDDLE, router.mtu)]
            }
        }
    }
}

fn place_interface(node: Node, link: &'static str, mtu: u32) -> Interface {
    Interface { link, hardware: routed_hardware_address(node, link), mtu }
}

/// A guest's interface on a link outside the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interface {
    /// Its name in the guest, which is also the name of the namespace's link end that it takes over.
    pub link: &'static str,
    /// Its hardware address, which its neighbours use.
    pub hardware: [u8; 6],
    /// The link's MTU, bytes.
    pub mtu: u32,
}
