//! A listening agent: waits for coordinators on a TCP port and serves one at a time.
//!
//! Each coordinator gets a separate process: this program with `--stdio` and the connection as its input and output.
//! The process ends with the connection, even during a trial, and this frees the trial's memory and sockets.

use crate::sys;
use socket2::{Domain, Protocol, Socket, TcpKeepalive, Type};
use stacklab_traffic::protocol::{Answer, Numbered, Request};
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpStream};
use std::process::Command;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The agent's default port.
pub const PORT: u16 = 5202;
/// Time limit for a coordinator's first request.
const GREETING_LIMIT: Duration = Duration::from_secs(5);
/// How long a coordinator waits for the previous one to be gone.
const LEAVE_LIMIT: Duration = Duration::from_secs(1);
/// Maximum length of the first request, bytes.
const LONGEST_GREETING: usize = 4096;
/// Maximum concurrent connections; more are closed.
const MOST_CONNECTIONS: usize = 32;
/// How often the wait for a connection checks whether it should end.
const LOOK: Duration = Duration::from_millis(250);

/// Where to listen, as written: nothing, `ADDRESS`, `:PORT`, `ADDRESS:PORT` or `[ADDRESS]:PORT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenAddress {
    /// `None` is any address of either family.
    address: Option<IpAddr>,
    port: u16,
}

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let any = ListenAddress { address: None, port: PORT };
        if text.is_empty() {
            return Ok(any);
        }
        if let Some(port) = text.strip_prefix(':').and_then(|port| port.parse().ok()) {
            return Ok(ListenAddress { port, ..any });
        }
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        if let Ok(address) = bare.parse() {
            return Ok(ListenAddress { address: Some(address), ..any });
        }
        match text.parse::<SocketAddr>() {
            Ok(both) => Ok(ListenAddress { address: Some(both.ip()), port: both.port() }),
            Err(_) => Err("expected an address, :PORT, ADDRESS:PORT or [IPV6]:PORT".to_owned()),
        }
    }
}

/// Why an agent cannot listen.
#[derive(Debug, thiserror::Error)]
#[error(
    "could not listen on {place}: {reason}; see whether another agent runs there, or name another port, as in --listen :7000"
)]
pub struct ListenError {
    /// The requested address.
    place: String,
    /// The system's reason.
    reason: io::Error,
}

/// Listens and serves until interrupted, or with `once` until the first coordinator has gone. `stdio` is the command
/// line with which this program serves a coordinator on standard input and output.
///
/// # Errors
/// When it cannot listen there.
pub fn listen(
    place: ListenAddress,
    once: bool,
    interrupted: &'static AtomicBool,
    stdio: &'static [&'static str],
) -> Result<(), ListenError> {
    let (socket, bound) = open(place).map_err(|reason| ListenError { place: place.to_string(), reason })?;
    eprintln!("{}", announcement(place, bound));
    let agent = Arc::new(Agent {
        stdio,
        served: Mutex::new(None),
        free: Condvar::new(),
        connections: AtomicUsize::new(0),
        done: AtomicBool::new(false),
    });
    let over = || interrupted.load(Ordering::Relaxed) || once && agent.done.load(Ordering::Relaxed);
    while !over() {
        match sys::accept(&socket, LOOK) {
            Ok(connection) => agent.meet(connection.into()),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            // An aborted connection, or no free file descriptor: both are temporary.
            Err(_) => thread::sleep(LOOK),
        }
    }
    // The coordinator's process ends with the connection.
    if let Some((_, stream)) = agent.served().as_ref() {
        let _ = stream.shutdown(Shutdown::Both);
    }
    Ok(())
}

/// Enables TCP keepalive, so that the kernel closes a connection whose peer is gone.
pub fn notice_a_dead_peer(socket: &Socket) -> io::Result<()> {
    let keepalive =
        TcpKeepalive::new().with_time(Duration::from_secs(15)).with_interval(Duration::from_secs(5));
    // Some systems choose the number of retries themselves.
    let thrice = keepalive.clone().with_retries(3);
    socket.set_tcp_keepalive(&thrice).or_else(|_| socket.set_tcp_keepalive(&keepalive))
}

fn open(place: ListenAddress) -> io::Result<(Socket, SocketAddr)> {
    let bind = |address: IpAddr| -> io::Result<(Socket, SocketAddr)> {
        let address = SocketAddr::new(address, place.port);
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        if address.is_ipv6() {
            // The unspecified address serves both families, any other address only its own.
            socket.set_only_v6(!address.ip().is_unspecified())?;
        }
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.listen(16)?;
        let bound = socket.local_addr()?.as_socket().ok_or_else(|| io::Error::other("no IP address"))?;
        Ok((socket, bound))
    };
    match place.address {
        Some(address) => bind(address),
        None => bind(Ipv6Addr::UNSPECIFIED.into()).or_else(|error| match error.kind() {
            io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied => Err(error),
            // A host without IPv6.
            _ => bind(Ipv4Addr::UNSPECIFIED.into()),
        }),
    }
}

/// The announcement: where the agent listens, and how to measure to it.
fn announcement(place: ListenAddress, bound: SocketAddr) -> String {
    let whom = if bound.ip().is_unspecified() { " for any host" } else { "" };
    let host = place.address.filter(|address| !address.is_unspecified()).map(|address| address.to_string());
    let host = host.unwrap_or_else(|| "HOST".to_owned());
    let port = if bound.port() == PORT { String::new() } else { format!(" -p {}", bound.port()) };
    format!(
        "stacklab: listening on {bound}{whom}: `stacklab measure tcp {host}{port}` measures to it, as do udp, echo and connect"
    )
}

struct Agent {
    /// The command line of a coordinator's process.
    stdio: &'static [&'static str],
    /// The coordinator being served, and its connection.
    served: Mutex<Option<(SocketAddr, TcpStream)>>,
    /// Notified when no coordinator is being served any more.
    free: Condvar,
    connections: AtomicUsize,
    /// Whether a coordinator was served and has gone.
    done: AtomicBool,
}

impl Agent {
    fn served(&self) -> std::sync::MutexGuard<'_, Option<(SocketAddr, TcpStream)>> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accepts a coordinator, or returns which one is being served. Waits briefly for one that has just gone: its
    /// process may not have ended yet.
    fn begin(&self, peer: SocketAddr, stream: &TcpStream) -> io::Result<Result<(), SocketAddr>> {
        let busy = |served: &mut Option<(SocketAddr, TcpStream)>| served.is_some();
        let (mut served, _) = self
            .free
            .wait_timeout_while(self.served(), LEAVE_LIMIT, busy)
            .unwrap_or_else(PoisonError::into_inner);
        if let Some((other, _)) = served.as_ref() {
            return Ok(Err(*other));
        }
        *served = Some((peer, stream.try_clone()?));
        Ok(Ok(()))
    }

    /// Handles a connection on a separate thread, so that a silent connection does not block others.
    fn meet(self: &Arc<Self>, stream: TcpStream) {
        if self.connections.fetch_add(1, Ordering::Relaxed) >= MOST_CONNECTIONS {
            self.connections.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        let agent = Arc::clone(self);
        thread::spawn(move || {
            // A coordinator that disconnects is not a failure.
            let _ = agent.attend(stream);
            agent.connections.fetch_sub(1, Ordering::Relaxed);
        });
    }

    fn attend(&self, stream: TcpStream) -> io::Result<()> {
        let peer = stream.peer_addr()?;
        let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
        let socket = Socket::from(stream.try_clone()?);
        socket.set_tcp_nodelay(true)?;
        notice_a_dead_peer(&socket)?;
        let id = match greeting(&stream) {
            Ok(id) => id,
            Err(reason) => return refuse(&stream, 0, reason),
        };
        if let Err(other) = self.begin(peer, &stream)? {
            return refuse(
                &stream,
                id,
                format!("is busy measuring with {other}: try again when that has ended"),
            );
        }
        let ended = serve(&stream, self.stdio);
        *self.served() = None;
        self.free.notify_one();
        self.done.store(true, Ordering::Relaxed);
        ended.or_else(|reason| {
            refuse(&stream, id, format!("could not start a process for the measurement: {reason}"))
        })
    }
}

/// Waits for the first request, leaves it unread, and returns its id or an error.
fn greeting(stream: &TcpStream) -> Result<u64, String> {
    let expected = "this is an agent of stacklab: it is asked by `stacklab measure`";
    let deadline = Instant::now() + GREETING_LIMIT;
    let mut seen = [0; LONGEST_GREETING];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(format!("{expected}, and heard nothing from it for {} s", GREETING_LIMIT.as_secs()));
        }
        let peeked = stream.set_read_timeout(Some(left)).and_then(|()| stream.peek(&mut seen));
        let seen = match peeked {
            Ok(0) => return Err(expected.to_owned()),
            Ok(count) => &seen[..count],
            Err(_) => continue,
        };
        match seen.split(|byte| *byte == b'\n').next() {
            Some(line) if line.len() < seen.len() => {
                return match serde_json::from_slice::<Numbered<Request>>(line) {
                    Ok(Numbered { id, body: Request::Hello { .. } }) => Ok(id),
                    _ => Err(expected.to_owned()),
                };
            }
            _ if seen.len() == LONGEST_GREETING => return Err(expected.to_owned()),
            // The start of the line, which is peeked again until the rest arrives.
            _ => thread::sleep(Duration::from_millis(10)),
        }
    }
}

/// Answers that the request is refused.
fn refuse(mut stream: &TcpStream, id: u64, reason: String) -> io::Result<()> {
    let mut answer = serde_json::to_vec(&Numbered { id, body: Answer::Failed { reason } })?;
    answer.push(b'\n');
    stream.set_write_timeout(Some(GREETING_LIMIT))?;
    stream.write_all(&answer)?;
    stream.shutdown(Shutdown::Write)?;
    // Closing a connection with unread data resets it and loses the answer. So the input is read first, with limits
    // on time and size.
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    let mut rest = [0; LONGEST_GREETING];
    for _ in 0..256 {
        if stream.read(&mut rest)? == 0 {
            break;
        }
    }
    Ok(())
}

/// Serves a connection in a separate process until it ends.
fn serve(stream: &TcpStream, stdio: &[&str]) -> io::Result<()> {
    stream.set_read_timeout(None)?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(stdio);
    sys::serve(stream, command)
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            Some(address) => SocketAddr::new(address, self.port).fmt(f),
            None => write!(f, "port {} of any address", self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_they_are_written() {
        let place = |text: &str| text.parse::<ListenAddress>().map(|place| (place.address, place.port));
        let v4: Option<IpAddr> = Some("127.0.0.1".parse().unwrap());
        let v6: Option<IpAddr> = Some("::1".parse().unwrap());
        assert_eq!(place(""), Ok((None, PORT)));
        assert_eq!(place(":7000"), Ok((None, 7000)));
        assert_eq!(place("127.0.0.1"), Ok((v4, PORT)));
        assert_eq!(place("127.0.0.1:7000"), Ok((v4, 7000)));
        assert_eq!(place("::1"), Ok((v6, PORT)));
        assert_eq!(place("[::1]"), Ok((v6, PORT)));
        assert_eq!(place("[::1]:7000"), Ok((v6, 7000)));
        for wrong in ["7000", "here", ":70000", "::1:", "127.0.0.1:", ":"] {
            assert!(place(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_announcement_says_how_to_measure() {
        let any = announcement("".parse().unwrap(), "[::]:5202".parse().unwrap());
        assert!(any.contains("[::]:5202 for any host") && any.contains("measure tcp HOST`"), "{any}");
        let one = announcement("::1".parse().unwrap(), "[::1]:7000".parse().unwrap());
        assert!(one.contains("`stacklab measure tcp ::1 -p 7000`") && !one.contains("any host"), "{one}");
    }
}
