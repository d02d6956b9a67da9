//! A listening agent: waits for coordinators on a TCP port and serves one at a time, if it knows the key.
//!
//! Each coordinator gets a separate process: this program with `--stdio` and the connection as its input and output.
//! The process ends with the connection, even during a trial, and this frees the trial's memory and sockets.

use crate::auth::{AddressPair, Gate};
use crate::channel::Channel;
use crate::key::Key;
use crate::sys;
use crate::tls::{self, Identity};
use socket2::{Domain, Protocol, Socket, Type};
use stacklab_model::say;
use stacklab_traffic::agent::DataPorts;
use stacklab_traffic::host::zone::{self, ListenAddress, ScopedAddr};
use stacklab_traffic::host::{limit_segments, notice_a_dead_peer};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The agent's default port.
pub const PORT: u16 = 5202;
/// Time limit for a coordinator's handshake.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(5);
/// How long a coordinator waits for the previous one to be gone: on a busy machine the end of a process takes a while.
const LEAVE_LIMIT: Duration = Duration::from_secs(3);
/// Maximum number of connections at once, and of those from one address, or network of IPv6; more are closed.
const MAX_CONNECTIONS: usize = 256;
const MAX_FROM_NETWORK: usize = 8;
/// How often the wait for a connection checks whether it should end.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Listens and serves until interrupted, or with `once` until the first coordinator has gone. Without a key it serves
/// anybody, with an identity inside TLS only. `command` is the command line with which this program serves a
/// coordinator on standard input and output.
pub(crate) fn listen(
    place: &ListenAddress,
    once: bool,
    interrupted: &'static AtomicBool,
    key: Option<Key>,
    identity: Option<Identity>,
    command: Vec<String>,
    data_ports: &DataPorts,
) -> Result<(), String> {
    let (socket, bound) = open(place).map_err(|reason| {
        let place = place.clone().with_default(PORT);
        let advice = listen_advice(&reason, "another agent", "--listen :7000");
        format!("could not listen on {place}: {reason}{advice}")
    })?;
    if data_ports.hold(bound.port()) {
        return Err(format!(
            "could not listen at port {}: --data-port {data_ports} holds it, too, and TCP has no room for both: name other ports, as in --data-port {}",
            bound.port(),
            bound.port().checked_add(1).unwrap_or(PORT + 1)
        ));
    }
    if key.is_none() {
        say!(
            "stacklab: open: everyone who reaches this port can send and receive traffic here, from and to its own address"
        );
    }
    say!("{}", announcement(place, bound, identity.is_some()));
    let agent = Arc::new(ListeningAgent::new(key, identity, command));
    while !interrupted.load(Ordering::Relaxed) {
        if once && agent.done.load(Ordering::Relaxed) {
            break;
        }
        match sys::accept(&socket, POLL_INTERVAL) {
            Ok(connection) => agent.handle(connection.into()),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            // An aborted connection, or no free file descriptor: both are temporary.
            Err(_) => thread::sleep(POLL_INTERVAL),
        }
    }
    // The coordinator's process ends with the connection.
    if let Some(stream) = agent.lock_stream().as_ref() {
        let _ = stream.shutdown(Shutdown::Both);
    }
    Ok(())
}

fn open(place: &ListenAddress) -> io::Result<(Socket, SocketAddr)> {
    let port = place.port_or(PORT);
    if let Some(address) = place.address() {
        return bind(address, port);
    }
    match bind(&IpAddr::from(Ipv6Addr::UNSPECIFIED).into(), port) {
        Ok(bound) => Ok(bound),
        Err(error) if matches!(error.kind(), io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied) => {
            Err(error)
        }
        // A host without IPv6.
        Err(_) => bind(&IpAddr::from(Ipv4Addr::UNSPECIFIED).into(), port),
    }
}

fn bind(address: &ScopedAddr, port: u16) -> io::Result<(Socket, SocketAddr)> {
    let address = zone::socket_addr(address, port)?;
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        // The unspecified address serves both families, any other address only its own.
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    socket.set_reuse_address(true)?;
    limit_segments(&socket);
    socket.bind(&address.into())?;
    socket.listen(16)?;
    let bound = socket.local_addr()?.as_socket().ok_or_else(|| io::Error::other("no IP address"))?;
    Ok((socket, bound))
}

/// Where the agent listens, and how to measure to it.
fn announcement(place: &ListenAddress, bound: SocketAddr, tls: bool) -> String {
    let whom = match bound.ip() {
        ip if !ip.is_unspecified() => "",
        IpAddr::V6(_) if ipv6_is_disabled() => " for any host, over IPv4 only (IPv6 is disabled here)",
        _ => " for any host",
    };
    let (host, zone) = match place.address() {
        // The zone has another name there.
        Some(address) if address.is_link_local() => {
            (format!("{}%INTERFACE", address.ip()), ", with that host's own interface")
        }
        Some(address) if !address.ip().is_unspecified() => (address.to_string(), ""),
        _ => ("HOST".to_owned(), ""),
    };
    let port = if bound.port() == PORT { String::new() } else { format!(" -p {}", bound.port()) };
    let tls = if tls { " --tls FINGERPRINT" } else { "" };
    let at = place.address().map_or_else(|| bound.to_string(), |address| address.with_port(bound.port()));
    format!(
        "stacklab: listening on {at}{whom}: `stacklab measure tcp {host}{port}{tls}` measures to it{zone}, as do udp, echo and connect"
    )
}

struct ListeningAgent {
    gate: Gate,
    /// Its TLS key, without which it speaks in plain.
    identity: Option<Identity>,
    /// Whether it has warned its operator of a coordinator without TLS.
    warned: AtomicBool,
    /// The command line of a coordinator's process.
    command: Vec<String>,
    /// The connection of the coordinator being served.
    served: Mutex<Option<TcpStream>>,
    /// Notified when nobody is served any more.
    free: Condvar,
    connections: Mutex<HashMap<ScopedAddr, usize>>,
    /// Whether a coordinator was served and has gone.
    done: AtomicBool,
}

impl ListeningAgent {
    fn new(key: Option<Key>, identity: Option<Identity>, command: Vec<String>) -> Self {
        ListeningAgent {
            gate: Gate::new(key),
            identity,
            warned: AtomicBool::new(false),
            command,
            served: Mutex::new(None),
            free: Condvar::new(),
            connections: Mutex::default(),
            done: AtomicBool::new(false),
        }
    }

    fn lock_stream(&self) -> MutexGuard<'_, Option<TcpStream>> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a coordinator can be served now. Waits briefly for one that has just gone: its process may not have
    /// ended yet.
    fn begin(&self, stream: &TcpStream) -> io::Result<bool> {
        let waited = self.free.wait_timeout_while(self.lock_stream(), LEAVE_LIMIT, |served| served.is_some());
        let (mut served, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if served.is_some() {
            return Ok(false);
        }
        *served = Some(stream.try_clone()?);
        Ok(true)
    }

    /// Handles a connection on a separate thread, so that a silent connection does not block others.
    fn handle(self: &Arc<Self>, stream: TcpStream) {
        let Ok(AddressPair { peer, .. }) = AddressPair::of(&stream) else { return };
        let Some(slot) = ConnectionSlot::take(self, peer.network()) else { return };
        // Without a thread the connection is closed, and its slot is free again. A coordinator that disconnects is not
        // a failure.
        let _ = thread::Builder::new().spawn(move || slot.agent.attend(stream));
    }

    fn attend(&self, stream: TcpStream) -> io::Result<()> {
        let socket = Socket::from(stream.try_clone()?);
        socket.set_tcp_nodelay(true)?;
        notice_a_dead_peer(&socket)?;
        let deadline = Instant::now() + HANDSHAKE_LIMIT;
        let Some(channel) = self.channel(stream, deadline)? else { return Ok(()) };
        let left = deadline.saturating_duration_since(Instant::now());
        let Some(admitted) = self.gate.admit(&channel, left)? else { return Ok(()) };
        if !self.begin(channel.stream())? {
            let reason = "it is busy with another measurement: try again when that has ended";
            return Gate::refuse(&channel, reason.to_owned());
        }
        let ended =
            admitted.welcome(&channel).and_then(|()| serve(&channel, &self.command, &admitted.addresses));
        *self.lock_stream() = None;
        self.free.notify_one();
        self.done.store(true, Ordering::Relaxed);
        if let Err(reason) = &ended {
            say!("stacklab: could not serve a coordinator: {reason}");
        }
        ended
    }

    /// The connection, inside TLS if this agent has a key for it; `None` if the peer has gone, or knows that it is
    /// refused.
    fn channel(&self, stream: TcpStream, deadline: Instant) -> io::Result<Option<Channel>> {
        let Some(identity) = &self.identity else { return Ok(Some(stream.into())) };
        match tls::begins(&stream, deadline)? {
            None => Ok(None),
            Some(true) => identity.accept(stream, deadline).map(Some).map_err(io::Error::other),
            Some(false) => {
                let option = format!("--tls {}", identity.fingerprint);
                // Once: strangers do not fill the terminal.
                if !self.warned.swap(true, Ordering::Relaxed) {
                    say!(
                        "stacklab: refused {}, which does not speak TLS: `stacklab measure` needs {option}",
                        stream.peer_addr()?
                    );
                }
                let reason = "it requires TLS: use --tls with the fingerprint that it printed at its start";
                Gate::refuse(&stream.into(), reason.to_owned()).map(|()| None)
            }
        }
    }
}

/// One of the connections that the agent takes at once, all and from one network. Free again when this is dropped.
struct ConnectionSlot {
    agent: Arc<ListeningAgent>,
    network: ScopedAddr,
}

impl ConnectionSlot {
    fn take(agent: &Arc<ListeningAgent>, network: ScopedAddr) -> Option<Self> {
        let mut connections = agent.connections.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = connections.values().sum();
        let own = connections.get(&network).copied().unwrap_or(0);
        if all >= MAX_CONNECTIONS || own >= MAX_FROM_NETWORK {
            return None;
        }
        connections.insert(network.clone(), own + 1);
        Some(ConnectionSlot { agent: Arc::clone(agent), network })
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut connections = self.agent.connections.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = connections.get_mut(&self.network) {
            *own -= 1;
        }
        connections.retain(|_, own| *own > 0);
    }
}

/// Serves a connection in a separate process until it ends, which may send to these addresses and receive on these.
fn serve(channel: &Channel, command: &[String], addresses: &[AddressPair]) -> io::Result<()> {
    let mut process = Command::new(std::env::current_exe()?);
    process.args(command);
    for AddressPair { peer, local } in addresses {
        process.args([format!("--peer={peer}"), format!("--own={local}")]);
    }
    // What it may do is in its arguments: the key is for nobody else.
    process.env_remove(crate::key::VARIABLE);
    sys::serve(channel, process)
}

/// What to do where nothing can listen, after a semicolon: by the reason. `other` is who may be there already, and
/// `example` how another port is named.
pub fn listen_advice(reason: &io::Error, other: &str, example: &str) -> String {
    match reason.kind() {
        io::ErrorKind::AddrInUse => {
            format!("; check whether {other} runs there, or name another port, as in {example}")
        }
        io::ErrorKind::AddrNotAvailable => "; name an address of this host".to_owned(),
        io::ErrorKind::PermissionDenied => {
            format!("; a port below 1024 needs root: name another one, as in {example}")
        }
        _ => String::new(),
    }
}

/// Whether the system's IPv6 is turned off.
pub(crate) fn ipv6_is_disabled() -> bool {
    let setting = std::fs::read_to_string("/proc/sys/net/ipv6/conf/all/disable_ipv6");
    setting.is_ok_and(|setting| setting.trim() == "1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_announcement_says_how_to_measure() {
        let any = announcement(&"".parse().unwrap(), "[::]:5202".parse().unwrap(), true);
        assert!(
            any.contains("[::]:5202 for any host") && any.contains("measure tcp HOST --tls FINGERPRINT`"),
            "{any}"
        );
        let one = announcement(&"::1".parse().unwrap(), "[::1]:7000".parse().unwrap(), false);
        assert!(one.contains("`stacklab measure tcp ::1 -p 7000`") && !one.contains("any host"), "{one}");
    }

    // Everywhere on Linux, interface 1 is loopback.
    #[cfg(target_os = "linux")]
    #[test]
    fn the_announcement_of_a_link_local_place_has_no_zone() {
        for (text, port) in [("fe80::1%1", PORT), ("[fe80::1%1]:7000", 7000)] {
            let place: ListenAddress = text.parse().unwrap();
            let said = announcement(&place, format!("[fe80::1%1]:{port}").parse().unwrap(), false);
            assert!(said.contains(&format!("listening on [fe80::1%1]:{port}: `")), "{said}");
            assert!(said.contains("tcp fe80::1%INTERFACE") && said.contains("own interface"), "{said}");
        }
    }

    #[test]
    fn connections_are_bounded_in_all_and_per_network() {
        let agent = Arc::new(ListeningAgent::new(None, None, Vec::new()));
        let take =
            |address: String| ConnectionSlot::take(&agent, address.parse::<ScopedAddr>().unwrap().network());
        // A host has as many addresses of its network of IPv6 as it likes.
        let own: Vec<_> =
            (0..MAX_FROM_NETWORK).map(|number| take(format!("2001:db8:0:1::{number:x}"))).collect();
        assert!(own.iter().all(Option::is_some));
        assert!(take("2001:db8:0:1:ffff::1".to_owned()).is_none());
        let others: Vec<_> = (MAX_FROM_NETWORK..MAX_CONNECTIONS)
            .map(|number| take(format!("10.{}.{}.1", number / 100, number % 100)))
            .collect();
        assert!(others.iter().all(Option::is_some));
        assert!(take("10.9.0.2".to_owned()).is_none());
        drop(own);
        assert!(take("10.9.0.2".to_owned()).is_some() && take("2001:db8:0:1:ffff::1".to_owned()).is_some());
    }

    fn advise(kind: io::ErrorKind) -> String {
        listen_advice(&kind.into(), "another agent", "--listen :7000")
    }

    #[test]
    fn advice_fits_the_reason() {
        assert!(advise(io::ErrorKind::AddrInUse).contains("another agent runs"));
        assert_eq!(advise(io::ErrorKind::AddrNotAvailable), "; name an address of this host");
        assert!(advise(io::ErrorKind::PermissionDenied).contains("root"));
    }
}
