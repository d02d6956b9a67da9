//! What a guest is told before it is an agent, and what it answers: one JSON object a line, on the stream that the agent
//! then uses.

use crate::link::addressing::{INTERFACE, MIDDLE, Site, hardware_address, routed_hardware_address};
use crate::mechanism::router::Router;
use serde::{Deserialize, Serialize};
use stacklab_model::{Family, LinkConfig, Links, Mechanism, Role, Translator};
use std::io::{self, ErrorKind, Read, Write};
use std::time::Duration;

/// Writes a message as one line.
pub(crate) fn write_message(stream: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    stream.write_all(&line)
}

/// Reads one line that is not empty, and no byte behind it. `go_on` is asked after each byte, and every `idle` while the other
/// end is not open or silent; its error ends the wait.
pub(crate) fn read_line(
    stream: &mut impl Read,
    idle: Duration,
    mut go_on: impl FnMut() -> io::Result<()>,
) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    loop {
        let mut byte = [0];
        match stream.read(&mut byte) {
            // The other end is not open yet, or closed for good.
            Ok(0) => std::thread::sleep(idle),
            Ok(_) if byte[0] == b'\n' && !line.is_empty() => return Ok(line),
            Ok(_) if byte[0] == b'\n' => {}
            Ok(_) => line.push(byte[0]),
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) => {}
            Err(error) => return Err(error),
        }
        go_on()?;
    }
}

/// The role of a guest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuestRole {
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
    Client(ClientRole),
    /// A router between its client and the other router outside.
    Router(RouterRole),
    /// The host of whole testbeds.
    #[serde(rename = "lab")]
    Hosted(HostedRole),
}

impl GuestRole {
    /// Its interfaces on links outside.
    pub fn interfaces(&self) -> Vec<Interface> {
        let of = |node, link, mtu| Interface { link, hardware: routed_hardware_address(node, link), mtu };
        match self {
            GuestRole::Host { role, mtu, .. } => {
                vec![Interface { link: INTERFACE, hardware: hardware_address(*role), mtu: *mtu }]
            }
            GuestRole::Client(client) => vec![of(client.site.client(), INTERFACE, client.mtu)],
            GuestRole::Router(RouterRole { router, near_mtu, .. }) => {
                let node = router.site.router();
                vec![of(node, INTERFACE, *near_mtu), of(node, MIDDLE, router.mtu)]
            }
            GuestRole::Hosted(_) => Vec::new(),
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

/// A client of a routed testbed. Addresses are the same in every testbed (`link/addressing.rs`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientRole {
    /// Which end of the path it is at.
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

/// A router of a routed testbed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RouterRole {
    /// Whose router it is, and what is built on it.
    pub router: Router,
    /// MTU of the link to its client, bytes.
    pub near_mtu: u32,
    /// Whether offloads stay on.
    pub offloads: bool,
}

/// Testbeds of routers inside a guest: one for each mechanism, all at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostedRole {
    /// What its links have in common.
    pub link_config: LinkConfig,
    /// What each link has of its own.
    pub links: Links,
    /// What the testbeds differ in: how packets cross, and what translates.
    pub mechanisms: Vec<(Mechanism, Translator)>,
    /// How many commands can run at once on the hosts of the first one.
    pub doors: usize,
}

/// What was seen of a family's packets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathCheck {
    /// The sender's family.
    pub family: Family,
    /// A packet's headers on the middle link, from outside to inside.
    pub headers: Vec<String>,
    /// Its frame as it was captured there.
    pub frame: Vec<u8>,
    /// The path MTU that each end found towards the other, bytes; the sender's first.
    pub path_mtus: [u32; 2],
}

/// What a guest says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Greeting {
    /// It has booted, and waits to be told its role.
    Waiting,
    /// It has taken its role and is an agent from now on.
    Ready,
    /// Its testbeds stand, and it carries their agents' streams from now on: four for each testbed, then
    /// one for each door.
    Built {
        /// What was seen of packets in each testbed.
        carried: Vec<Vec<PathCheck>>,
    },
    /// It cannot take its role.
    Failed {
        /// What was attempted, and why it failed.
        reason: String,
    },
}
