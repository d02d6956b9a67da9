//! The built-in client: RFC 8305 with a delay that is known, so that each measurement begins with a check of itself.
//!
//! It asks for both types at once, waits 50 ms for AAAA where A comes first (the resolution delay), begins with IPv6,
//! and tries the next address when an attempt fails or has taken as long as the connection attempt delay.

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use simple_dns::rdata::RData;
use simple_dns::{CLASS, Name, Packet, PacketFlag, Question, TYPE};
use socket2::{Domain, Protocol, Socket, Type};
use stacklab_model::Family;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// RFC 8305, section 8.
const RESOLUTION_DELAY: Duration = Duration::from_millis(50);
const RESOLVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 53);
const HTTP: u16 = 80;
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: reference\r\nConnection: close\r\n\r\n";
const MAX_ANSWER: usize = 4_096;

/// Connects to port 80 of a name and reads from it, in the calling thread's namespace.
pub(crate) fn fetch(host: &str, attempt_delay: Duration, limit: Duration) -> io::Result<()> {
    let end = Instant::now() + limit;
    let mut race = Race::begin(host, attempt_delay)?;
    loop {
        race.start_what_is_due()?;
        let now = Instant::now();
        if now >= end {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let sleep = race.due().unwrap_or(end).min(end).saturating_duration_since(now);
        if let Some(stream) = race.wait(sleep)? {
            return request(stream, end);
        }
    }
}

/// Attempts that run beside each other.
struct Race {
    attempt_delay: Duration,
    resolver: UdpSocket,
    /// Families whose addresses are not known yet.
    unanswered: Vec<Family>,
    /// Addresses that are not tried yet, each family in the resolver's order.
    waiting: Vec<IpAddr>,
    attempts: Vec<Socket>,
    /// The family of the last attempt.
    last: Option<Family>,
    /// When the next attempt may begin; `None` before the first answer.
    next: Option<Instant>,
}

impl Race {
    fn begin(host: &str, attempt_delay: Duration) -> io::Result<Race> {
        let resolver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        resolver.connect(RESOLVER)?;
        resolver.set_nonblocking(true)?;
        // AAAA first (RFC 8305, section 3).
        for kind in [TYPE::AAAA, TYPE::A] {
            resolver.send(&query(host, kind)?)?;
        }
        let unanswered = Family::ALL.to_vec();
        Ok(Race {
            attempt_delay,
            resolver,
            unanswered,
            waiting: vec![],
            attempts: vec![],
            last: None,
            next: None,
        })
    }

    /// When an attempt begins, if there is an address.
    fn due(&self) -> Option<Instant> {
        if self.waiting.is_empty() { None } else { self.next }
    }

    fn start_what_is_due(&mut self) -> io::Result<()> {
        while self.due().is_some_and(|due| due <= Instant::now()) {
            let address = self.take_next();
            self.last = Some(Family::of(address));
            let to = SocketAddr::new(address, HTTP);
            let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
            socket.set_nonblocking(true)?;
            self.next = Some(Instant::now() + self.attempt_delay);
            match socket.connect(&to.into()) {
                Err(error) if error.raw_os_error() != Some(nix::errno::Errno::EINPROGRESS as i32) => {
                    self.next = Some(Instant::now());
                }
                _ => self.attempts.push(socket),
            }
        }
        Ok(())
    }

    /// The next address, of the other family than the last one if there is one, and IPv6 at first.
    fn take_next(&mut self) -> IpAddr {
        let wanted = if self.last == Some(Family::Ipv6) { Family::Ipv4 } else { Family::Ipv6 };
        let place = self.waiting.iter().position(|address| Family::of(*address) == wanted);
        self.waiting.remove(place.unwrap_or(0))
    }

    /// Waits for an answer of the resolver or an end of an attempt. Returns the connection that came first.
    fn wait(&mut self, sleep: Duration) -> io::Result<Option<Socket>> {
        let mut sockets = vec![PollFd::new(self.resolver.as_fd(), PollFlags::POLLIN)];
        for attempt in &self.attempts {
            sockets.push(PollFd::new(attempt.as_fd(), PollFlags::POLLOUT));
        }
        ppoll(&mut sockets, Some(TimeSpec::from_duration(sleep)), None)?;
        let ready: Vec<bool> = sockets.iter().map(|socket| socket.any().unwrap_or(false)).collect();
        if ready[0] {
            self.read_answer()?;
        }
        for place in (0..self.attempts.len()).rev().filter(|place| ready[place + 1]) {
            let attempt = self.attempts.remove(place);
            if attempt.take_error()?.is_none() {
                return Ok(Some(attempt));
            }
            self.next = Some(Instant::now());
        }
        Ok(None)
    }

    fn read_answer(&mut self) -> io::Result<()> {
        let mut room = [0; MAX_ANSWER];
        let length = self.resolver.recv(&mut room)?;
        let packet = Packet::parse(&room[..length]).map_err(io::Error::other)?;
        for record in &packet.answers {
            match &record.rdata {
                RData::A(a) => self.waiting.push(Ipv4Addr::from(a.address).into()),
                RData::AAAA(aaaa) => self.waiting.push(std::net::Ipv6Addr::from(aaaa.address).into()),
                _ => {}
            }
        }
        let is_ipv6 = packet.questions.first().is_some_and(|question| question.qtype == TYPE::AAAA.into());
        let family = if is_ipv6 { Family::Ipv6 } else { Family::Ipv4 };
        self.unanswered.retain(|other| *other != family);
        let now = Instant::now();
        if self.attempts.is_empty() && self.last.is_none() {
            let is_waiting = self.unanswered.contains(&Family::Ipv6);
            self.next = Some(if is_waiting { now + RESOLUTION_DELAY } else { now });
        }
        Ok(())
    }
}

fn query(host: &str, kind: TYPE) -> io::Result<Vec<u8>> {
    let mut packet = Packet::new_query(1);
    packet.set_flags(PacketFlag::RECURSION_DESIRED);
    let name = Name::new(host).map_err(io::Error::other)?;
    packet.questions.push(Question::new(name, kind.into(), CLASS::IN.into(), false));
    packet.build_bytes_vec().map_err(io::Error::other)
}

/// Asks for the page and reads it to its end.
fn request(mut stream: Socket, end: Instant) -> io::Result<()> {
    let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(left))?;
    stream.write_all(REQUEST)?;
    let mut page = Vec::new();
    stream.read_to_end(&mut page)?;
    if page.is_empty() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
}
