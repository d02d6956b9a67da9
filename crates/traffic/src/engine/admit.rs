//! Admission of a trial's sender by its token: whatever else reaches the receiver's port is counted as a stray, and
//! takes no place.

use crate::engine::flows::{self, is_nothing};
use crate::engine::header::Header;
use crate::engine::mapped;
use crate::engine::peers::Peers;
use crate::engine::socket::MessageSocket;
use crate::engine::socket_options;
use crate::sys::{self, Interest, PollEntry, Socket};
use crate::{Attempt, EngineError};
use stacklab_model::{HEADER_BYTES, Transport, TrialSpec};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Maximum number of connections that have not shown whose they are; the oldest is closed for a new one.
const MAX_UNKNOWN: usize = 64;
/// How long many connections wait for more of them, and one that has begun its header for the rest.
const POLL_INTERVAL: Duration = Duration::from_millis(1);
/// Time for which a receiver still reads after the trial's end while strays arrive.
const LONG: Duration = Duration::from_secs(1);

/// A socket that waits for the other end's flows.
#[derive(Clone, Copy)]
pub(crate) struct Listener<'a> {
    pub spec: &'a TrialSpec,
    /// Who is admitted; `None` is whoever knows the token.
    pub peers: Option<&'a Peers>,
    pub socket: &'a Socket,
    pub address: SocketAddr,
    pub ended: &'a AtomicBool,
}

impl Listener<'_> {
    /// The sender's connections, or socket, and the number of strays; none if the trial ended before. Flows of
    /// datagrams share the socket, which then has no peer.
    pub(crate) fn admit(self) -> Result<(Vec<MessageSocket>, u64), EngineError> {
        let attempt = || format!("accept {} on {}", self.spec.transport, self.address);
        match self.spec.transport {
            Transport::Tcp => self.connections(attempt),
            Transport::Udp => {
                let (socket, strays) = self.first_datagram().attempt(attempt)?;
                let channel = socket.map(|socket| MessageSocket::new(self.spec, socket)).transpose()?;
                Ok((channel.into_iter().collect(), strays))
            }
        }
    }

    fn first_datagram(self) -> io::Result<(Option<Socket>, u64)> {
        let Listener { spec, peers, socket, ended, .. } = self;
        let mut strays = 0;
        let mut ends = None;
        loop {
            // Read first: whatever arrived before the end can still be accepted afterwards.
            let over = check_for_end(ended, &mut ends);
            let from = match sys::peek_sender(socket) {
                Ok(sender) => mapped::from_socket(&sender),
                Err(error) if is_nothing(&error) && over != TrialEnd::Not => return Ok((None, strays)),
                Err(error) if is_nothing(&error) => continue,
                Err(error) => return Err(error),
            };
            let seen = if is_peer(peers, from) { peek_header(socket)? } else { None };
            let size = spec.message_bytes as usize;
            if seen.is_some_and(|seen| Header::read_front(&seen, size, spec.token).is_some()) {
                let socket = socket.try_clone()?;
                let from = from.ok_or_else(|| io::Error::other("the sender has no IP address"))?;
                if spec.flows == 1 && spec.destinations == 1 {
                    socket.connect(&socket_options::destination(&socket, spec, from)?)?;
                }
                return Ok((Some(socket), strays));
            }
            sys::receive_now(socket, &mut [0])?;
            strays += 1;
            if over == TrialEnd::ForLong {
                return Ok((None, strays));
            }
        }
    }

    /// The connections of all flows, each of which began with a header of this trial.
    fn connections(self, attempt: impl Fn() -> String) -> Result<(Vec<MessageSocket>, u64), EngineError> {
        let found = Vec::new();
        let unknown = VecDeque::new();
        let mut door = Door { listener: self, found, unknown, strays: 0, unprepared: None };
        let flows = self.spec.flows as usize;
        let mut ends = None;
        while door.found.len() < flows {
            // Read first: whatever arrived before the end can still be accepted afterwards.
            let over = check_for_end(self.ended, &mut ends);
            door.accept().attempt(&attempt)?;
            let all = door.unknown.iter().map(|channel| &channel.socket).chain([self.socket]);
            let mut ready: Vec<PollEntry> =
                all.map(|socket| PollEntry::new(socket, Interest::Readable)).collect();
            sys::poll_sockets(&mut ready, sys::RECEIVE_TICK).attempt(&attempt)?;
            if over == TrialEnd::ForLong
                || over == TrialEnd::JustNow && !ready.iter().any(PollEntry::is_ready)
            {
                if let Some(error) = door.unprepared {
                    return Err(error);
                }
                break;
            }
            if door.identify(&ready, over == TrialEnd::Not).attempt(&attempt)? {
                // What has begun to speak is ready all the time.
                sys::sleep(POLL_INTERVAL);
            }
        }
        // Other waiting connections are dropped, and so closed, before the sender begins.
        let Door { mut found, unknown, strays, .. } = door;
        let strays = strays + unknown.len() as u64;
        drop(unknown);
        if found.len() == flows {
            flows::admit_all(&found).attempt(&attempt)?;
            found.iter_mut().for_each(MessageSocket::begin_trial);
        }
        Ok((found, strays))
    }
}

/// Whether a trial has ended, and whether long ago: later strays do not keep a receiver alive.
#[derive(PartialEq)]
enum TrialEnd {
    Not,
    JustNow,
    ForLong,
}

fn check_for_end(ended: &AtomicBool, since: &mut Option<Instant>) -> TrialEnd {
    if !ended.load(Ordering::Relaxed) {
        return TrialEnd::Not;
    }
    let since = since.get_or_insert_with(Instant::now);
    if since.elapsed() > LONG { TrialEnd::ForLong } else { TrialEnd::JustNow }
}

pub(crate) fn is_peer(peers: Option<&Peers>, address: Option<SocketAddr>) -> bool {
    peers.is_none_or(|peers| address.is_some_and(|address| peers.hold(&address.into())))
}

/// A datagram that is longer than the buffer is taken all the same; Windows says so.
fn cut_short(error: io::Error) -> io::Result<usize> {
    const WSAEMSGSIZE: i32 = 10040;
    if cfg!(windows) && error.raw_os_error() == Some(WSAEMSGSIZE) { Ok(0) } else { Err(error) }
}

/// The first bytes that wait at a socket; `None` if it has ended.
pub(crate) fn peek_header(socket: &Socket) -> io::Result<Option<Vec<u8>>> {
    let mut room = [0; HEADER_BYTES as usize];
    match sys::peek(socket, &mut room).or_else(|error| cut_short(error).map(|_| room.len()))? {
        0 => Ok(None),
        count => Ok(Some(room[..count].to_vec())),
    }
}

struct Door<'a> {
    listener: Listener<'a>,
    /// Those that began with a header of the trial.
    found: Vec<MessageSocket>,
    /// Those that have not shown whose they are, the oldest first.
    unknown: VecDeque<MessageSocket>,
    strays: u64,
    unprepared: Option<EngineError>,
}

impl Door<'_> {
    fn most_unknown(&self) -> usize {
        self.listener.spec.flows as usize + MAX_UNKNOWN
    }

    /// Accepts what waits. Of many connections, all are accepted before they are looked at.
    fn accept(&mut self) -> io::Result<()> {
        let Listener { spec, peers, socket, .. } = self.listener;
        let wait = if self.unknown.len() > MAX_UNKNOWN { POLL_INTERVAL } else { Duration::ZERO };
        for _ in 0..self.most_unknown() {
            let mut entry = [PollEntry::new(socket, Interest::Readable)];
            sys::poll_sockets(&mut entry, wait)?;
            if !entry[0].is_ready() {
                break;
            }
            match sys::accept(socket) {
                Ok((_, from)) if !is_peer(peers, from) => self.strays += 1,
                // Prepared at once: its first message has the kernel's stamp.
                Ok((connection, _)) => match MessageSocket::new(spec, connection) {
                    Ok(channel) => self.unknown.push_back(channel),
                    // A stray may be gone again. If it was the sender's, the trial ends, and this is why.
                    Err(error) => {
                        self.unprepared = Some(error);
                        self.strays += 1;
                    }
                },
                // It was closed before it was accepted, or there is no room for it now.
                Err(_) => {
                    sys::sleep(POLL_INTERVAL);
                    break;
                }
            }
        }
        Ok(())
    }

    /// Looks at connections that are ready. Returns whether one has a part of its header, for whose rest it may wait.
    fn identify(&mut self, ready: &[PollEntry], may_wait: bool) -> io::Result<bool> {
        let Listener { spec, .. } = self.listener;
        let mut has_part = false;
        for (channel, ready) in std::mem::take(&mut self.unknown).into_iter().zip(ready) {
            if !ready.is_ready() {
                self.unknown.push_back(channel);
                continue;
            }
            match peek_header(&channel.socket) {
                Ok(Some(seen))
                    if Header::read(&seen, spec.token).is_some()
                        && self.found.len() < spec.flows as usize =>
                {
                    // The header is not part of the stream; its sender waits until all flows are admitted.
                    sys::receive_now(&channel.socket, &mut [0; HEADER_BYTES as usize])?;
                    self.found.push(channel);
                }
                Ok(Some(seen)) if !seen.is_empty() && seen.len() < HEADER_BYTES as usize && may_wait => {
                    has_part = true;
                    self.unknown.push_back(channel);
                }
                Err(error) if is_nothing(&error) => self.unknown.push_back(channel),
                Ok(_) | Err(_) => self.strays += 1,
            }
        }
        while self.unknown.len() > self.most_unknown() {
            self.unknown.pop_front();
            self.strays += 1;
        }
        Ok(has_part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::header::Phase;
    use crate::engine::receiver::Receiver;
    use crate::engine::sender;
    use crate::fixtures;
    use stacklab_model::{Family, Length, Pacing, Probe, Received};
    use std::io::{Read, Write};
    use std::net::{TcpStream, UdpSocket};

    /// All of them fit into a socket's buffer beside the strays, however long the receiver waits for a CPU.
    const MESSAGES: u64 = 100;

    fn spec(transport: Transport, flows: u32) -> TrialSpec {
        let mut spec = fixtures::spec(Family::Ipv4, transport);
        (spec.probe.probe, spec.probe.pacing) = (Probe::Stream, Pacing::Schedule(20_000.0));
        (spec.probe.length, spec.probe.warmup_ns, spec.flows) = (Length::Packets(MESSAGES), 0, flows);
        spec
    }

    #[test]
    fn strays_take_no_place_and_are_counted() {
        for (transport, flows) in
            [(Transport::Udp, 1), (Transport::Udp, 3), (Transport::Tcp, 1), (Transport::Tcp, 3)]
        {
            let spec = spec(transport, flows);
            let receiver = Receiver::listen(spec.clone(), spec.family.loopback()).unwrap();
            let mut open = Vec::new();
            let mut strays = 0;
            match transport {
                Transport::Udp => {
                    let stray = UdpSocket::bind("127.0.0.1:0").unwrap();
                    // Too short, another trial's, and longer than any of this one.
                    for junk in [&b"x"[..], &[7; 200], &[0; 60_000]] {
                        stray.send_to(junk, receiver.address).unwrap();
                        strays += 1;
                    }
                }
                Transport::Tcp => {
                    for junk in [&b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"[..], &[7; 200], b"x", b""] {
                        let mut stream = TcpStream::connect(receiver.address).unwrap();
                        stream.write_all(junk).unwrap();
                        open.push(stream);
                        strays += 1;
                    }
                }
            }
            let sender = sender::run(&spec, spec.family.loopback(), receiver.address).unwrap();
            let receiver = receiver.collect().unwrap();
            let what = format!("{transport}, {flows} flows");
            assert_eq!((sender.sent.measured, receiver.received.measured), (MESSAGES, MESSAGES), "{what}");
            assert_eq!(receiver.received.strays, strays, "{what}");
        }
    }

    #[test]
    fn a_stream_that_lost_bytes_is_an_error() {
        let spec = spec(Transport::Tcp, 1);
        let receiver = Receiver::listen(spec.clone(), spec.family.loopback()).unwrap();
        let mut stream = TcpStream::connect(receiver.address).unwrap();
        stream.write_all(&flows::bare_header(spec.token, 0, Phase::Warmup)).unwrap();
        stream.read_exact(&mut [0]).unwrap();
        stream.write_all(&vec![7; spec.message_bytes as usize]).unwrap();
        let error = receiver.collect().unwrap_err().to_string();
        assert!(error.contains("has lost bytes"), "{error}");
    }

    #[test]
    fn a_trial_that_nobody_begins_ends_with_its_strays() {
        for transport in Transport::ALL.iter().copied() {
            let spec = spec(transport, 1);
            let receiver = Receiver::listen(spec.clone(), spec.family.loopback()).unwrap();
            let silent = TcpStream::connect(receiver.address);
            assert_eq!(silent.is_ok(), transport == Transport::Tcp);
            let report = receiver.collect().unwrap();
            assert_eq!(report.received.measured, 0);
        }
    }

    #[test]
    fn only_a_peer_is_admitted_even_with_the_token() {
        for (transport, probe) in [
            (Transport::Udp, Probe::Stream),
            (Transport::Tcp, Probe::Stream),
            (Transport::Tcp, Probe::Connect),
        ] {
            let mut spec = spec(transport, 1);
            if probe == Probe::Connect {
                (spec.probe.probe, spec.probe.pacing) = (probe, Pacing::Lockstep);
                spec.probe.length = Length::Packets(5);
            }
            let peers = Peers { addresses: vec!["127.0.0.1".parse().unwrap()], networks: Vec::new() };
            let receiver =
                Receiver::listen_to(spec.clone(), spec.family.loopback(), Some(peers), &Default::default())
                    .unwrap();
            let mut message = vec![0; spec.message_bytes as usize];
            message[..4].copy_from_slice(&spec.token.to_be_bytes());
            let datagrams = transport == Transport::Udp;
            let kind = if datagrams { socket2::Type::DGRAM } else { socket2::Type::STREAM };
            let other = Socket::new(socket2::Domain::IPV4, kind, None).unwrap();
            other.bind(&SocketAddr::from(([127, 0, 0, 2], 0)).into()).unwrap();
            other.connect(&receiver.address.into()).unwrap();
            // Refused, where it has been closed before.
            let _ = other.send(&message);
            let sender = sender::run(&spec, spec.family.loopback(), receiver.address).unwrap();
            let Received { measured, strays, .. } = receiver.collect().unwrap().received;
            assert_eq!((measured, strays), (sender.sent.measured, 1), "{transport} {probe}");
        }
    }

    #[test]
    fn a_connection_that_says_nothing_gives_way_to_others() {
        let spec = spec(Transport::Tcp, 1);
        let receiver = Receiver::listen(spec.clone(), spec.family.loopback()).unwrap();
        let silent: Vec<TcpStream> =
            (0..2 * MAX_UNKNOWN).map(|_| TcpStream::connect(receiver.address).unwrap()).collect();
        silent[0].set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        assert_eq!((&silent[0]).read(&mut [0]).expect("the first one is closed"), 0);
        receiver.collect().unwrap();
    }

    #[test]
    fn endless_strays_keep_no_receiver() {
        let yes = AtomicBool::new(true);
        let mut long_ago = Instant::now().checked_sub(2 * LONG);
        assert!(check_for_end(&yes, &mut None) == TrialEnd::JustNow);
        assert!(check_for_end(&yes, &mut long_ago) == TrialEnd::ForLong);
        let spec = spec(Transport::Udp, 1);
        let receiver = Receiver::listen(spec.clone(), spec.family.loopback()).unwrap();
        let address = receiver.address;
        let end = Instant::now() + Duration::from_secs(20);
        let going_on = AtomicBool::new(true);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let stray = UdpSocket::bind("127.0.0.1:0").unwrap();
                while going_on.load(Ordering::Relaxed) && Instant::now() < end {
                    let _ = stray.send_to(b"x", address);
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
            let received = receiver.collect().unwrap().received;
            going_on.store(false, Ordering::Relaxed);
            assert!(Instant::now() < end && received.measured == 0, "{} strays", received.strays);
        });
    }
}
