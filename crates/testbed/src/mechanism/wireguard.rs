//! WireGuard: both families encrypted in UDP, over IPv4 or over IPv6. It is configured over generic netlink
//! (linux/wireguard.h). The keys are random.

use crate::error::{Attempt, Fault};
use crate::link::addressing::TUNNEL;
use crate::mechanism::attribute::{NESTED, attribute};
use crate::mechanism::router::Router;
use rtnetlink::sys::{Socket, SocketAddr as NetlinkAddress, protocols::NETLINK_GENERIC};
use stacklab_model::Family;
use std::io;
use std::net::IpAddr;

/// The port that both routers listen on.
pub(crate) const PORT: u16 = 51820;

/// The controller's family, its request for another family's number, and attributes (linux/genetlink.h).
const CONTROLLER: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
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
/// Flag bits of a message, and message types (linux/netlink.h).
const REQUEST: u16 = 1;
const ACKNOWLEDGE: u16 = 4;
const ERROR: u16 = 2;

/// Configures the device with the other router as its peer at this address.
pub(super) fn set_up(router: &Router, other: IpAddr) -> Result<(), Fault> {
    let keys = router.keys.ok_or_else(|| io::Error::other("it has none"));
    let keys = keys.attempt("find the router's keys for WireGuard")?;
    let told = [
        attribute(DEVICE_NAME, &[TUNNEL.as_bytes(), &[0]].concat()),
        attribute(DEVICE_PRIVATE_KEY, &keys.own),
        attribute(DEVICE_LISTEN_PORT, &PORT.to_ne_bytes()),
        attribute(DEVICE_PEERS | NESTED, &attribute(NESTED, &peer(other, &keys.other))),
    ];
    tell(&told.concat()).attempt("give the WireGuard device its key and its peer")
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
    let told = [
        attribute(PEER_PUBLIC_KEY, key),
        attribute(PEER_ENDPOINT, &socket_address(other)),
        attribute(PEER_ALLOWED | NESTED, &all.collect::<Vec<u8>>()),
    ];
    told.concat()
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

/// The value of the first attribute of a type.
fn find(mut attributes: &[u8], wanted: u16) -> Option<Vec<u8>> {
    while attributes.len() >= 4 {
        let half = |at: usize| u16::from_ne_bytes([attributes[at], attributes[at + 1]]);
        let length = usize::from(half(0)).max(4);
        if half(2) & !NESTED == wanted {
            return attributes.get(4..length).map(<[u8]>::to_vec);
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
    None
}

/// Sends a configuration of a device to WireGuard.
fn tell(attributes: &[u8]) -> io::Result<()> {
    let mut socket = Socket::new(NETLINK_GENERIC)?;
    socket.bind_auto()?;
    socket.connect(&NetlinkAddress::new(0, 0))?;
    let asked = attribute(FAMILY_NAME, b"wireguard\0");
    let family = exchange(&socket, CONTROLLER, GET_FAMILY, &asked)?;
    let number = family.iter().find_map(|body| find(body, FAMILY_ID));
    let number = number.and_then(|bytes| Some(u16::from_ne_bytes(bytes.try_into().ok()?)));
    let number = number.ok_or_else(|| io::Error::other("this kernel has no WireGuard"))?;
    exchange(&socket, number, SET_DEVICE, attributes).map(drop)
}

/// Sends a request, and returns the attributes of each answer before the acknowledgement.
fn exchange(socket: &Socket, family: u16, command: u8, attributes: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    let length = 20 + attributes.len() as u32;
    // struct nlmsghdr: length, type, flags, sequence, port; struct genlmsghdr: command, version, reserved
    let mut message = length.to_ne_bytes().to_vec();
    message.extend(family.to_ne_bytes());
    message.extend((REQUEST | ACKNOWLEDGE).to_ne_bytes());
    message.extend([0; 8]);
    message.extend([command, 1, 0, 0]);
    message.extend(attributes);
    socket.send(&message, 0)?;
    let mut answers = Vec::new();
    loop {
        let (bytes, _) = socket.recv_from_full()?;
        let mut rest = &bytes[..];
        while rest.len() >= 16 {
            let length = u32::from_ne_bytes([rest[0], rest[1], rest[2], rest[3]]) as usize;
            let kind = u16::from_ne_bytes([rest[4], rest[5]]);
            let body = rest.get(16..length).unwrap_or_default();
            if kind == ERROR {
                let code = body.get(..4).and_then(|code| code.try_into().ok()).map_or(0, i32::from_ne_bytes);
                return if code == 0 { Ok(answers) } else { Err(io::Error::from_raw_os_error(-code)) };
            }
            answers.push(body.get(4..).unwrap_or_default().to_vec());
            rest = rest.get(length.max(16).next_multiple_of(4)..).unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_found_as_they_were_written() {
        let all =
            [attribute(3, &[1]), attribute(PEER_PUBLIC_KEY, &[7; 32]), attribute(9 | NESTED, b"x")].concat();
        assert_eq!(all.len() % 4, 0);
        assert_eq!(find(&all, PEER_PUBLIC_KEY), Some(vec![7; 32]));
        assert_eq!(find(&all, 9), Some(b"x".to_vec()));
        assert_eq!(find(&all, 5), None);
        assert_eq!(find(&all[..7], 9), None);
    }
}
