//! What a guest is told before it is an agent, and what it answers: one JSON object a line, on the stream that the agent
//! then uses.

use crate::address::{INTERFACE, hardware_address};
use crate::mechanism::Router;
use crate::routed::Carried;
use crate::routed::plan::{self, MIDDLE, NEAR, Site};
use serde::{Deserialize, Serialize};
use stacklab_model::{LinkConfig, Links, Mechanism, Role, Translator};

/// What a guest is to be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// A host at an end of the link outside.
    Host {
        /// Which end it is.
        role: Role,
        /// MTU of its interface, bytes.
        mtu: u32,
        /// Whether offloads stay on.
        offloads: bool,
    },
    /// A client behind its router outside.
    Client(ClientPart),
    /// A router between its client and the other router outside.
    Router(RouterPart),
    /// The place of testbeds of its own.
    Lab(LabPart),
}

impl Part {
    /// Its interfaces on links outside.
    pub fn interfaces(&self) -> Vec<Interface> {
        let of = |node, link, mtu| Interface { link, hardware: plan::hardware_address(node, link), mtu };
        match self {
            Part::Host { role, mtu, .. } => {
                vec![Interface { link: INTERFACE, hardware: hardware_address(*role), mtu: *mtu }]
            }
            Part::Client(client) => vec![of(client.site.client(), NEAR, client.mtu)],
            Part::Router(RouterPart { router, near_mtu, .. }) => {
                let node = router.site.router();
                vec![of(node, NEAR, *near_mtu), of(node, MIDDLE, router.mtu)]
            }
            Part::Lab(_) => Vec::new(),
        }
    }
}

/// A guest's interface on a link outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interface {
    /// Its name, in the guest as in the namespace whose end of the link it takes over.
    pub link: &'static str,
    /// Its hardware address, by which its neighbours know it.
    pub hardware: [u8; 6],
    /// The link's MTU, bytes.
    pub mtu: u32,
}

/// A client of a row of hosts. Who has which address there it knows as everybody does (`routed/plan.rs`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientPart {
    /// Which end of the row it is at.
    pub site: Site,
    /// How packets cross between the routers.
    pub mechanism: Mechanism,
    /// MTU of its own link, bytes.
    pub mtu: u32,
    /// MTU of the link between the routers, bytes.
    pub middle_mtu: u32,
    /// Whether offloads stay on.
    pub offloads: bool,
}

/// A router of a row of hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RouterPart {
    /// Whose router it is, and what is built on it.
    pub router: Router,
    /// MTU of the link to its client, bytes.
    pub near_mtu: u32,
    /// Whether offloads stay on.
    pub offloads: bool,
}

/// Testbeds of routers inside a guest: one for each mechanism, all at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LabPart {
    /// What its links have in common.
    pub link_config: LinkConfig,
    /// What each has for itself.
    pub links: Links,
    /// What the testbeds differ in: how packets cross, and what translates.
    pub mechanisms: Vec<(Mechanism, Translator)>,
    /// How many commands can run at once on the hosts of the first one.
    pub doors: usize,
}

/// What a guest says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Greeting {
    /// It has booted, and waits to be told its part.
    Waiting,
    /// It has taken its part and is an agent from now on.
    Ready,
    /// Its testbeds stand, and it carries their agents' streams from now on: four for each testbed, then
    /// one for each door.
    Built {
        /// What was seen of packets in each testbed.
        carried: Vec<Vec<Carried>>,
    },
    /// It cannot take its part.
    Failed {
        /// What was attempted, and why it failed.
        reason: String,
    },
}
