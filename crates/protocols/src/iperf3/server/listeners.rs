//! The sockets on which a server waits: TCP and UDP on one port, each family for itself.

use crate::iperf3::server::registry::Registry;
use crate::iperf3::{PORT, datagram};
use socket2::{Domain, Protocol, Socket, Type};
use stacklab_model::Family;
use stacklab_traffic::host::zone::{self, ListenAddress};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often a wait checks whether it should end.
const LOOK: Duration = Duration::from_millis(250);
/// Connections that may wait to be accepted: those of 20 clients with 8 streams each.
const BACKLOG: i32 = 256;

pub(super) struct Listeners {
    pub tcp: Vec<Socket>,
    pub udp: Vec<UdpSocket>,
    bound: Vec<SocketAddr>,
}

impl Listeners {
    /// Opens them: on the place's address, or on any address of both families. A family that the host lacks is left
    /// out.
    pub(super) fn open(place: &ListenAddress) -> Result<Self, (String, io::Error)> {
        let port = place.port_or(PORT);
        let addresses: Vec<SocketAddr> = match place.address() {
            Some(address) => {
                let at =
                    zone::socket_addr(address, port).map_err(|reason| (address.with_port(port), reason))?;
                vec![at]
            }
            None => Family::ALL.iter().map(|family| SocketAddr::new(family.unspecified(), port)).collect(),
        };
        let mut all = Listeners { tcp: Vec::new(), udp: Vec::new(), bound: Vec::new() };
        for mut address in addresses.iter().copied() {
            if let (0, Some(first)) = (port, all.bound.first()) {
                address.set_port(first.port());
            }
            match open(address) {
                Ok((tcp, udp, bound)) => {
                    all.tcp.push(tcp);
                    all.udp.push(udp);
                    all.bound.push(bound);
                }
                Err(error)
                    if addresses.len() > 1
                        && !matches!(
                            error.kind(),
                            io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied
                        ) => {}
                Err(error) => return Err((address.to_string(), error)),
            }
        }
        if all.bound.is_empty() {
            return Err((format!("port {port}"), io::ErrorKind::AddrNotAvailable.into()));
        }
        Ok(all)
    }

    pub(super) fn announcement(&self) -> String {
        let at: Vec<String> = self.bound.iter().map(SocketAddr::to_string).collect();
        let port = self.bound[0].port();
        let option = if port == PORT { String::new() } else { format!(" -p {port}") };
        format!(
            "stacklab: open: everyone who reaches this port can send and receive traffic here, from and to its own address\n\
             stacklab: an iperf3 server on {}: `iperf3 -c HOST{option}` measures to it",
            at.join(" and ")
        )
    }
}

/// A TCP socket and a UDP socket on one address and port.
fn open(address: SocketAddr) -> io::Result<(Socket, UdpSocket, SocketAddr)> {
    let bind = |kind, protocol, address: SocketAddr| -> io::Result<Socket> {
        let socket = Socket::new(Domain::for_address(address), kind, Some(protocol))?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        socket.set_reuse_address(true)?;
        socket.set_read_timeout(Some(LOOK))?;
        socket.bind(&address.into())?;
        Ok(socket)
    };
    let tcp = bind(Type::STREAM, Protocol::TCP, address)?;
    tcp.listen(BACKLOG)?;
    let bound = tcp.local_addr()?.as_socket().ok_or_else(|| io::Error::other("no IP address"))?;
    let udp = bind(Type::DGRAM, Protocol::UDP, bound)?;
    Ok((tcp, udp.into(), bound))
}

/// Gives greetings that arrive to the tests that wait for them. Others are not answered.
pub(super) fn datagrams(socket: &UdpSocket, registry: &Registry, interrupted: &AtomicBool) {
    let mut room = [0; datagram::GREETING_BYTES + 1];
    while !interrupted.load(Ordering::Relaxed) {
        if let Ok((count, from)) = socket.recv_from(&mut room) {
            registry.greeted(from, &room[..count]);
        }
    }
}

/// A socket for a stream that greeted: on the same address and port, connected to the client. Whatever reached it
/// before it was connected is another stream's greeting.
pub(super) fn stream_socket(own: SocketAddr, peer: SocketAddr, registry: &Registry) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(own), Type::DGRAM, Some(Protocol::UDP))?;
    if own.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.bind(&own.into())?;
    socket.connect(&peer.into())?;
    let socket = UdpSocket::from(socket);
    socket.set_nonblocking(true)?;
    let mut room = [0; datagram::GREETING_BYTES + 1];
    while let Ok((count, from)) = socket.recv_from(&mut room) {
        registry.greeted(from, &room[..count]);
    }
    socket.set_nonblocking(false)?;
    Ok(socket.into())
}
