//! The role of a guest on the path.

use crate::link::addressing::{INTERFACE, MIDDLE, Site, hardware_address, routed_hardware_address};
use crate::mechanism::router::Router;
use serde::{Deserialize, Serialize};
use stacklab_model::{Mechanism, Role};

/// The role of a guest in place of a host on the path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathRole {
    /// A host at an end of a link outside the guest.
    Host {
        /// The end of the link.
        role: Role,
        /// MTU of its interface, bytes.
        mtu: u32,
        /// Whether offloads stay on.
        offloads: bool,
    },
    /// A client (sender or receiver). Its router is outside the guest.
    Client(ClientRole),
    /// A router. Its client and the other router are outside the guest.
    Router(RouterRole),
}

impl PathRole {
    /// The guest's interfaces on links outside the guest.
    pub fn interfaces(&self) -> Vec<Interface> {
        let of = |node, link, mtu| Interface { link, hardware: routed_hardware_address(node, link), mtu };
        match self {
            PathRole::Host { role, mtu, .. } => {
                vec![Interface { link: INTERFACE, hardware: hardware_address(*role), mtu: *mtu }]
            }
            PathRole::Client(client) => vec![of(client.site.client(), INTERFACE, client.mtu)],
            PathRole::Router(RouterRole { router, near_mtu, .. }) => {
                let node = router.site.router();
                vec![of(node, INTERFACE, *near_mtu), of(node, MIDDLE, router.mtu)]
            }
        }
    }
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

/// A client of a routed testbed. Addresses are the same in every testbed (`link/addressing.rs`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientRole {
    /// The client's end of the path.
    pub site: Site,
    /// The mechanism between the routers.
    pub mechanism: Mechanism,
    /// MTU of the host's link, bytes.
    pub mtu: u32,
    /// MTU of the link between the routers, bytes.
    pub middle_mtu: u32,
    /// Whether offloads stay on.
    pub offloads: bool,
}

/// A router of a routed testbed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RouterRole {
    /// The router's site, and its mechanism.
    pub router: Router,
    /// MTU of the link to its client, bytes.
    pub near_mtu: u32,
    /// Whether offloads stay on.
    pub offloads: bool,
}
