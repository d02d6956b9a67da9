//! The sockets of a trial's flows: bound, listening, opened, and observed.
//!
//! A TCP flow begins with a bare header, which shows whose it is, and whoever connects waits for an answer on each:
//! nothing is sent before the other end reads all flows. Otherwise the first flows would fill buffers that nobody
//! reads, and a rate would count them as if they had just arrived.

use crate::engine::allowance::{Allowance, Burst};
use crate::engine::header::{Header, Phase};
use crate::engine::peers::DataPorts;
use crate::engine::socket::Channel;
use crate::engine::socket_options;
use crate::{Attempt, EngineError, sys};
use socket2::{Domain, Protocol, Socket, Type};
use stacklab_model::{Endpoint, Family, HEADER_BYTES, ScopedAddr, Transport, TrialSpec};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// How long all flows together may take to open. A lost SYN costs 1, 3 or 7 seconds.
pub const OPEN_LIMIT: Duration = Duration::from_secs(15);

/// Connects all flows to a listening host, of a receiver or a waiting sender. Returns when it has admitted them.
pub(crate) fn connect_all(
    spec: &TrialSpec,
    from: SocketAddr,
    to: SocketAddr,
) -> Result<Vec<Channel>, EngineError> {
    let end = Instant::now() + OPEN_LIMIT;
    let mut channels = Vec::new();
    for _ in 0..spec.flows {
        channels.push(Channel::connect(spec, from, to, end.saturating_duration_since(Instant::now()))?);
    }
    if spec.transport == Transport::Tcp {
        announce(spec, &mut channels, end)
            .attempt(|| format!("open {} TCP flows from {} to {to}", spec.flows, from.ip()))?;
    }
    Ok(channels)
}

/// Waits until connections may be opened, and counts their headers.
pub(crate) fn await_opening(spec: &TrialSpec, allowance: &Allowance, stop: Option<&AtomicBool>) {
    if spec.transport == Transport::Tcp {
        allowance.wait(Burst::Allowed, sys::now_ns() + OPEN_LIMIT.as_nanos() as sys::Nanos, stop);
        allowance.spend(u64::from(spec.flows) * u64::from(HEADER_BYTES));
    }
}

/// Says on each flow whose it is, and waits until the receiver has admitted all.
fn announce(spec: &TrialSpec, channels: &mut [Channel], end: Instant) -> io::Result<()> {
    for (flow, channel) in channels.iter().enumerate() {
        // A new connection has room for it.
        sys::send(&channel.socket, &bare_header(spec.token, flow as u16, Phase::Warmup), sys::SEND_PLAIN)?;
    }
    for channel in channels {
        loop {
            match sys::receive(&channel.socket, &mut [0]) {
                Ok(0) => {
                    return Err(io::Error::new(io::ErrorKind::ConnectionReset, "the receiver closed one"));
                }
                Ok(_) => break,
                Err(error) if is_nothing(&error) && Instant::now() < end => {}
                Err(error) if is_nothing(&error) => {
                    let text = format!(
                        "the receiver did not admit all of them within {} s; the path loses packets: try again, or with fewer flows",
                        OPEN_LIMIT.as_secs()
                    );
                    return Err(io::Error::new(io::ErrorKind::TimedOut, text));
                }
                Err(error) => return Err(error),
            }
        }
        channel.opened();
    }
    Ok(())
}

/// A header without a message behind it, which shows whose a flow is.
pub(crate) fn bare_header(token: u32, flow: u16, phase: Phase) -> [u8; HEADER_BYTES as usize] {
    let mut header = [0; HEADER_BYTES as usize];
    Header { token, phase, flow, sent_ns: sys::now_ns(), ..Header::default() }.write(&mut header);
    header
}

pub(crate) fn is_nothing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// Informs the sender that all of its flows are read from now on.
pub(crate) fn admit_all(channels: &[Channel]) -> io::Result<()> {
    channels.iter().try_for_each(|channel| sys::send(&channel.socket, &[1], sys::SEND_PLAIN).map(drop))
}

const BACKLOG: i32 = 1024;

/// Opens a socket of the trial's family and transport, bound to the host's own address with port 0, never IPv4-mapped.
pub(crate) fn open(spec: &TrialSpec, address: SocketAddr) -> Result<Socket, EngineError> {
    bound(spec, address, false).attempt(|| format!("open a {} socket on {address}", spec.transport))
}

/// The same, at a port that other sockets of the trial have too if it is shared.
pub(crate) fn bound(spec: &TrialSpec, address: SocketAddr, shared: bool) -> io::Result<Socket> {
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
    socket.bind(&address.into()).map_err(|error| match (error.kind(), address.port()) {
        (io::ErrorKind::AddrInUse, 0) => no_free_port(error),
        _ => error,
    })?;
    Ok(socket)
}

/// A socket that listens at one of the ports, and its address.
pub(crate) fn listen(
    spec: &TrialSpec,
    address: SocketAddr,
    ports: &DataPorts,
) -> Result<(Socket, SocketAddr), EngineError> {
    let listening = |port: u16| -> io::Result<(Socket, SocketAddr)> {
        let mut at = address;
        at.set_port(port);
        // Connections of the trial before may still be closing at a fixed port.
        let shared = cfg!(unix) && port != 0 && spec.transport == Transport::Tcp;
        let socket = bound(spec, at, shared)?;
        sys::set_timeouts(&socket)?;
        if spec.transport == Transport::Tcp {
            socket_options::set_listening(&socket, spec)?;
            socket.listen(BACKLOG)?;
        }
        let address = local_addr(&socket)?;
        Ok((socket, address))
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

/// Adds to the error of a connection what may be in its way.
pub(crate) fn unreached(error: io::Error, to: SocketAddr) -> io::Error {
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
    socket.local_addr()?.as_socket().ok_or_else(|| io::Error::other("the socket has no IP address"))
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
    let seen = || match socket.protocol()? {
        Some(Protocol::TCP) => Ok((Transport::Tcp, local_addr(socket)?)),
        Some(Protocol::UDP) => Ok((Transport::Udp, local_addr(socket)?)),
        other => Err(io::Error::other(format!("a socket of protocol {other:?}"))),
    };
    let (transport, local) = seen().attempt(|| "look at the trial's own socket".to_owned())?;
    let family = Family::of(local.ip());
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
