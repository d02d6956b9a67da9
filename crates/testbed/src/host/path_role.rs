//! The role of a guest on the path.

use crate::link::addressing::routed_hardware_address;
use crate::{INTERFACE, MIDDLE, Router, Site, hardware_address};
use serde::{Deserialize, Serialize};
use stacklab_model::{Mechanism, Role};

/// The role of a guest in place of a host on the path. Addresses are the same in every testbed
/// (`link/addressing.rs`), and MTUs are bytes.
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
        let of = |node, link, mtu| Interface { link, hardware: routed_hardware_address(node, link), mtu };
        match *self {
            PathRole::Host { role, mtu } => {
                vec![Interface { link: INTERFACE, hardware: hardware_address(role), mtu }]
            }
            PathRole::Client { site, mtu, .. } => vec![of(site.client(), INTERFACE, mtu)],
            PathRole::Router { router, near_mtu } => {
                let node = router.site.router();
                vec![of(node, INTERFACE, near_mtu), of(node, MIDDLE, router.mtu)]
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
