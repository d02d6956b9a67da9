//! A trial's sockets at the host's own address: opened, bound, listening, and observed.

use crate::engine::peers::DataPorts;
use crate::engine::{mapped, socket_options};
use crate::sys::{self, Socket, SocketOption};
use crate::{Attempt, EngineError, host};
use socket2::{Domain, Protocol, Type};
use stacklab_model::{Counters, Endpoint, Family, ScopedAddr, Transport, TrialSpec, Uplink};
use std::io;
use std::net::{IpAddr, SocketAddr};

const BACKLOG: i32 = 1024;

/// Opens a socket of the trial's family and transport, bound to the host's own address with port 0.
pub(crate) fn open(spec: &TrialSpec, address: SocketAddr) -> Result<Socket, EngineError> {
    bind(spec, address, false).attempt(|| format!("open a {} socket on {address}", spec.transport))
}

/// The same for a flow: on the link of its customer if there are several.
pub(crate) fn open_flow(spec: &TrialSpec, address: SocketAddr, flow: u32) -> Result<Socket, EngineError> {
    let Some(uplink) = choose_uplink(spec, flow) else { return open(spec, address) };
    bind_to_uplink(spec, uplink).attempt(|| {
        let Uplink { interface, address } = uplink;
        format!("open a {} socket of flow {flow} on {address} at {interface}", spec.transport)
    })
}

fn bind_to_uplink(spec: &TrialSpec, uplink: &Uplink) -> io::Result<Socket> {
    let socket = create(spec, uplink.address)?;
    sys::set(&socket, SocketOption::Device(&uplink.interface))?;
    bind_to(&socket, mapped::to_socket(spec, SocketAddr::new(uplink.address, 0)))?;
    Ok(socket)
}

fn choose_uplink(spec: &TrialSpec, flow: u32) -> Option<&Uplink> {
    let count = spec.uplinks.len().max(1);
    spec.uplinks.get(flow as usize % count)
}

/// What the sender's interfaces have counted: the one of its address, or those of all customers together.
pub(crate) fn count_at_uplinks(spec: &TrialSpec, interface: &str) -> Counters {
    let Some((first, others)) = spec.uplinks.split_first() else { return host::counters(interface) };
    let mut counters = host::counters(&first.interface);
    for uplink in others {
        counters.add(host::interface_counters(&uplink.interface));
    }
    counters
}

/// The same, at a port that other sockets of the trial have too if it is shared.
pub(crate) fn bind(spec: &TrialSpec, address: SocketAddr, shared: bool) -> io::Result<Socket> {
    let socket = create(spec, address.ip())?;
    if shared {
        socket.set_reuse_address(true)?;
    }
    bind_to(&socket, mapped::to_socket(spec, address))?;
    Ok(socket)
}

/// A socket for this address, with the trial's options, that is not bound yet.
fn create(spec: &TrialSpec, address: IpAddr) -> io::Result<Socket> {
    let (kind, protocol) = match spec.transport {
        Transport::Tcp => (Type::STREAM, Protocol::TCP),
        Transport::Udp => (Type::DGRAM, Protocol::UDP),
    };
    let own = mapped::to_socket(spec, SocketAddr::new(address, 0));
    let socket = Socket::new(Domain::for_address(own), kind, Some(protocol))?;
    if own.is_ipv6() {
        socket.set_only_v6(address.is_ipv6())?;
    }
    socket_options::set(&socket, spec)?;
    Ok(socket)
}

fn bind_to(socket: &Socket, own: SocketAddr) -> io::Result<()> {
    socket.bind(&own.into()).map_err(|error| match (error.kind(), own.port()) {
        (io::ErrorKind::AddrInUse, 0) => no_free_port(error),
        _ => error,
    })
}

/// A socket that listens at one of the ports, and its address.
pub(crate) fn listen(
    spec: &TrialSpec,
    address: SocketAddr,
    ports: &DataPorts,
) -> Result<(Socket, SocketAddr), EngineError> {
    ports
        .first_free(|port| listen_at(spec, address, port))
        .attempt(|| format!("listen for {} on {}", spec.transport, ScopedAddr::from(address)))
}

fn listen_at(spec: &TrialSpec, mut address: SocketAddr, port: u16) -> io::Result<(Socket, SocketAddr)> {
    address.set_port(port);
    let mut bound = address;
    if spec.destinations > 1 {
        // Datagrams arrive with addresses that lie behind this one.
        bound.set_ip(spec.family.unspecified_address());
    }
    // Connections of the trial before may still be closing at a fixed port.
    let shared = cfg!(unix) && port != 0 && spec.transport == Transport::Tcp;
    let socket = bind(spec, bound, shared)?;
    sys::set_timeouts(&socket)?;
    if spec.transport == Transport::Tcp {
        socket_options::set_listening(&socket, spec)?;
        socket.listen(BACKLOG)?;
    }
    address.set_port(local_addr(&socket)?.port());
    Ok((socket, address))
}

pub(crate) fn firewall_hint(transport: Transport, port: u16) -> String {
    format!(
        "does a firewall on the way drop {transport} to port {port}? Let it through, or have the agent listen on an open one: `stacklab agent --listen --data-port PORT`"
    )
}

/// Adds to the error of a connection what may be in its way.
pub(crate) fn add_connection_hint(error: io::Error, to: SocketAddr) -> io::Error {
    use io::ErrorKind::*;
    // How Linux says that the limit of a blocking call has passed.
    const EINPROGRESS: i32 = 115;
    let kind = match error.raw_os_error() {
        Some(EINPROGRESS) if cfg!(target_os = "linux") => TimedOut,
        _ => error.kind(),
    };
    let hint = firewall_hint(Transport::Tcp, to.port());
    match kind {
        TimedOut | WouldBlock => io::Error::new(kind, format!("no answer; {hint}")),
        AddrNotAvailable => no_free_port(error),
        HostUnreachable | NetworkUnreachable | PermissionDenied | ConnectionRefused => {
            io::Error::new(kind, format!("{error}; {hint}"))
        }
        _ => error,
    }
}

/// Adds to the error of a system that finds no port what to do.
fn no_free_port(error: io::Error) -> io::Error {
    let range = if cfg!(windows) {
        "`netsh int ipv4 set dynamicport`"
    } else {
        "net.ipv4.ip_local_port_range, for both families"
    };
    let text = format!(
        "{error}; this host may have no free port left for it: use fewer flows (-P), end other programs' connections, or widen its port range ({range})"
    );
    io::Error::new(error.kind(), text)
}

pub(crate) fn local_addr(socket: &Socket) -> io::Result<SocketAddr> {
    mapped::from_socket(&socket.local_addr()?).ok_or_else(|| io::Error::other("the socket has no IP address"))
}

/// The name of the interface that holds an address; its port does not matter.
pub(crate) fn interface_of(address: SocketAddr) -> Result<String, EngineError> {
    let found = sys::interface_of(address).attempt(|| "list the interfaces".to_owned())?;
    found
        .ok_or_else(|| io::Error::new(io::ErrorKind::AddrNotAvailable, "no interface has it"))
        .attempt(|| format!("find the interface of {}", ScopedAddr::from(address)))
}

/// Reads the socket's state from the kernel. `peer` is the source of its messages if it is not connected.
pub(crate) fn observe(socket: &Socket, peer: Option<SocketAddr>) -> Result<Endpoint, EngineError> {
    let own = local_addr(socket).attempt(attempt_to_look)?;
    observe_at(socket, own, peer)
}

/// The same of a socket that receives at other addresses besides its own one.
pub(crate) fn observe_at(
    socket: &Socket,
    local: SocketAddr,
    peer: Option<SocketAddr>,
) -> Result<Endpoint, EngineError> {
    let transport = identify_transport(socket).attempt(attempt_to_look)?;
    let family = Family::of(local.ip());
    let connected = socket.peer_addr().ok().and_then(|address| mapped::from_socket(&address));
    let nobody = SocketAddr::new(family.unspecified_address(), 0);
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

fn attempt_to_look() -> String {
    "look at the trial's own socket".to_owned()
}

fn identify_transport(socket: &Socket) -> io::Result<Transport> {
    match socket.protocol()? {
        Some(Protocol::TCP) => Ok(Transport::Tcp),
        Some(Protocol::UDP) => Ok(Transport::Udp),
        other => Err(io::Error::other(format!("a socket of protocol {other:?}"))),
    }
}
