//! The packets of an exchange and their answers: which one belongs to which packet, and which ones to none.

use crate::engine::header::Header;
use crate::engine::receive_loop::{Sink, stop_if};
use crate::host::now_unix_ns;
use crate::peer::{PacketFormat, PeerAnswer};
use crate::stats::flow::{Arrival, SequenceWindow};
use crate::sys::Nanos;
use crate::waiting::WaitNotice;
use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

/// How long after the last packet, or the last answer, an answer is waited for.
const LOSS_THRESHOLD_NS: Nanos = 1_000_000_000;

/// Send times of the latest packets, nanoseconds since 1970, so that an answer with another T1 is none.
pub(super) struct SendTimes(Box<[AtomicU64]>);

impl SendTimes {
    const SLOTS: usize = 1 << 16;

    pub(super) fn new() -> Self {
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
pub(super) struct Packets<'a> {
    pub format: &'a dyn PacketFormat,
    pub times: &'a SendTimes,
    /// From the monotonic to the realtime clock.
    pub realtime_offset_ns: i64,
}

impl Packets<'_> {
    #[inline]
    pub(super) fn write(&self, header: &Header, message: &mut [u8]) {
        let unix_ns = header.sent_ns.saturating_add_signed(self.realtime_offset_ns);
        let sequence = header.sequence as u32;
        self.times.note(sequence, unix_ns);
        self.format.write(sequence, unix_ns, message);
    }

    #[inline]
    pub(super) fn read(&self, message: &[u8]) -> Option<PeerAnswer> {
        self.format.read(message, now_unix_ns())
    }
}

/// What has arrived so far.
#[derive(Default)]
pub(super) struct Answers {
    /// The first answer to each packet, with its arrival time, nanoseconds since 1970.
    pub first: Vec<(PeerAnswer, u64)>,
    pub duplicates: u64,
    pub reordered: u64,
    pub strays: u64,
    pub closing: Option<PeerAnswer>,
}

pub(super) struct AnswerCounter<'a> {
    times: &'a SendTimes,
    /// Packets sent so far, which are those of the measurement.
    pub sent: &'a AtomicU64,
    /// Set when all are sent.
    pub ended: &'a AtomicU64,
    realtime_offset_ns: i64,
    seen: SequenceWindow,
    pub found: Answers,
    /// The first packet after the end of the measurement.
    pub closing: Option<u32>,
    last_ns: Nanos,
    /// Until the first answer.
    unanswered: Option<WaitNotice>,
}

impl<'a> AnswerCounter<'a> {
    pub(super) fn new(
        packets: &Packets<'a>,
        sent: &'a AtomicU64,
        ended: &'a AtomicU64,
        notice: WaitNotice,
    ) -> Self {
        AnswerCounter {
            times: packets.times,
            sent,
            ended,
            realtime_offset_ns: packets.realtime_offset_ns,
            seen: SequenceWindow::new(1),
            found: Answers::default(),
            closing: None,
            last_ns: 0,
            unanswered: Some(notice),
        }
    }
}

impl AnswerCounter<'_> {
    fn has_all(&self) -> bool {
        self.closing.is_none()
            && self.ended.load(Ordering::Acquire) > 0
            && self.found.first.len() as u64 == self.sent.load(Ordering::Acquire)
    }

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
        self.found.first.push((answer, arrived.saturating_add_signed(self.realtime_offset_ns)));
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
        Ok(stop_if(self.has_all()))
    }

    fn stray(&mut self) -> ControlFlow<()> {
        self.found.strays += 1;
        ControlFlow::Continue(())
    }

    fn idle(&mut self, now: Nanos) -> ControlFlow<()> {
        let ended = self.ended.load(Ordering::Acquire);
        let is_late = ended > 0 && now.saturating_sub(ended.max(self.last_ns)) >= LOSS_THRESHOLD_NS;
        // The last answer may come before the sender notes that it has ended.
        stop_if(is_late || self.has_all())
    }
}
