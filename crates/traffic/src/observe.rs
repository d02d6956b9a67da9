//! What the kernel says of a socket and its path.

use crate::error::{Attempt, EngineError};
use crate::{sys, tune};
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::SockaddrStorage;
use socket2::{Domain, Protocol, Socket};
use stacklab_model::{Endpoint, Family, Transport};
use std::io;
use std::net::{IpAddr, SocketAddr};

/// The name of the interface that holds an address.
pub fn interface_of(address: IpAddr) -> Result<String, EngineError> {
    let interfaces = getifaddrs().map_err(io::Error::from).attempt(|| "list the interfaces".to_owned())?;
    let holds = |storage: &SockaddrStorage| {
        let v4 = storage.as_sockaddr_in().map(|found| IpAddr::from(found.ip()));
        v4.or_else(|| storage.as_sockaddr_in6().map(|found| IpAddr::from(found.ip()))) == Some(address)
    };
    let found = interfaces.into_iter().find(|entry| entry.address.as_ref().is_some_and(holds));
    found
        .map(|entry| entry.interface_name)
        .ok_or_else(|| io::Error::new(io::ErrorKind::AddrNotAvailable, "no interface has it"))
        .attempt(|| format!("find the interface of {address}"))
}

/// The socket as the kernel has it. `peer` is where its messages come from where it is not connected.
pub fn endpoint(socket: &Socket, peer: Option<SocketAddr>) -> Result<Endpoint, EngineError> {
    let seen = || -> io::Result<(Family, Transport, SocketAddr)> {
        let family = match socket.domain()? {
            Domain::IPV4 => Family::Ipv4,
            Domain::IPV6 => Family::Ipv6,
            other => return Err(io::Error::other(format!("a socket of domain {other:?}"))),
        };
        let transport = match socket.protocol()? {
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
    let interface = interface_of(local.ip())?;
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
        congestion_control: congestion_control(socket, transport),
        options: tune::options(socket, family, transport),
    })
}

fn congestion_control(socket: &Socket, transport: Transport) -> Option<String> {
    let name = (transport == Transport::Tcp).then(|| socket.tcp_congestion().ok()).flatten()?;
    Some(String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned())
}

/// The largest resident set of this process so far, KiB.
pub fn peak_rss_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}
