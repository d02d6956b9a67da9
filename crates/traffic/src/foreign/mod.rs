//! Streams in other programs' formats, by the engine's send loop and receive loop: each stream has a socket and a
//! thread. Who opens them, and who says when they end, is the caller's.

use crate::engine::header::Phase;
use crate::engine::own_socket;
use crate::engine::phases::wait_until_empty;
use crate::engine::receive_loop::receive;
use crate::engine::rx::RxBatch;
use crate::engine::send_loop::{SendPhase, Stamp, send};
use crate::engine::socket::{CONNECT_LIMIT, MessageSocket, tcp_total};
use crate::engine::socket_options;
use crate::engine::stamps::StampClock;
use crate::engine::tx::TxBatch;
use crate::host::cpu::CpuWindow;
use crate::host::{self, zone};
use crate::sys::{self, Nanos, Socket, SocketOption};
use crate::{Attempt, EngineError};
use socket2::{Domain, Type};
use stacklab_model::{
    Counters, CpuScope, Endpoint, HostReport, Length, Received, Role, ScopedAddr, Sent, Transport, TrialSpec,
};
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

mod counts;

pub use crate::engine::header::{ForeignFormat, ForeignHeader};
pub use crate::engine::socket_options::renounce_privileges;
use counts::Tally;
pub use counts::{Counted, ReceivedCounts, SentCounts, Way};

/// Whether this system has a congestion control without loading a module for it.
pub fn has_congestion_control(name: &str) -> bool {
    sys::has_congestion_control(name)
}

/// Whether this process may choose a congestion control; an ordinary user may be allowed few of them.
pub fn may_choose_congestion_control(name: &str) -> bool {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None);
    socket.is_ok_and(|socket| sys::set(&socket, SocketOption::CongestionControl(name)).is_ok())
}

/// Nanoseconds of this host's clock.
pub fn now_ns() -> u64 {
    sys::now_ns()
}

/// A stream in another program's format. Its trial is of one flow: pacing and length are the stream's own.
pub struct Stream {
    channel: MessageSocket,
    spec: TrialSpec,
    /// Read before anything could arrive: what waits until it is received has its own arrival time.
    clock: StampClock,
}

/// How long what was sent may take to leave.
const DRAIN_LIMIT: Duration = Duration::from_secs(20);

impl Stream {
    /// Connects to a peer, from an own address.
    pub fn connect(
        spec: &TrialSpec,
        format: ForeignFormat,
        from: &ScopedAddr,
        to: SocketAddr,
    ) -> Result<Self, EngineError> {
        let (from, to) = zone::ends(from, to).attempt(|| format!("connect {from} to {to}"))?;
        let clock = StampClock::new();
        let mut channel = MessageSocket::connect(spec, from, to, CONNECT_LIMIT)?;
        channel.foreign = Some(format);
        Ok(Stream { channel, spec: spec.clone(), clock })
    }

    /// Takes a socket that a peer connected, and sets its options but the segment size, which was agreed on then.
    pub fn from_accepted_socket(
        spec: &TrialSpec,
        format: ForeignFormat,
        socket: socket2::Socket,
    ) -> Result<Self, EngineError> {
        let socket = Socket::from(socket);
        let mut spec = spec.clone();
        (spec.tuning.mss, spec.tuning.flow_label) = (None, None);
        socket_options::set(&socket, &spec).attempt(|| "set the options of a stream's socket".to_owned())?;
        let mut channel = MessageSocket::new(&spec, socket)?;
        channel.foreign = Some(format);
        Ok(Stream { channel, spec, clock: StampClock::new() })
    }

    fn socket(&self) -> &Socket {
        &self.channel.socket
    }

    /// Sends what a program says before its messages.
    pub fn send_first(&self, mut words: &[u8]) -> io::Result<()> {
        while !words.is_empty() {
            let sent = self.socket().send(words)?;
            words = &words[sent..];
        }
        Ok(())
    }

    /// Receives what a program answers before its messages; `WouldBlock` after some milliseconds.
    pub fn receive_first(&self, room: &mut [u8]) -> io::Result<usize> {
        sys::receive(self.socket(), room)
    }

    /// The socket as the kernel reports it.
    pub fn endpoint(&self) -> Result<Endpoint, EngineError> {
        own_socket::observe(&self.channel.socket, None)
    }

    /// Segments that the kernel sent again; `None` for datagrams, or where the system does not count them.
    pub fn retransmits(&self) -> Option<u64> {
        match self.spec.transport {
            Transport::Tcp => sys::tcp_info(&self.channel.socket).ok()?.total_retrans,
            Transport::Udp => None,
        }
    }

    /// Waits until all that was sent has left the socket; for TCP, until it was acknowledged.
    pub fn drain(&self) -> io::Result<()> {
        let until = sys::now_ns() + DRAIN_LIMIT.as_nanos() as Nanos;
        if wait_until_empty(&self.channel, until)? {
            return Ok(());
        }
        let text = format!("the send queue did not empty within {} s", DRAIN_LIMIT.as_secs());
        Err(io::Error::new(io::ErrorKind::TimedOut, text))
    }

    /// Informs the peer of a connection that nothing more is sent.
    pub fn end(&self) {
        // One that is gone already needs no telling.
        let _ = self.channel.socket.shutdown(Shutdown::Write);
    }

    /// Ends both directions of a connection, so that nobody waits for it. What was not sent is dropped when it is
    /// closed: for many seconds the kernel would ask a peer that is gone whether it has room.
    pub fn shut(&self) {
        if self.spec.transport == Transport::Udp {
            // Nobody waits for long, and receives of a socket that is shut give nothing without end.
            return;
        }
        let _ = self.channel.socket.set_linger(Some(Duration::ZERO));
        let _ = self.channel.socket.shutdown(Shutdown::Both);
    }

    /// Sends until the length is reached or `stop` is set; `progress` has the measured bytes so far.
    pub fn send(&self, omit_ns: Nanos, stop: &AtomicBool, progress: &AtomicU64) -> SentCounts {
        let mut counts = SentCounts::default();
        let ended = self.send_phases(omit_ns, stop, progress, &mut counts);
        counts.last_ns = sys::now_ns();
        if let Err(error) = ended
            && !stop.load(Ordering::Relaxed)
        {
            counts.failed = Some(error.to_string());
        }
        counts
    }

    fn send_phases(
        &self,
        omit_ns: Nanos,
        stop: &AtomicBool,
        progress: &AtomicU64,
        counts: &mut SentCounts,
    ) -> io::Result<()> {
        let mut tx = TxBatch::new(std::slice::from_ref(&self.channel), 0)?;
        if omit_ns > 0 {
            let omitted = self.plan(Phase::Warmup, Length::Time(omit_ns), stop);
            send(&omitted, &mut tx, |sequence| {
                counts.omitted = sequence + 1;
                Ok(())
            })?;
        }
        counts.first_ns = sys::now_ns();
        let measured = SendPhase {
            sent_before: counts.omitted,
            ..self.plan(Phase::Measured, self.spec.probe.length, stop)
        };
        let mut sent_ns = counts.first_ns;
        let mut longest_pause_ns = 0;
        let ended = send(&measured, &mut tx, |sequence| {
            let now = sys::now_ns();
            longest_pause_ns = longest_pause_ns.max(now - std::mem::replace(&mut sent_ns, now));
            counts.measured = sequence + 1 - counts.omitted;
            progress.store(counts.measured * u64::from(self.spec.message_bytes), Ordering::Relaxed);
            Ok(())
        });
        counts.longest_pause_ns = longest_pause_ns.max(sys::now_ns() - sent_ns);
        counts.refused = ended?.refused;
        Ok(())
    }

    fn plan<'a>(&self, phase: Phase, length: Length, stop: &'a AtomicBool) -> SendPhase<'a> {
        SendPhase {
            token: self.spec.token,
            phase,
            pacing: self.spec.probe.pacing,
            length,
            stamp: Stamp::Actual,
            slice: 0,
            min_messages: 0,
            offset_ns: 0,
            limit_ns: u64::MAX,
            sent_before: 0,
            stop: Some(stop),
        }
    }

    /// Receives until the peer closes or `stop` is set; `progress` has the measured bytes so far, from `begin_ns` on,
    /// which may be named while it receives.
    pub fn receive(&self, begin_ns: &AtomicU64, stop: &AtomicBool, progress: &AtomicU64) -> ReceivedCounts {
        let size = self.spec.message_bytes as usize;
        let datagram = (self.spec.transport == Transport::Udp).then_some(size);
        let mut tally = Tally::new(datagram, begin_ns, stop, progress);
        let ended = RxBatch::new(std::slice::from_ref(&self.channel), self.clock.clone())
            .and_then(|mut rx| receive(&mut rx, size, self.spec.token, &mut tally));
        if let Err(error) = ended
            && !stop.load(Ordering::Relaxed)
        {
            tally.counts.failed = Some(error.to_string());
        }
        tally.finish()
    }
}

/// Observes this host during a test.
pub struct OwnHost {
    interface: String,
    before: Counters,
    cpu: CpuWindow,
}

impl OwnHost {
    /// Begins to observe the interface that has an address, before a socket is opened.
    pub fn begin(address: &ScopedAddr) -> Result<Self, EngineError> {
        let at = zone::socket_addr(address, 0).attempt(|| format!("look for {address}"))?;
        let interface = own_socket::interface_of(at)?;
        let before = host::counters(&interface);
        Ok(OwnHost { interface, before, cpu: CpuWindow::new(CpuScope::Host) })
    }

    /// The measured part begins.
    pub fn open(&mut self) {
        self.cpu.open();
    }

    /// The measured part has ended.
    pub fn close(&mut self) {
        self.cpu.close();
    }

    /// The report of the streams in one direction, each with what it counted, in messages of `message_bytes`.
    pub fn report(
        self,
        streams: &[(Arc<Stream>, Way)],
        counted: &[Counted],
        way: Way,
        message_bytes: u32,
    ) -> Result<HostReport, EngineError> {
        let own = || streams.iter().zip(counted).filter(|((_, own), _)| *own == way);
        let ((first, _), _) = own()
            .next()
            .ok_or_else(|| io::Error::other("there is none"))
            .attempt(|| "look at a test's streams".to_owned())?;
        let role = if way == Way::Send { Role::Sender } else { Role::Receiver };
        let mut report = HostReport {
            io: Some(first.channel.io),
            cpu: self.cpu.finish(),
            tcp: tcp_total(own().map(|((stream, _), _)| &stream.channel)),
            counters: host::counters_since(&self.before, &self.interface, &[first.socket()]),
            peak_rss_kib: sys::peak_rss_kib(),
            ..HostReport::new(role, first.endpoint()?)
        };
        for (_, counted) in own() {
            match counted {
                Counted::Sent(counts) => add_sent(&mut report.sent, counts, message_bytes),
                Counted::Received(counts) => add_received_counts(&mut report.received, counts, message_bytes),
            }
        }
        if own().count() > 1 {
            report.flow_bytes = own()
                .map(|(_, counted)| match counted {
                    Counted::Sent(counts) => counts.measured * u64::from(message_bytes),
                    Counted::Received(counts) => counts.bytes,
                })
                .collect();
        }
        Ok(report)
    }
}

fn add_sent(sent: &mut Sent, counts: &SentCounts, message_bytes: u32) {
    sent.warmup += counts.omitted;
    sent.measured += counts.measured;
    sent.bytes += counts.measured * u64::from(message_bytes);
    sent.refused += counts.refused;
    sent.first_ns = earlier(sent.first_ns, counts.first_ns);
    sent.last_ns = sent.last_ns.max(counts.last_ns);
}

fn add_received_counts(received: &mut Received, counts: &ReceivedCounts, message_bytes: u32) {
    // Of a stream of bytes, what would be messages of the sender.
    let messages = |bytes: u64| bytes / u64::from(message_bytes.max(1));
    received.warmup += messages(counts.omitted_bytes);
    received.measured += messages(counts.bytes);
    received.bytes += counts.bytes;
    received.duplicates += counts.duplicates;
    received.reordered += counts.reordered;
    received.strays += counts.strays;
    received.first_ns = earlier(received.first_ns, counts.first_ns);
    received.last_ns = received.last_ns.max(counts.last_ns);
}

/// The earlier of two times, of which 0 is none.
fn earlier(one: u64, two: u64) -> u64 {
    match (one, two) {
        (0, time) | (time, 0) => time,
        (one, two) => one.min(two),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::fixtures;
    use stacklab_model::Family;
    use std::net::UdpSocket;

    #[test]
    fn what_waits_has_its_own_arrival_time() {
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        let format = ForeignFormat::Datagrams {
            write: |_, _| (),
            read: |message| Some(ForeignHeader { sequence: message[0].into(), sent_ns: 0 }),
        };
        let spec = fixtures::spec(Family::Ipv4, Transport::Udp);
        let own = ScopedAddr::from(Family::Ipv4.loopback());
        let stream = Stream::connect(&spec, format, &own, peer.local_addr().unwrap()).unwrap();
        let here = stream.socket().local_addr().unwrap().as_socket().unwrap();
        peer.send_to(&[0; 128], here).unwrap();
        let sent_ns = sys::now_ns();
        // A busy machine begins to receive only now.
        std::thread::sleep(Duration::from_millis(50));
        peer.send_to(&[1; 128], here).unwrap();
        let counts = stream.receive(&AtomicU64::new(0), &AtomicBool::new(true), &AtomicU64::new(0));
        assert_eq!(counts.messages, 2);
        assert!(counts.first_ns <= sent_ns, "{} ns late", counts.first_ns - sent_ns);
    }
}
