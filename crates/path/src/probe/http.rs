//! One request over TCP, and TLS in it: how long each step takes.

use crate::probe::body::{Body, read_head};
use crate::probe::certificates::describe_refusal;
use crate::probe::pace::Timed;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use stacklab_model::{ScopedAddr, count};
use stacklab_traffic::host::zone;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long each step may take, and the whole answer.
const LIMIT: Duration = Duration::from_secs(5);
const ANSWER_LIMIT: Duration = Duration::from_secs(20);
const MAX_HEADER_BYTES: usize = 64 << 10;
/// What all reasons begin with of an answer that began and did not come whole.
pub(crate) const NOT_WHOLE: &str = "no whole answer";
/// Bytes of content below which a rate says nothing.
const MIN_CONTENT: u64 = 100_000;

/// What a request gave, as far as it came.
#[derive(Debug, Default)]
pub(crate) struct Fetched {
    pub connect: Option<Duration>,
    pub tls: Option<Duration>,
    /// Time from the request to the first byte of the answer.
    pub first_byte: Option<Duration>,
    /// Bytes of content per second after the first byte.
    pub bytes_per_second: Option<f64>,
    /// What of the content has not come, once the header is here.
    body: Option<Body>,
    pub bytes: u64,
    pub failed: Option<String>,
}

impl Fetched {
    pub(crate) fn failed(reason: &str) -> Self {
        Fetched { failed: Some(reason.to_owned()), ..Fetched::default() }
    }
}

pub(crate) struct HttpRequest<'a> {
    pub to: &'a ScopedAddr,
    pub port: u16,
    pub host: &'a str,
    pub path: &'a str,
    /// TLS, if the request is inside it.
    pub tls: Option<&'a Result<Arc<ClientConfig>, String>>,
    /// Most bytes to read; the connection is closed then.
    pub most_bytes: u64,
}

pub(crate) fn fetch(request: &HttpRequest<'_>) -> Fetched {
    let mut fetched = Fetched::default();
    if let Err(reason) = steps(request, &mut fetched) {
        fetched.failed = Some(reason);
    }
    fetched
}

fn steps(request: &HttpRequest<'_>, fetched: &mut Fetched) -> Result<(), String> {
    let began = Instant::now();
    let stream = connect(request.to, request.port, LIMIT);
    let mut stream = stream.map_err(|error| format!("TCP connect: {}", said(&error)))?;
    fetched.connect = Some(began.elapsed());
    let began = Instant::now();
    let Some(config) = request.tls else {
        stream.deadline = began + ANSWER_LIMIT + LIMIT;
        return exchange(request, stream, fetched);
    };
    let config = config.as_ref().map_err(|reason| format!("connected, then no TLS: {reason}"))?;
    let name = ServerName::try_from(request.host.to_owned()).map_err(|error| format!("TLS: {error}"))?;
    let session = ClientConnection::new(Arc::clone(config), name).map_err(|error| format!("TLS: {error}"))?;
    let mut stream = StreamOwned::new(session, stream);
    let failed = |error| format!("connected, then the TLS handshake failed: {}", said(&error));
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock).map_err(failed)?;
    }
    fetched.tls = Some(began.elapsed());
    stream.sock.deadline = Instant::now() + ANSWER_LIMIT + LIMIT;
    exchange(request, stream, fetched)
}

/// A connection that opens within this time, with the time of one step for what is next.
pub(super) fn connect(to: &ScopedAddr, port: u16, limit: Duration) -> io::Result<Timed> {
    let to = zone::socket_addr(to, port)?;
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
    socket.connect_timeout(&SockAddr::from(to), limit)?;
    socket.set_tcp_nodelay(true)?;
    Ok(Timed::new(socket.into(), LIMIT))
}

fn exchange(
    request: &HttpRequest<'_>,
    mut stream: impl Read + Write,
    fetched: &mut Fetched,
) -> Result<(), String> {
    let asked = format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: stacklab/{}\r\nAccept: */*\r\nAccept-Encoding: identity\r\nConnection: close\r\n\r\n",
        request.path,
        // An IPv6 address is in brackets here (RFC 3986).
        if request.host.contains(':') { format!("[{}]", request.host) } else { request.host.to_owned() },
        env!("CARGO_PKG_VERSION")
    );
    let failed = |error: io::Error| format!("connected, then no answer: {}", said(&error));
    let began = Instant::now();
    stream.write_all(asked.as_bytes()).and_then(|()| stream.flush()).map_err(failed)?;
    let mut room = vec![0; 64 << 10];
    let mut header = Vec::new();
    let mut first = None;
    let mut content = 0_u64;
    let mut before = 0_u64;
    let mut last = began;
    let mut is_closed = false;
    while fetched.bytes < request.most_bytes && began.elapsed() <= ANSWER_LIMIT && !is_whole(fetched) {
        let most = room.len().min(usize::try_from(request.most_bytes - fetched.bytes).unwrap_or(usize::MAX));
        let length = match stream.read(&mut room[..most]) {
            Ok(0) => {
                is_closed = true;
                break;
            }
            Ok(length) => length,
            // Many servers close TLS without saying so.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && fetched.body.is_some() => {
                is_closed = true;
                break;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if fetched.bytes > 0 => {
                return Err(format!(
                    "{NOT_WHOLE}: it broke off after {}: {}",
                    count(fetched.bytes, "byte"),
                    said(&error)
                ));
            }
            Err(error) => return Err(failed(error)),
        };
        last = Instant::now();
        fetched.bytes += length as u64;
        if first.is_none() {
            first = Some(last);
            fetched.first_byte = Some(last - began);
            before = length as u64;
        }
        let invalid = |reason| format!("{NOT_WHOLE}: {reason}");
        if let Some(body) = &mut fetched.body {
            content += length as u64;
            body.take(&room[..length]).map_err(invalid)?;
            continue;
        }
        header.extend_from_slice(&room[..length]);
        if let Some(mut head) = read_head(&header).map_err(invalid)? {
            head.body.take(&header[head.bytes..]).map_err(invalid)?;
            fetched.body = Some(head.body);
        } else if header.len() > MAX_HEADER_BYTES {
            return Err(format!("{NOT_WHOLE}: its header has no end"));
        }
    }
    let Some(first) = first else { return Err("connected, and it closed without an answer".to_owned()) };
    if is_closed && let Some(missing) = find_missing(fetched) {
        return Err(format!("{NOT_WHOLE}: it closed after {}, and {missing}", count(fetched.bytes, "byte")));
    }
    // What came with the first bytes took no time here.
    let seconds = (last - first).as_secs_f64();
    let counted = content.min(fetched.bytes - before);
    if counted >= MIN_CONTENT && seconds > 0.0 {
        fetched.bytes_per_second = Some(counted as f64 / seconds);
    }
    Ok(())
}

fn is_whole(fetched: &Fetched) -> bool {
    fetched.body.as_ref().is_some_and(Body::is_whole)
}

/// What is missing of an answer whose connection has ended.
fn find_missing(fetched: &Fetched) -> Option<String> {
    match &fetched.body {
        None => Some("the end of its header is missing".to_owned()),
        Some(body) => body.missing(),
    }
}

fn said(error: &io::Error) -> String {
    if let Some(refusal) = describe_refusal(error) {
        return refusal;
    }
    match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
            format!("nothing within {} s", LIMIT.as_secs())
        }
        io::ErrorKind::UnexpectedEof => "it closed".to_owned(),
        _ => error.to_string(),
    }
}
