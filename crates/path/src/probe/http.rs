//! One request over TCP, and TLS in it: how long each step takes.

use crate::probe::pace::Timed;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use stacklab_model::ScopedAddr;
use stacklab_traffic::host::zone;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long each step may take, and the whole answer.
const LIMIT: Duration = Duration::from_secs(5);
const ANSWER_LIMIT: Duration = Duration::from_secs(20);
const LONGEST_HEADER: usize = 64 << 10;
/// Bytes of content below which a rate says nothing.
const LEAST_CONTENT: u64 = 100_000;

/// What a request gave, as far as it came.
#[derive(Debug, Default)]
pub(crate) struct Fetched {
    pub connect: Option<Duration>,
    pub tls: Option<Duration>,
    /// Time from the request to the first byte of the answer.
    pub first_byte: Option<Duration>,
    /// Bytes of content per second after the first byte.
    pub bytes_per_second: Option<f64>,
    pub status: Option<u16>,
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
    pub tls: Option<&'a Arc<ClientConfig>>,
    /// Most bytes to read; the connection is closed then.
    pub most_bytes: u64,
}

/// TLS with the system's certificates (or those of SSL_CERT_FILE).
pub(crate) fn tls() -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth())
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
    let mut stream = connect(request).map_err(|error| format!("TCP connect: {}", said(&error)))?;
    fetched.connect = Some(began.elapsed());
    let began = Instant::now();
    let Some(config) = request.tls else {
        stream.deadline = began + ANSWER_LIMIT + LIMIT;
        return exchange(request, stream, fetched);
    };
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

/// A connection with the time of one step for what is next.
fn connect(request: &HttpRequest<'_>) -> io::Result<Timed> {
    let to = zone::socket_addr(request.to, request.port)?;
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
    socket.connect_timeout(&SockAddr::from(to), LIMIT)?;
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
    let (mut first, mut content, mut before) = (None, 0_u64, 0_u64);
    let mut last = began;
    while fetched.bytes < request.most_bytes && began.elapsed() <= ANSWER_LIMIT {
        let most = room.len().min(usize::try_from(request.most_bytes - fetched.bytes).unwrap_or(usize::MAX));
        let length = match stream.read(&mut room[..most]) {
            Ok(0) => break,
            Ok(length) => length,
            // Many servers close TLS without saying so.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && fetched.status.is_some() => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if fetched.bytes > 0 => {
                return Err(format!("the answer broke off after {} bytes: {}", fetched.bytes, said(&error)));
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
        if fetched.status.is_some() {
            content += length as u64;
            continue;
        }
        header.extend_from_slice(&room[..length]);
        match head(&header)? {
            Some(status) => fetched.status = Some(status),
            None if header.len() > LONGEST_HEADER => return Err("the answer's header has no end".to_owned()),
            None => {}
        }
    }
    let (Some(first), Some(_)) = (first, fetched.status) else {
        return Err("connected, and it closed without an answer".to_owned());
    };
    // What came with the first bytes took no time here.
    let seconds = (last - first).as_secs_f64();
    let counted = content.min(fetched.bytes - before);
    if counted >= LEAST_CONTENT && seconds > 0.0 {
        fetched.bytes_per_second = Some(counted as f64 / seconds);
    }
    Ok(())
}

/// The status of an answer; `None` until its header is whole.
pub fn head(bytes: &[u8]) -> Result<Option<u16>, String> {
    let mut headers = [httparse::EMPTY_HEADER; 128];
    let mut answer = httparse::Response::new(&mut headers);
    match answer.parse(bytes) {
        Ok(httparse::Status::Complete(_)) => Ok(answer.code),
        Ok(httparse::Status::Partial) => Ok(None),
        Err(error) => Err(format!("not an HTTP response: {error}")),
    }
}

fn said(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
            format!("nothing within {} s", LIMIT.as_secs())
        }
        io::ErrorKind::UnexpectedEof => "it closed".to_owned(),
        _ => error.to_string(),
    }
}
