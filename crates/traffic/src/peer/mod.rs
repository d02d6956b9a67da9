//! Exchanges with peers that speak another protocol: two-way measurements with four times, as of STAMP and TWAMP. What
//! is on the wire is the caller's ([`PacketFormat`]); sending, receiving, times and counts are the engine's.

mod answers;

use crate::engine::header::{Header, Phase};
use crate::engine::own_socket;
use crate::engine::pacer::PacingError;
use crate::engine::receive_loop::receive_headers;
use crate::engine::rx::RxBatch;
use crate::engine::send_loop::{SendPhase, SendReport, Stamp, send};
use crate::engine::socket::{CONNECT_LIMIT, MessageSocket};
use crate::engine::stamps::StampClock;
use crate::engine::tx::TxBatch;
use crate::host::{self, now_unix_ns, zone};
use crate::sys::{self, SocketOption};
use crate::waiting::WaitNotice;
use crate::{Attempt, EngineError};
use answers::{AnswerCounter, Answers, Packets, SendTimes};
use stacklab_model::{
    Cell, Counters, Delays, Endpoint, Family, Length, Pacing, Probe, ProbeSpec, ScopedAddr, SizeOf,
    Transport, TrialSpec, Tuning,
};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;
use std::{io, thread};

#[cfg(target_os = "linux")]
pub use crate::sys::{Datagram, Service, clock_error_ns};

/// The test packets of a protocol.
pub trait PacketFormat: Sync {
    /// Bytes of a packet.
    fn bytes(&self) -> usize;
    /// Writes packet number `sequence`, which is sent at this time, nanoseconds since 1970.
    fn write(&self, sequence: u32, sent_unix_ns: u64, message: &mut [u8]);
    /// Reads an answer that arrived at about this time, nanoseconds since 1970; `None` if it is none of this session.
    fn read(&self, message: &[u8], now_unix_ns: u64) -> Option<PeerAnswer>;
}

/// What an answer says. Times are nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerAnswer {
    /// The number of the packet that it answers.
    pub sequence: u32,
    /// The peer's own number.
    pub peer_sequence: u32,
    /// T1: when the packet was sent, as the peer repeats it.
    pub sent_unix_ns: u64,
    /// T2: when the peer received it.
    pub received_unix_ns: u64,
    /// T3: when the peer answered.
    pub answered_unix_ns: u64,
    /// TTL, or hop limit, with which it reached the peer; 0 if the peer does not know.
    pub ttl: u8,
    /// The largest error of the peer's clock, nanoseconds, if the peer says that it is synchronised.
    pub clock_error_ns: Option<u64>,
}

/// Packets after the measurement that show how the peer counts.
const CLOSING: u32 = 4;
/// By how much the realtime clock may seem to move against the monotonic one, nanoseconds, if nobody has set it.
const SET_NS: u64 = 1_000_000;

/// What is sent.
#[derive(Debug, Clone)]
pub struct ExchangeSpec {
    /// Own address.
    pub from: ScopedAddr,
    /// The peer.
    pub to: SocketAddr,
    /// Packets per second.
    pub per_second: f64,
    /// When the measurement ends.
    pub length: Length,
    /// Socket options.
    pub tuning: Tuning,
    /// TTL, or hop limit, of packets.
    pub ttl: u8,
}

/// What an exchange gave.
#[derive(Debug)]
pub struct ExchangeResult {
    /// Start, nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// Duration, nanoseconds.
    pub wall_ns: u64,
    /// The own socket, as the kernel reports it.
    pub endpoint: Endpoint,
    /// Increments of this host's counters.
    pub counters: Counters,
    /// Packets sent.
    pub sent: u64,
    /// Calls that the kernel rejected for lack of buffer space; all were repeated.
    pub refused: u64,
    /// When the first packet was sent, nanoseconds since 1970.
    pub first_sent_unix_ns: u64,
    /// After the last one was sent.
    pub last_sent_unix_ns: u64,
    /// By how much each packet left after its time.
    pub pacing_error: Option<Delays>,
    /// The first answer to each packet, with its arrival time, nanoseconds since 1970, in the order of arrival.
    pub answers: Vec<(PeerAnswer, u64)>,
    /// Further answers to the same packet.
    pub duplicates: u64,
    /// Answers after one to a later packet.
    pub reordered: u64,
    /// Packets that are not answers of this session.
    pub strays: u64,
    /// The answer to a packet that was sent at the end, after a number had been left out.
    pub closing: Option<PeerAnswer>,
    /// TTL, or hop limit, with which the last packet arrived here, if the system reports it.
    pub answer_ttl: Option<u8>,
    /// By how much a packet left after its time at most, nanoseconds.
    pub late_ns: u64,
    /// Whether the own realtime clock was set meanwhile: one-way delays are then wrong.
    pub clock_was_set: bool,
}

/// Why an exchange gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// A step on this host failed.
    #[error("{0}")]
    Engine(#[from] EngineError),
    /// Nothing serves there.
    #[error("nothing serves UDP port {} on {}", .0.port(), ScopedAddr::from(*.0))]
    Refused(SocketAddr),
    /// The user interrupted.
    #[error("interrupted")]
    Interrupted,
}

/// Sends packets on a schedule and counts their answers.
pub fn exchange(
    spec: &ExchangeSpec,
    format: &dyn PacketFormat,
    interrupted: &AtomicBool,
) -> Result<ExchangeResult, PeerError> {
    sys::precise_timers();
    let started_unix_ns = now_unix_ns();
    let clock = Instant::now();
    let attempt = || format!("exchange packets with {}", spec.to);
    let (from, to) = zone::ends(&spec.from, spec.to).attempt(attempt)?;
    let interface = own_socket::interface_of(from)?;
    let counters_before = host::counters(&interface);
    let channels = [open(&trial(spec, format.bytes()), from, to, spec.ttl)?];
    let realtime = sys::realtime_offset();
    let times = SendTimes::new();
    let sent = AtomicU64::new(0);
    let ended = AtomicU64::new(0);
    let packets = Packets { format, times: &times, realtime_offset_ns: realtime.offset_ns };
    let notice = WaitNotice::until(&format!("an answer of {to}"), "until all packets are sent");
    let mut counter = AnswerCounter::new(&packets, &sent, &ended, notice);
    let sending = send_and_count(&measured_phase(spec, interrupted), &channels, &packets, &mut counter);
    // What was exchanged until an interruption is reported, if there is something.
    if interrupted.load(Ordering::Relaxed) && counter.found.first.is_empty() {
        return Err(PeerError::Interrupted);
    }
    let (sending, answer_ttl) = match sending {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Err(PeerError::Refused(to)),
        sending => sending.attempt(attempt)?,
    };
    if !counter.found.first.is_empty() {
        close(&channels, &packets, sending.messages as u32, &mut counter).attempt(attempt)?;
    }
    let moved = sys::realtime_offset().offset_ns.abs_diff(realtime.offset_ns);
    let Answers { first, duplicates, reordered, strays, closing } = counter.found;
    Ok(ExchangeResult {
        started_unix_ns,
        wall_ns: clock.elapsed().as_nanos() as u64,
        endpoint: own_socket::observe(&channels[0].socket, None)?,
        counters: host::counters_since(&counters_before, &interface, &[&channels[0].socket]),
        sent: sending.messages,
        refused: sending.refused,
        first_sent_unix_ns: sending.first_ns.saturating_add_signed(realtime.offset_ns),
        last_sent_unix_ns: sending.last_ns.saturating_add_signed(realtime.offset_ns),
        late_ns: sending.pacing_error.as_ref().map_or(0, PacingError::most_ns),
        pacing_error: sending.pacing_error.and_then(PacingError::finish),
        answers: first,
        duplicates,
        reordered,
        strays,
        closing,
        answer_ttl,
        clock_was_set: moved > SET_NS + realtime.bound_ns,
    })
}

/// The phase of all packets but those that end the exchange.
fn measured_phase<'a>(spec: &ExchangeSpec, interrupted: &'a AtomicBool) -> SendPhase<'a> {
    SendPhase {
        token: 0,
        phase: Phase::Measured,
        pacing: Pacing::Schedule(spec.per_second),
        length: spec.length,
        stamp: Stamp::Actual,
        slice: 0,
        min_messages: 0,
        offset_ns: 0,
        limit_ns: u64::MAX,
        sent_before: 0,
        stop: Some(interrupted),
    }
}

/// Sends the packets of a phase while another thread counts their answers. Returns also the TTL of the last answer.
fn send_and_count(
    phase: &SendPhase<'_>,
    channels: &[MessageSocket],
    packets: &Packets<'_>,
    counter: &mut AnswerCounter<'_>,
) -> io::Result<(SendReport, Option<u8>)> {
    let AnswerCounter { sent, ended, .. } = *counter;
    thread::scope(|scope| {
        let answers = scope.spawn(|| {
            let mut rx = RxBatch::new(channels, StampClock::new())?;
            receive_headers(&mut rx, |message| packets.read(message), counter)?;
            Ok::<_, io::Error>(rx.recv_meta().ttl)
        });
        let sending = TxBatch::new(channels, 0).and_then(|tx| {
            send(phase, &mut tx.with_header(&|header, message| packets.write(header, message)), |sequence| {
                sent.store(sequence + 1, Ordering::Release);
                Ok(())
            })
        });
        ended.store(sys::now_ns(), Ordering::Release);
        let received = answers.join().expect("the receive loop does not panic");
        sending.and_then(|sending| Ok((sending, received?)))
    })
}

fn trial(spec: &ExchangeSpec, bytes: usize) -> TrialSpec {
    let cell = Cell::new(Family::of(spec.to.ip()), Transport::Udp, SizeOf::Write, bytes as u32);
    let probe = ProbeSpec {
        probe: Probe::EchoOpenLoop,
        pacing: Pacing::Schedule(spec.per_second),
        length: spec.length,
        warmup_ns: 0,
        interval_ns: 1_000_000_000,
        metrics: Vec::new(),
    };
    TrialSpec { tuning: spec.tuning.clone().into(), ..TrialSpec::new(0, &cell, probe) }
}

/// A connected socket whose arrivals have the kernel's timestamps.
fn open(trial: &TrialSpec, from: SocketAddr, to: SocketAddr, ttl: u8) -> Result<MessageSocket, EngineError> {
    let mut channel = MessageSocket::connect(trial, from, to, CONNECT_LIMIT)?;
    channel.stamped = sys::set(&channel.socket, SocketOption::RxTimestamps).is_ok();
    // Where it is not reported, it is missing.
    let _ = sys::set(&channel.socket, SocketOption::RxTtl(Family::of(to.ip())));
    let set = match to {
        SocketAddr::V4(_) => channel.socket.set_ttl_v4(ttl.into()),
        SocketAddr::V6(_) => channel.socket.set_unicast_hops_v6(ttl.into()),
    };
    set.attempt(|| format!("send with a TTL of {ttl}"))?;
    Ok(channel)
}

/// Leaves a number out and sends some more packets, until one is answered: a reflector that counts what it answers now
/// has another number than the sender.
fn close(
    channels: &[MessageSocket],
    packets: &Packets<'_>,
    sent: u32,
    counter: &mut AnswerCounter<'_>,
) -> io::Result<()> {
    let channel = &channels[0];
    let mut message = vec![0; channel.message_bytes];
    let mut rx = RxBatch::new(channels, StampClock::new())?;
    counter.closing = Some(sent.saturating_add(1));
    for place in 0..CLOSING {
        let sequence = u64::from(sent.saturating_add(1).saturating_add(place));
        let header = Header { sequence, sent_ns: sys::now_ns(), ..Header::default() };
        packets.write(&header, &mut message);
        channel.send(&message)?;
        counter.ended.store(sys::now_ns(), Ordering::Release);
        receive_headers(&mut rx, |message| packets.read(message), counter)?;
        if counter.found.closing.is_some() {
            break;
        }
    }
    Ok(())
}
