//! A server for unmodified clients of iperf3: many at once.
//!
//! | thread | does |
//! |---|---|
//! | a listener of TCP for each family | accepts connections |
//! | one for each connection | reads the cookie: a new test, which it then serves, or a stream of one |
//! | a listener of UDP for each family | gives greetings to the test that waits for them |

use crate::iperf3::server::registry::{ArrivedStream, Registry};
use crate::iperf3::server::session::serve;
use crate::iperf3::{Cookie, GREETING_BYTES, PORT, Parameters, Refusal, State};
use socket2::{Domain, Protocol, Socket, Type};
use stacklab_model::{Family, ScopedAddr, Transport, say};
use stacklab_traffic::foreign::has_congestion_control;
use stacklab_traffic::host::zone::{self, ListenAddress};
use std::io::ErrorKind::{AddrInUse, PermissionDenied};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

mod registry;
mod session;

/// How long a connection may take to say its cookie.
const COOKIE_LIMIT: Duration = Duration::from_secs(5);

/// A server cannot listen.
#[derive(Debug, thiserror::Error)]
#[error("could not listen on {at}: {reason}")]
pub struct ServerError {
    /// The address.
    pub at: String,
    /// The system's reason.
    pub reason: io::Error,
}

/// Serves until interrupted, or with `once` until the first test is over.
pub fn listen(
    place: &ListenAddress,
    limits: ServerLimits,
    once: bool,
    interrupted: &'static AtomicBool,
) -> Result<(), ServerError> {
    stacklab_traffic::foreign::renounce_privileges();
    let listeners = Listeners::open(place)?;
    let announcement = listeners.announcement();
    let registry = Arc::new(Registry::new(limits));
    for socket in listeners.udp {
        let registry = Arc::clone(&registry);
        // It ends with the program.
        thread::spawn(move || datagrams(&socket, &registry, interrupted));
    }
    let mut accepting = Vec::new();
    for listener in listeners.tcp {
        let registry = Arc::clone(&registry);
        accepting.push(thread::spawn(move || {
            while !interrupted.load(Ordering::Relaxed) {
                if once && registry.served.load(Ordering::Relaxed) > 0 {
                    return;
                }
                match listener.accept() {
                    Ok((stream, _)) => meet(&registry, stream.into(), interrupted),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    // An aborted connection, or no free file descriptor: both are temporary.
                    Err(_) => thread::sleep(Duration::from_millis(100)),
                }
            }
        }));
    }
    say!("{announcement}");
    for accepting in accepting {
        let _ = accepting.join();
    }
    registry.wait_until_empty();
    Ok(())
}

/// Handles each connection on a separate thread, so that a silent one delays no others.
fn meet(registry: &Arc<Registry>, stream: TcpStream, interrupted: &'static AtomicBool) {
    let Ok(client) = stream.peer_addr().map(ScopedAddr::from) else { return };
    let Some(place) = registry.connection(&client) else { return };
    let order = registry.order.fetch_add(1, Ordering::Relaxed);
    let registry = Arc::clone(registry);
    // Without a thread the connection is closed, and its place is free again.
    let _ = thread::Builder::new().name("iperf3 client".to_owned()).spawn(move || {
        let _place = place;
        let Ok(cookie) = cookie(&stream) else { return };
        if let Some(test) = registry.waiting(&cookie) {
            let _ = test.send(ArrivedStream { stream, order });
            return;
        }
        match registry.begin(&client) {
            Some(_slot) => serve(stream, cookie, &registry, interrupted),
            None => drop((&stream).write_all(&[State::AccessDenied.byte()])),
        }
    });
}

fn cookie(stream: &TcpStream) -> io::Result<Cookie> {
    let deadline = Instant::now() + COOKIE_LIMIT;
    let (mut cookie, mut at): (Cookie, usize) = ([0; 37], 0);
    // The timeout is the time left: whoever says nothing causes no wake-ups on a host that measures.
    while at < cookie.len() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match (&mut &*stream).read(&mut cookie[at..])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => at += count,
        }
    }
    Ok(cookie)
}

/// Largest socket buffer, bytes.
const MAX_BUFFER: u32 = 16 << 20;
const SEGMENTS: std::ops::RangeInclusive<u32> = 88..=32_767;

/// The limits.
#[derive(Debug, Clone, Copy)]
pub struct ServerLimits {
    /// Clients at once.
    pub clients: usize,
    /// Longest test, with its omitted part.
    pub longest: Duration,
    /// Highest rate that it sends to one client, bits of payload per second.
    pub most_bits_per_second: f64,
}

impl ServerLimits {
    /// Whether a test is within the limits.
    fn check(&self, parameters: &Parameters) -> Result<(), (Refusal, String)> {
        let Parameters { omit_s, time_s, parallel, bandwidth, window, mss, .. } = *parameters;
        let asked = Duration::from_secs(u64::from(omit_s) + u64::from(time_s));
        if asked > self.longest {
            return Err((Refusal::Duration, format!("a test of {} s", asked.as_secs())));
        }
        let sends = parameters.reverse || parameters.bidirectional;
        if sends && bandwidth as f64 * f64::from(parallel) > self.most_bits_per_second {
            return Err((Refusal::Rate, format!("{parallel} streams of {bandwidth} bit/s")));
        }
        if window.is_some_and(|bytes| bytes > MAX_BUFFER) {
            return Err((Refusal::Buffer, format!("a buffer of more than {MAX_BUFFER} bytes")));
        }
        if mss.is_some_and(|bytes| parameters.transport == Transport::Tcp && !SEGMENTS.contains(&bytes)) {
            return Err((Refusal::Mss, "a segment size that TCP cannot have".to_owned()));
        }
        match &parameters.congestion {
            Some(name) if !has_congestion_control(name) => {
                let reason = format!("the congestion control {name}, which this kernel would have to load");
                Err((Refusal::Unsupported, reason))
            }
            _ => Ok(()),
        }
    }

    /// The rate of each stream that the server sends, bits per second, where the client names none.
    fn share(&self, parameters: &Parameters) -> u64 {
        (self.most_bits_per_second / f64::from(parameters.parallel)) as u64
    }

    /// Maximum length of a test: one that ends by bytes or blocks has no length.
    fn lasts(&self, parameters: &Parameters) -> Duration {
        match parameters.time_s {
            0 => self.longest,
            seconds => Duration::from_secs(u64::from(parameters.omit_s) + u64::from(seconds)),
        }
    }
}

/// How often a wait checks whether it should end.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Connections that may wait to be accepted: those of 20 clients with 8 streams each.
const BACKLOG: i32 = 256;

struct Listeners {
    tcp: Vec<Socket>,
    udp: Vec<UdpSocket>,
    bound: Vec<SocketAddr>,
}

impl Listeners {
    /// Opens them: on the place's address, or on any address of both families. A family that the host lacks is left
    /// out.
    fn open(place: &ListenAddress) -> Result<Self, ServerError> {
        let port = place.port_or(PORT);
        let addresses: Vec<SocketAddr> = match place.address() {
            Some(address) => {
                let at = address.with_port(port);
                vec![zone::socket_addr(address, port).map_err(|reason| ServerError { at, reason })?]
            }
            None => {
                Family::ALL.iter().map(|family| SocketAddr::new(family.unspecified_address(), port)).collect()
            }
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
                Err(reason)
                    if addresses.len() == 1 || matches!(reason.kind(), AddrInUse | PermissionDenied) =>
                {
                    return Err(ServerError { at: address.to_string(), reason });
                }
                Err(_) => {}
            }
        }
        if all.bound.is_empty() {
            let reason = io::ErrorKind::AddrNotAvailable.into();
            return Err(ServerError { at: format!("port {port}"), reason });
        }
        Ok(all)
    }

    fn announcement(&self) -> String {
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
    let tcp = bind(Type::STREAM, Protocol::TCP, address)?;
    tcp.set_read_timeout(Some(POLL_INTERVAL))?;
    tcp.listen(BACKLOG)?;
    let bound = tcp.local_addr()?.as_socket().ok_or_else(|| io::Error::other("no IP address"))?;
    let udp = bind(Type::DGRAM, Protocol::UDP, bound)?;
    udp.set_read_timeout(Some(POLL_INTERVAL))?;
    Ok((tcp, udp.into(), bound))
}

fn bind(kind: Type, protocol: Protocol, address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), kind, Some(protocol))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

/// Gives greetings that arrive to the tests that wait for them. Others are not answered.
fn datagrams(socket: &UdpSocket, registry: &Registry, interrupted: &AtomicBool) {
    let mut room = [0; GREETING_BYTES + 1];
    while !interrupted.load(Ordering::Relaxed) {
        if let Ok((count, from)) = socket.recv_from(&mut room) {
            registry.deliver_greeting(from, &room[..count]);
        }
    }
}

/// A socket for a stream that greeted: on the same address and port, connected to the client. Whatever reached it
/// before it was connected is another stream's greeting.
fn stream_socket(own: SocketAddr, peer: SocketAddr, registry: &Registry) -> io::Result<Socket> {
    let socket = bind(Type::DGRAM, Protocol::UDP, own)?;
    socket.connect(&peer.into())?;
    let socket = UdpSocket::from(socket);
    socket.set_nonblocking(true)?;
    let mut room = [0; GREETING_BYTES + 1];
    while let Ok((count, from)) = socket.recv_from(&mut room) {
        registry.deliver_greeting(from, &room[..count]);
    }
    socket.set_nonblocking(false)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_exceeds_the_limits_is_refused_by_name() {
        let limits = ServerLimits { clients: 1, longest: Duration::from_secs(10), most_bits_per_second: 1e6 };
        let tcp = Parameters::new(Transport::Tcp, 1000);
        let refused = |parameters: Parameters| limits.check(&parameters).map_err(|(refusal, _)| refusal);
        assert_eq!(refused(tcp.clone()), Ok(()));
        assert_eq!(refused(Parameters { time_s: 9, omit_s: 2, ..tcp.clone() }), Err(Refusal::Duration));
        let fast = Parameters { bandwidth: 600_000, parallel: 2, ..tcp.clone() };
        assert_eq!(refused(fast.clone()), Ok(()), "it is the client that sends");
        assert_eq!(refused(Parameters { reverse: true, ..fast.clone() }), Err(Refusal::Rate));
        assert_eq!(limits.share(&fast), 500_000);
        assert_eq!(refused(Parameters { window: Some(1 << 30), ..tcp.clone() }), Err(Refusal::Buffer));
        assert_eq!(refused(Parameters { mss: Some(1 << 20), ..tcp.clone() }), Err(Refusal::Mss));
        assert_eq!(
            refused(Parameters { congestion: Some("nosuch".to_owned()), ..tcp.clone() }),
            Err(Refusal::Unsupported)
        );
        assert_eq!(limits.lasts(&Parameters { time_s: 3, omit_s: 1, ..tcp.clone() }), Duration::from_secs(4));
        assert_eq!(limits.lasts(&Parameters { bytes: 5, ..tcp.clone() }), Duration::from_secs(10));
    }
}
