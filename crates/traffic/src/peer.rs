//! Exchanges with peers that speak another protocol: two-way measurements with four times, as of STAMP and TWAMP. What
//! is on the wire is the caller's ([`PacketFormat`]); sending, receiving, times and counts are the engine's.

use crate::engine::header::{Header, Phase};
use crate::engine::pacer::PacingError;
use crate::engine::receive_loop::{Sink, receive_headers, stop_if};
use crate::engine::rx::RxBatch;
use crate::engine::send_loop::{SendPhase, SendReport, Stamp, send};
use crate::engine::socket::{CONNECT_LIMIT, MessageSocket};
use crate::engine::stamps::StampClock;
use crate::engine::tx::TxBatch;
use crate::host::{now_unix_ns, zone};
use crate::stats::flow::{Arrival, SequenceWindow};
use crate::sys::{self, Nanos, SocketOption};
use crate::waiting::WaitNotice;
use crate::{Attempt, EngineError};
use stacklab_model::{
    Cell, Family, Length, Pacing, Probe, ProbeSpec, ScopedAddr, SizeOf, Transport, TrialSpec, Tuning,
};
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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
#[derive(Debug, Default)]
pub struct ExchangeResult {
    /// Packets sent.
    pub sent: u64,
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
    let attempt = || format!("exchange packets with {}", spec.to);
    let (from, to) = zone::ends(&spec.from, spec.to).attempt(attempt)?;
    let channels = [open(&trial(spec, format.bytes()), from, to, spec.ttl)?];
    let realtime = sys::realtime_offset();
    let times = SendTimes::new();
    let sent = AtomicU64::new(0);
    let ended = AtomicU64::new(0);
    let packets = Packets { format, times: &times, realtime_offset_ns: realtime.offset_ns };
    let mut counter = AnswerCounter {
        times: &times,
        sent: &sent,
        ended: &ended,
        realtime_offset_ns: realtime.offset_ns,
        seen: SequenceWindow::new(1),
        found: ExchangeResult::default(),
        closing: None,
        last_ns: 0,
        unanswered: Some(WaitNotice::until(&format!("an answer of {to}"), "until all packets are sent")),
    };
    let sending = send_and_count(&measured_phase(spec, interrupted), &channels, &packets, &mut counter);
    // What was exchanged until an interruption is reported, if there is something.
    if interrupted.load(Ordering::Relaxed) && counter.found.answers.is_empty() {
        return Err(PeerError::Interrupted);
    }
    let (sending, answer_ttl) = match sending {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Err(PeerError::Refused(to)),
        sending => sending.attempt(attempt)?,
    };
    if !counter.found.answers.is_empty() {
        close(&channels, &packets, sending.messages as u32, &mut counter).attempt(attempt)?;
    }
    let moved = sys::realtime_offset().offset_ns.abs_diff(realtime.offset_ns);
    Ok(ExchangeResult {
        sent: sending.messages,
        answer_ttl,
        late_ns: sending.pacing_error.as_ref().map_or(0, PacingError::most_ns),
        clock_was_set: moved > SET_NS + realtime.bound_ns,
        ..counter.found
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

/// How long after the last packet, or the last answer, an answer is waited for.
const LOSS_THRESHOLD_NS: Nanos = 1_000_000_000;

/// Send times of the latest packets, nanoseconds since 1970, so that an answer with another T1 is none.
struct SendTimes(Box<[AtomicU64]>);

impl SendTimes {
    const SLOTS: usize = 1 << 16;

    fn new() -> Self {
        SendTimes((0..Self::SLOTS).map(|_| AtomicU64::new(0)).collect())
    }

    fn note(&self, sequence: u32, unix_ns: u64) {
        self.0[sequence as usize % Self::SLOTS].store(unix_ns, Ordering::Release);
    }

    /// The format may round it by some nanoseconds.
    fn was_at(&self, sequence: u32, unix_ns: u64) -> bool {
        self.0[sequence as usize % Self::SLOTS].load(Ordering::Acquire).abs_diff(unix_ns) <= 1_000
    }
}

/// Writes and reads the packets of a protocol, and notes when each one was sent.
struct Packets<'a> {
    format: &'a dyn PacketFormat,
    times: &'a SendTimes,
    /// From the monotonic to the realtime clock.
    realtime_offset_ns: i64,
}

impl Packets<'_> {
    #[inline]
    fn write(&self, header: &Header, message: &mut [u8]) {
        let unix_ns = header.sent_ns.saturating_add_signed(self.realtime_offset_ns);
        let sequence = header.sequence as u32;
        self.times.note(sequence, unix_ns);
        self.format.write(sequence, unix_ns, message);
    }

    #[inline]
    fn read(&self, message: &[u8]) -> Option<PeerAnswer> {
        self.format.read(message, now_unix_ns())
    }
}

struct AnswerCounter<'a> {
    times: &'a SendTimes,
    /// Packets sent so far, which are those of the measurement.
    sent: &'a AtomicU64,
    /// Set when all are sent.
    ended: &'a AtomicU64,
    realtime_offset_ns: i64,
    seen: SequenceWindow,
    found: ExchangeResult,
    /// The first packet after the end of the measurement.
    closing: Option<u32>,
    last_ns: Nanos,
    /// Until the first answer.
    unanswered: Option<WaitNotice>,
}

impl AnswerCounter<'_> {
    fn count(&mut self, answer: PeerAnswer, arrived: Nanos) {
        match self.seen.arrive(answer.sequence.into()) {
            Arrival::First => {}
            Arrival::Reordered => self.found.reordered += 1,
            Arrival::Duplicate | Arrival::BeyondWindow => {
                self.found.duplicates += 1;
                return;
            }
        }
        self.unanswered = None;
        self.found.answers.push((answer, arrived.saturating_add_signed(self.realtime_offset_ns)));
    }
}

impl Sink<PeerAnswer> for AnswerCounter<'_> {
    fn take(&mut self, answer: PeerAnswer, _: &mut [u8], arrived: Nanos) -> io::Result<ControlFlow<()>> {
        self.last_ns = self.last_ns.max(arrived);
        if !self.times.was_at(answer.sequence, answer.sent_unix_ns) {
            self.found.strays += 1;
        } else if let Some(closing) = self.closing
            && answer.sequence >= closing
        {
            self.found.closing = Some(answer);
            return Ok(ControlFlow::Break(()));
        } else {
            self.count(answer, arrived);
        }
        let is_all = self.closing.is_none()
            && self.ended.load(Ordering::Acquire) > 0
            && self.found.answers.len() as u64 == self.sent.load(Ordering::Acquire);
        Ok(stop_if(is_all))
    }

    fn stray(&mut self) -> ControlFlow<()> {
        self.found.strays += 1;
        ControlFlow::Continue(())
    }

    fn idle(&mut self, now: Nanos) -> ControlFlow<()> {
        let ended = self.ended.load(Ordering::Acquire);
        let over = ended > 0 && now.saturating_sub(ended.max(self.last_ns)) >= LOSS_THRESHOLD_NS;
        stop_if(over)
    }
}
