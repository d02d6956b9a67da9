//! Sockets of a trial's flows before they are connected: bound, or listening.

use crate::engine::peers::DataPorts;
use crate::engine::socket_options;
use crate::error::{Attempt, EngineError};
use crate::sys;
use socket2::{Domain, Protocol, Socket, Type};
use stacklab_model::{ScopedAddr, Transport, TrialSpec};
use std::io;
use std::net::SocketAddr;

const BACKLOG: i32 = 1024;

/// Opens a socket of the trial's family and transport, bound to the host's own address with port 0, never IPv4-mapped.
pub(crate) fn open(spec: &TrialSpec, address: SocketAddr) -> Result<Socket, EngineError> {
    bound(spec, address, false).attempt(|| format!("open a {} socket on {address}", spec.transport))
}

/// The same at a port that other sockets of the trial have too.
pub(crate) fn open_shared(spec: &TrialSpec, address: SocketAddr) -> io::Result<Socket> {
    bound(spec, address, true)
}

fn bound(spec: &TrialSpec, address: SocketAddr, shared: bool) -> io::Result<Socket> {
    let (kind, protocol) = match spec.transport {
        Transport::Tcp => (Type::STREAM, Protocol::TCP),
        Transport::Udp => (Type::DGRAM, Protocol::UDP),
    };
    let socket = Socket::new(Domain::for_address(address), kind, Some(protocol))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket_options::set(&socket, spec)?;
    if shared {
        socket.set_reuse_address(true)?;
    }
    socket.bind(&address.into())?;
    Ok(socket)
}

/// A socket that listens on this address for a trial's flows, at one of the ports, and its address with the port.
pub(crate) fn listen(
    spec: &TrialSpec,
    address: SocketAddr,
    ports: &DataPorts,
) -> Result<(Socket, SocketAddr), EngineError> {
    let listening = |port: u16| -> io::Result<(Socket, SocketAddr)> {
        let at = SocketAddr::new(address.ip(), port);
        let at = match (address, at) {
            (SocketAddr::V6(address), SocketAddr::V6(mut at)) => {
                at.set_scope_id(address.scope_id());
                at.into()
            }
            _ => at,
        };
        // Connections of the trial before may still be closing at a fixed port.
        let shared = cfg!(unix) && port != 0 && spec.transport == Transport::Tcp;
        let socket = bound(spec, at, shared)?;
        sys::set_timeouts(&socket)?;
        if spec.transport == Transport::Tcp {
            socket_options::set_listening(&socket, spec)?;
            socket.listen(BACKLOG)?;
        }
        let address = socket.local_addr()?.as_socket();
        Ok((socket, address.ok_or_else(|| io::Error::other("the socket has no IP address"))?))
    };
    ports
        .first_free(listening)
        .attempt(|| format!("listen for {} on {}", spec.transport, ScopedAddr::from(address)))
}

pub(crate) fn firewall_hint(transport: Transport, port: u16) -> String {
    format!(
        "does a firewall on the way drop {transport} to port {port}? Let it through, or have the agent listen on an open one: `stacklab agent --listen --data-port PORT`"
    )
}

/// The error of a connection that did not open, with what may be in its way.
pub(crate) fn unreached(error: io::Error, to: SocketAddr) -> io::Error {
    // How Linux says that the limit of a blocking call has passed.
    const EINPROGRESS: i32 = 115;
    let kind = match error.raw_os_error() {
        Some(EINPROGRESS) if cfg!(target_os = "linux") => io::ErrorKind::TimedOut,
        _ => error.kind(),
    };
    match kind {
        io::ErrorKind::TimedOut
        | io::ErrorKind::WouldBlock
        | io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable
        | io::ErrorKind::PermissionDenied
        | io::ErrorKind::ConnectionRefused => {
            let what = match kind {
                io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => "no answer".to_owned(),
                _ => error.to_string(),
            };
            let hint = firewall_hint(Transport::Tcp, to.port());
            io::Error::new(kind, format!("{what}; {hint}"))
        }
        _ => error,
    }
}
