//! The route to another host: source address, interface, MTU.

use crate::engine::endpoint;
use crate::error::{Attempt, EngineError};
use crate::sys;
use socket2::{Domain, Socket, Type};
use std::io;
use std::net::{IpAddr, SocketAddr};

/// A placeholder port: a datagram socket is connected to it and nothing is sent.
const NO_SERVICE: u16 = 9;

/// The local end of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Own address.
    pub address: IpAddr,
    /// The interface that holds it.
    pub interface: String,
    /// MTU of that interface, bytes.
    pub mtu: u32,
}

/// The kernel's route to an address, from the address `from` if given. Nothing is sent.
///
/// # Errors
/// When no route leads there, or no interface has the address.
pub fn route_to(to: IpAddr, from: Option<IpAddr>) -> Result<Route, EngineError> {
    let there = SocketAddr::new(to, NO_SERVICE);
    let attempt = || match from {
        Some(from) => format!("find a route from {from} to {to}"),
        None => format!("find a way to {to}"),
    };
    let seen = || -> io::Result<(Socket, IpAddr)> {
        let socket = Socket::new(Domain::for_address(there), Type::DGRAM, None)?;
        if let Some(from) = from {
            socket.bind(&SocketAddr::new(from, 0).into())?;
        }
        socket.connect(&there.into())?;
        let own = socket.local_addr()?.as_socket().ok_or_else(|| io::Error::other("no IP address"))?;
        Ok((socket, own.ip()))
    };
    let (socket, address) = seen().attempt(attempt)?;
    let interface = endpoint::interface_of(address)?;
    let mtu = sys::interface_mtu(&socket, &interface).attempt(|| format!("read the MTU of {interface}"))?;
    Ok(Route { address, interface, mtu })
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::Family;

    #[test]
    fn loopback_is_seen_from_itself() {
        for family in Family::ALL {
            let route = route_to(family.loopback(), None).unwrap();
            assert_eq!(route.address, family.loopback());
            assert!(route.mtu >= 1280, "{route:?}");
            assert_eq!(route_to(family.loopback(), Some(family.loopback())).unwrap(), route);
        }
    }

    #[test]
    fn an_address_that_this_host_has_not_is_no_place_to_see_from() {
        let error = route_to("127.0.0.1".parse().unwrap(), Some("192.0.2.77".parse().unwrap())).unwrap_err();
        assert!(error.to_string().contains("from 192.0.2.77 to 127.0.0.1"), "{error}");
    }
}
