//! The hosts of a testbed, identified by their position on the path.

use stacklab_model::Role;
use stacklab_model::wifi::MOST_STATIONS;
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
}

/// The names of other stations.
const STATIONS: [&str; MOST_STATIONS as usize] =
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
