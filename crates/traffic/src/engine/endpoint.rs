//! The socket, its interface and its path MTU as the kernel reports them.

use crate::engine::socket_options;
use crate::error::{Attempt, EngineError};
use crate::sys;
use socket2::{Domain, Protocol, Socket};
use stacklab_model::{Endpoint, Family, ScopedAddr, Transport};
use std::io;
use std::net::SocketAddr;

/// The name of the interface that holds an address; its port does not matter.
pub(crate) fn interface_of(address: SocketAddr) -> Result<String, EngineError> {
    let found = sys::interface_of(address).attempt(|| "list the interfaces".to_owned())?;
    found
        .ok_or_else(|| io::Error::new(io::ErrorKind::AddrNotAvailable, "no interface has it"))
        .attempt(|| format!("find the interface of {}", ScopedAddr::from(address)))
}

/// Reads the socket's state from the kernel. `peer` is the source of its messages if it is not connected.
pub(crate) fn observe(socket: &Socket, peer: Option<SocketAddr>) -> Result<Endpoint, EngineError> {
    let seen = || -> io::Result<(Family, Transport, SocketAddr)> {
        let (domain, protocol) = sys::kind(socket)?;
        let family = match domain {
            Domain::IPV4 => Family::Ipv4,
            Domain::IPV6 => Family::Ipv6,
            other => return Err(io::Error::other(format!("a socket of domain {other:?}"))),
        };
        let transport = match protocol {
            Some(Protocol::TCP) => Transport::Tcp,
            Some(Protocol::UDP) => Transport::Udp,
            other => return Err(io::Error::other(format!("a socket of protocol {other:?}"))),
        };
        let local = socket.local_addr()?.as_socket().ok_or_else(|| io::Error::other("no IP address"))?;
        Ok((family, transport, local))
    };
    let (family, transport, local) = seen().attempt(|| "look at the trial's own socket".to_owned())?;
    let connected = socket.peer_addr().ok().and_then(|address| address.as_socket());
    let nobody = SocketAddr::new(family.unspecified(), 0);
    let interface = interface_of(local)?;
    Ok(Endpoint {
        family,
        transport,
        local,
        peer: connected.or(peer).unwrap_or(nobody),
        interface_mtu: sys::interface_mtu(socket, &interface)
            .attempt(|| format!("read the MTU of {interface}"))?,
        path_mtu: sys::path_mtu(socket, family).ok(),
        offloads: sys::offloads(socket, &interface),
        interface,
        congestion_control: (transport == Transport::Tcp).then(|| sys::congestion_control(socket)).flatten(),
        options: socket_options::read_back(socket, family, transport),
    })
}
