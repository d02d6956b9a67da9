//! The route to another host: source address, interface, MTU.

use crate::engine::endpoint;
use crate::error::{Attempt, EngineError};
use crate::host::zone;
use crate::sys;
use socket2::{Domain, Socket, Type};
use stacklab_model::ScopedAddr;
use std::io;
use std::net::SocketAddr;

/// A placeholder port: a datagram socket is connected to it and nothing is sent.
const NO_SERVICE: u16 = 9;

/// The local end of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Own address. If it is link-local, with the zone as the other end's was given.
    pub address: ScopedAddr,
    /// The interface that holds it.
    pub interface: String,
    /// MTU of that interface, bytes.
    pub mtu: u32,
}

/// The kernel's route to an address, from the address `from` if given. Nothing is sent.
pub fn route_to(to: &ScopedAddr, from: Option<&ScopedAddr>) -> Result<Route, EngineError> {
    let attempt = || match from {
        Some(from) => format!("find a route from {from} to {to}"),
        None => format!("find a way to {to}"),
    };
    let seen = || -> io::Result<(Socket, SocketAddr)> {
        let mut there = zone::socket_addr(to, NO_SERVICE)?;
        let socket = Socket::new(Domain::for_address(there), Type::DGRAM, None)?;
        if let Some(from) = from {
            let own;
            (own, there) = zone::ends(from, there)?;
            socket.bind(&own.into())?;
        }
        socket.connect(&there.into())?;
        let own = socket.local_addr()?.as_socket().ok_or_else(|| io::Error::other("no IP address"))?;
        Ok((socket, own))
    };
    let (socket, own) = seen().attempt(attempt)?;
    let interface = endpoint::interface_of(own)?;
    let mtu = sys::interface_mtu(&socket, &interface).attempt(|| format!("read the MTU of {interface}"))?;
    let address = match to.zone() {
        Some(zone) => ScopedAddr::new(own.ip(), Some(zone)),
        None => own.into(),
    };
    Ok(Route { address, interface, mtu })
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::Family;

    #[test]
    fn loopback_is_seen_from_itself() {
        for family in Family::ALL {
            let own = ScopedAddr::from(family.loopback());
            let route = route_to(&own, None).unwrap();
            assert_eq!(route.address, own);
            assert!(route.mtu >= 1280, "{route:?}");
            assert_eq!(route_to(&own, Some(&own)).unwrap(), route);
        }
    }

    #[test]
    fn an_address_that_this_host_has_not_is_no_place_to_see_from() {
        let [there, other] = ["127.0.0.1", "192.0.2.77"].map(|text| text.parse().unwrap());
        let error = route_to(&there, Some(&other)).unwrap_err();
        assert!(error.to_string().contains("from 192.0.2.77 to 127.0.0.1"), "{error}");
    }
}
