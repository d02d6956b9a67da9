//! WireGuard: both families encrypted in UDP, over IPv4 or over IPv6. It is configured over generic netlink
//! (linux/wireguard.h). The keys are random.

use crate::kernel::genl::message::{attribute, text};
use crate::kernel::genl::socket::Socket;
use crate::link::addressing::TUNNEL;
use crate::{Attempt, Fault, Router};
use serde::{Deserialize, Serialize};
use stacklab_model::{Family, Mechanism, Tunnel};
use std::net::IpAddr;
use x25519_dalek::{X25519_BASEPOINT_BYTES, x25519};

/// The port that both routers listen on.
pub(crate) const PORT: u16 = 51820;

/// Commands and attributes of linux/wireguard.h.
const SET_DEVICE: u8 = 1;
const DEVICE_NAME: u16 = 2;
const DEVICE_PRIVATE_KEY: u16 = 3;
const DEVICE_LISTEN_PORT: u16 = 6;
const DEVICE_PEERS: u16 = 8;
const PEER_PUBLIC_KEY: u16 = 1;
const PEER_ENDPOINT: u16 = 4;
const PEER_ALLOWED: u16 = 9;
const ALLOWED_FAMILY: u16 = 1;
const ALLOWED_ADDRESS: u16 = 2;
const ALLOWED_MASK: u16 = 3;
/// The bit in an attribute's type which marks nested attributes.
const NESTED: u16 = 1 << 15;

/// The keys that a router needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keys {
    own: [u8; 32],
    /// The other router's public key.
    other: [u8; 32],
}

impl Keys {
    /// Generates keys for the near and the far router. `None` if the mechanism does not encrypt.
    pub(crate) fn draw(mechanism: Mechanism) -> Result<[Option<Self>; 2], Fault> {
        if !mechanism.tunnel().is_some_and(Tunnel::encrypts) {
            return Ok([None, None]);
        }
        let mut private = [[0; 32]; 2];
        let drawn = private.iter_mut().try_for_each(|key| getrandom::fill(key));
        drawn.attempt("draw keys for WireGuard")?;
        let [near, far] = private;
        let public = |private| x25519(private, X25519_BASEPOINT_BYTES);
        Ok([Keys { own: near, other: public(far) }, Keys { own: far, other: public(near) }].map(Some))
    }
}

/// Configures the device with the other router as its peer at this address.
pub(super) fn set_up(router: &Router, other: IpAddr) -> Result<(), Fault> {
    let keys = router.keys.ok_or("it has none").attempt("find the router's keys for WireGuard")?;
    let lines = [
        text(DEVICE_NAME, TUNNEL),
        attribute(DEVICE_PRIVATE_KEY, &keys.own),
        attribute(DEVICE_LISTEN_PORT, &PORT.to_ne_bytes()),
        attribute(DEVICE_PEERS | NESTED, &attribute(NESTED, &peer(other, &keys.other))),
    ];
    let set = Socket::open("wireguard").and_then(|mut socket| socket.ask(SET_DEVICE, &lines.concat()));
    set.map(drop).attempt("give the WireGuard device its key and its peer")
}

/// The configuration of the other router as the device's peer.
fn peer(other: IpAddr, key: &[u8; 32]) -> Vec<u8> {
    let all = Family::ALL.iter().flat_map(|family| {
        let (number, bytes): (u16, &[u8]) = match family {
            Family::Ipv4 => (libc::AF_INET as u16, &[0; 4]),
            Family::Ipv6 => (libc::AF_INET6 as u16, &[0; 16]),
        };
        let one = [
            attribute(ALLOWED_FAMILY, &number.to_ne_bytes()),
            attribute(ALLOWED_ADDRESS, bytes),
            attribute(ALLOWED_MASK, &[0]),
        ];
        attribute(NESTED, &one.concat())
    });
    let lines = [
        attribute(PEER_PUBLIC_KEY, key),
        attribute(PEER_ENDPOINT, &socket_address(other)),
        attribute(PEER_ALLOWED | NESTED, &all.collect::<Vec<u8>>()),
    ];
    lines.concat()
}

/// `struct sockaddr_in` or `sockaddr_in6` with the port.
fn socket_address(address: IpAddr) -> Vec<u8> {
    let port = PORT.to_be_bytes();
    match address {
        IpAddr::V4(address) => {
            [&(libc::AF_INET as u16).to_ne_bytes()[..], &port, &address.octets(), &[0; 8]].concat()
        }
        IpAddr::V6(address) => {
            [&(libc::AF_INET6 as u16).to_ne_bytes()[..], &port, &[0; 4], &address.octets(), &[0; 4]].concat()
        }
    }
}
