//! The hosts of a testbed, by their place on the path.

use stacklab_model::Role;
use std::fmt;

/// A host by its place on the path. A direct link has the sender and the receiver only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Node {
    /// The client that sends.
    Sender,
    /// The router next to it.
    Router1,
    /// The router beyond the middle link.
    Router2,
    /// The client that receives.
    Receiver,
}

impl Node {
    /// All four, in their order on the path.
    pub const ALL: [Node; 4] = [Node::Sender, Node::Router1, Node::Router2, Node::Receiver];

    /// What it is called, in messages and in the record.
    pub fn name(self) -> &'static str {
        match self {
            Node::Sender => "sender",
            Node::Router1 => "router1",
            Node::Router2 => "router2",
            Node::Receiver => "receiver",
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
