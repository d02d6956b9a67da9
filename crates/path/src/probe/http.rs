//! One request over TCP, and TLS in it: how long each step takes.

use crate::probe::body::{Body, read_head};
use crate::probe::pace::Timed;
use crate::probe::tls_errors::describe_tls_error;
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
    pub(crate) fn of_failure(reason: &str) -> Self {
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
    let mut stream = stream.map_err(|error| format!("TCP connect: {}", describe_error(&error)))?;
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
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock).map_err(|error| {
            format!("connected, then the TLS handshake failed: {}", describe_error(&error))
        })?;
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
    let asked = write_request(request);
    let began = Instant::now();
    stream.write_all(asked.as_bytes()).and_then(|()| stream.flush()).map_err(|error| no_answer(&error))?;
    let mut answer = AnswerReader::new(fetched, began);
    let mut room = vec![0; 64 << 10];
    let mut is_closed = false;
    while answer.wants_more(request.most_bytes) {
        let left = request.most_bytes - answer.fetched.bytes;
        let most = room.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        match read_part(&mut stream, &mut room[..most], answer.fetched)? {
            ReadOutcome::Bytes(length) => answer.take(&room[..length])?,
            ReadOutcome::Interrupted => {}
            ReadOutcome::End => {
                is_closed = true;
                break;
            }
        }
    }
    answer.finish(is_closed)
}

fn write_request(request: &HttpRequest<'_>) -> String {
    format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: stacklab/{}\r\nAccept: */*\r\nAccept-Encoding: identity\r\nConnection: close\r\n\r\n",
        request.path,
        // An IPv6 address is in brackets here (RFC 3986).
        if request.host.contains(':') { format!("[{}]", request.host) } else { request.host.to_owned() },
        env!("CARGO_PKG_VERSION")
    )
}

/// What one read of an answer gave.
enum ReadOutcome {
    Bytes(usize),
    Interrupted,
    End,
}

fn read_part(stream: &mut impl Read, room: &mut [u8], fetched: &Fetched) -> Result<ReadOutcome, String> {
    match stream.read(room) {
        Ok(0) => Ok(ReadOutcome::End),
        Ok(length) => Ok(ReadOutcome::Bytes(length)),
        // Many servers close TLS without saying so.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && fetched.body.is_some() => {
            Ok(ReadOutcome::End)
        }
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(ReadOutcome::Interrupted),
        Err(error) if fetched.bytes > 0 => {
            let bytes = count(fetched.bytes, "byte");
            Err(format!("{NOT_WHOLE}: it broke off after {bytes}: {}", describe_error(&error)))
        }
        Err(error) => Err(no_answer(&error)),
    }
}

fn no_answer(error: &io::Error) -> String {
    format!("connected, then no answer: {}", describe_error(error))
}

/// An answer as it arrives.
struct AnswerReader<'a> {
    fetched: &'a mut Fetched,
    /// When it was asked for.
    began: Instant,
    header: Vec<u8>,
    /// When the first bytes came, and how many came with them.
    first: Option<Instant>,
    first_bytes: u64,
    last: Instant,
    /// Bytes that came after the header was whole.
    content: u64,
}

impl<'a> AnswerReader<'a> {
    fn new(fetched: &'a mut Fetched, began: Instant) -> Self {
        AnswerReader {
            fetched,
            began,
            header: Vec::new(),
            first: None,
            first_bytes: 0,
            last: began,
            content: 0,
        }
    }

    fn wants_more(&self, most_bytes: u64) -> bool {
        self.fetched.bytes < most_bytes && self.began.elapsed() <= ANSWER_LIMIT && !is_whole(self.fetched)
    }

    fn take(&mut self, part: &[u8]) -> Result<(), String> {
        self.note_times(part.len() as u64);
        if let Some(body) = &mut self.fetched.body {
            self.content += part.len() as u64;
            return body.take(part).map_err(describe_fault);
        }
        self.header.extend_from_slice(part);
        self.read_header()
    }

    fn note_times(&mut self, length: u64) {
        self.last = Instant::now();
        self.fetched.bytes += length;
        if self.first.is_none() {
            self.first = Some(self.last);
            self.fetched.first_byte = Some(self.last - self.began);
            self.first_bytes = length;
        }
    }

    /// Reads the header once it is whole; what came behind it is content.
    fn read_header(&mut self) -> Result<(), String> {
        if let Some(mut head) = read_head(&self.header).map_err(describe_fault)? {
            head.body.take(&self.header[head.bytes..]).map_err(describe_fault)?;
            self.fetched.body = Some(head.body);
        } else if self.header.len() > MAX_HEADER_BYTES {
            return Err(format!("{NOT_WHOLE}: its header has no end"));
        }
        Ok(())
    }

    /// Checks that the answer is whole if the connection has ended, and computes its rate.
    fn finish(self, is_closed: bool) -> Result<(), String> {
        let AnswerReader { fetched, first, first_bytes, last, content, .. } = self;
        let Some(first) = first else { return Err("connected, and it closed without an answer".to_owned()) };
        if is_closed && let Some(missing) = find_missing(fetched) {
            let bytes = count(fetched.bytes, "byte");
            return Err(format!("{NOT_WHOLE}: it closed after {bytes}, and {missing}"));
        }
        // What came with the first bytes took no time here.
        let seconds = (last - first).as_secs_f64();
        let counted = content.min(fetched.bytes - first_bytes);
        if counted >= MIN_CONTENT && seconds > 0.0 {
            fetched.bytes_per_second = Some(counted as f64 / seconds);
        }
        Ok(())
    }
}

fn describe_fault(reason: String) -> String {
    format!("{NOT_WHOLE}: {reason}")
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

fn describe_error(error: &io::Error) -> String {
    if let Some(described) = describe_tls_error(error) {
        return described;
    }
    match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
            format!("nothing within {} s", LIMIT.as_secs())
        }
        io::ErrorKind::UnexpectedEof => "it closed".to_owned(),
        _ => error.to_string(),
    }
}
