//! Tunnels: the device that a definition describes ([`stacklab_model::Tunnel`]), and the routes into it. WireGuard is
//! configured over generic netlink (linux/wireguard.h), with random keys.

use crate::addressing::{TUNNEL, routed_hardware_address};
use crate::kernel::genl::message::{attribute, text};
use crate::kernel::genl::socket::Socket;
use crate::kernel::netlink::{Route, add_address, add_device, add_neighbour, change, without_link_local};
use crate::mechanism::devices::{describe_device, write_tunnel_device};
use crate::mechanism::udp_port::GUE;
use crate::mechanism::{esp, fou, segments};
use crate::{Attempt, Fault, Router};
use serde::{Deserialize, Serialize};
use stacklab_model::{Family, Mechanism, Remote, Setup, Tunnel};
use std::net::IpAddr;
use x25519_dalek::{X25519_BASEPOINT_BYTES, x25519};

pub(crate) fn build(router: &Router, tunnel: &Tunnel) -> Result<(), Fault> {
    match tunnel.device.setup {
        Setup::Segments => return segments::build(router, tunnel.count_segments()),
        Setup::SegmentsToTable => return segments::build_with_table(router),
        Setup::Esp => return esp::build(router, tunnel),
        Setup::Fou => return fou::build(router, tunnel),
        Setup::Gue => GUE.open(tunnel.outer())?,
        Setup::GreInEsp => esp::encrypt_gre(router.site, tunnel)?,
        Setup::IpTunnel | Setup::Gre | Setup::WireGuard | Setup::Vxlan | Setup::Geneve => {}
    }
    let outer = tunnel.outer();
    let own = router.own_outer(outer);
    let other = router.other_outer(outer);
    let ends = [own, other];
    let what = describe_device(&format!("{} device of {}", tunnel.device.kind, router.mechanism), ends);
    add_device(write_tunnel_device(router.tunnel(), router.mechanism, tunnel, ends), &what)?;
    if tunnel.device.setup == Setup::WireGuard {
        set_up_wireguard(router, other)?;
    }
    if tunnel.carries_frames() {
        join_ethernet(router)?;
    }
    router.raise_tunnel()?;
    if tunnel.carries_frames() {
        add_ethernet_ends(router)?;
    }
    match tunnel.remote {
        Remote::Configured => router.route_into_tunnel(),
        Remote::InDestination { prefix: (network, length), .. } => {
            Route { to: (network.into(), length), device: TUNNEL, via: None, mtu: None }.add()
        }
    }
}

/// Gives the device of Ethernet frames a known hardware address, and nothing that sends by itself.
fn join_ethernet(router: &Router) -> Result<(), Fault> {
    let own = routed_hardware_address(router.site.router(), TUNNEL);
    change(TUNNEL, "set the hardware address of", |link| link.address(own.to_vec()))?;
    without_link_local(TUNNEL)
}

/// The addresses of the routers on the device: each is the other's gateway, and nobody asks for neighbours.
fn add_ethernet_ends(router: &Router) -> Result<(), Fault> {
    let other = router.site.other();
    for family in Family::ALL.iter().filter(|family| router.mechanism.carries(**family)) {
        let (own, prefix) = router.site.tunnel_end(*family);
        add_address(TUNNEL, own, prefix)?;
        let neighbour = routed_hardware_address(other.router(), TUNNEL);
        add_neighbour(TUNNEL, other.tunnel_end(*family).0, neighbour)?;
    }
    Ok(())
}

pub(crate) const WIREGUARD_PORT: u16 = 51820;

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
        if mechanism.tunnel().is_none_or(|tunnel| tunnel.device.setup != Setup::WireGuard) {
            return Ok([None, None]);
        }
        let mut private = [[0; 32]; 2];
        let drawn = private.iter_mut().try_for_each(|key| getrandom::fill(key));
        drawn.attempt("draw keys for WireGuard")?;
        let [near, far] = private;
        let near_public = x25519(near, X25519_BASEPOINT_BYTES);
        let far_public = x25519(far, X25519_BASEPOINT_BYTES);
        Ok([Some(Keys { own: near, other: far_public }), Some(Keys { own: far, other: near_public })])
    }
}

pub(crate) fn set_up_wireguard(router: &Router, other: IpAddr) -> Result<(), Fault> {
    let keys = router.keys.ok_or("it has none").attempt("find the router's keys for WireGuard")?;
    let lines = [
        text(DEVICE_NAME, TUNNEL),
        attribute(DEVICE_PRIVATE_KEY, &keys.own),
        attribute(DEVICE_LISTEN_PORT, &WIREGUARD_PORT.to_ne_bytes()),
        attribute(DEVICE_PEERS | NESTED, &attribute(NESTED, &peer(other, &keys.other))),
    ];
    let set = Socket::open("wireguard").and_then(|mut socket| socket.ask(SET_DEVICE, &lines.concat()));
    set.map(drop).attempt("give the WireGuard device its key and its peer")
}

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
    let port = WIREGUARD_PORT.to_be_bytes();
    match address {
        IpAddr::V4(address) => {
            [&(libc::AF_INET as u16).to_ne_bytes()[..], &port, &address.octets(), &[0; 8]].concat()
        }
        IpAddr::V6(address) => {
            [&(libc::AF_INET6 as u16).to_ne_bytes()[..], &port, &[0; 4], &address.octets(), &[0; 4]].concat()
        }
    }
}
