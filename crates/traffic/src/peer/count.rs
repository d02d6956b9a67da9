//! The sink of answers.

use crate::engine::receive_loop::Sink;
use crate::peer::PeerAnswer;
use crate::stats::sequence::{Arrival, SequenceWindow};
use crate::sys::Nanos;
use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

/// How long after the last packet, or the last answer, an answer is waited for.
pub(super) const LOSS_THRESHOLD_NS: Nanos = 1_000_000_000;

/// Send times of the latest packets, nanoseconds since 1970, so that an answer with another T1 is none.
pub(super) struct SendTimes(Box<[AtomicU64]>);

impl SendTimes {
    const SLOTS: usize = 1 << 16;

    pub(super) fn new() -> Self {
        SendTimes((0..Self::SLOTS).map(|_| AtomicU64::new(0)).collect())
    }

    pub(super) fn note(&self, sequence: u32, unix_ns: u64) {
        self.0[sequence as usize % Self::SLOTS].store(unix_ns, Ordering::Release);
    }

    /// The format may round it by some nanoseconds.
    fn was_at(&self, sequence: u32, unix_ns: u64) -> bool {
        self.0[sequence as usize % Self::SLOTS].load(Ordering::Acquire).abs_diff(unix_ns) <= 1_000
    }
}

pub(super) struct AnswerCounter<'a> {
    pub times: &'a SendTimes,
    /// Packets sent so far, which are those of the measurement.
    pub sent: &'a AtomicU64,
    /// Set when all are sent.
    pub ended: &'a AtomicU64,
    pub realtime_offset_ns: i64,
    pub seen: SequenceWindow,
    /// The first answer to each packet, with its arrival time, nanoseconds since 1970.
    pub answers: Vec<(PeerAnswer, u64)>,
    pub duplicates: u64,
    pub reordered: u64,
    pub strays: u64,
    /// The first packet after the end of the measurement, and the answer to one of those.
    pub closing: Option<u32>,
    pub closed: Option<PeerAnswer>,
    last_ns: Nanos,
}

impl<'a> AnswerCounter<'a> {
    pub(super) fn new(
        times: &'a SendTimes,
        sent: &'a AtomicU64,
        ended: &'a AtomicU64,
        realtime_offset_ns: i64,
    ) -> Self {
        AnswerCounter {
            times,
            sent,
            ended,
            realtime_offset_ns,
            seen: SequenceWindow::new(1),
            answers: Vec::new(),
            duplicates: 0,
            reordered: 0,
            strays: 0,
            closing: None,
            closed: None,
            last_ns: 0,
        }
    }

    fn count(&mut self, answer: PeerAnswer, arrived: Nanos) {
        match self.seen.arrive(answer.sequence.into()) {
            Arrival::First => {}
            Arrival::Reordered => self.reordered += 1,
            Arrival::Duplicate | Arrival::BeyondWindow => {
                self.duplicates += 1;
                return;
            }
        }
        self.answers.push((answer, arrived.saturating_add_signed(self.realtime_offset_ns)));
    }
}

impl Sink<PeerAnswer> for AnswerCounter<'_> {
    fn take(&mut self, answer: PeerAnswer, _: &mut [u8], arrived: Nanos) -> io::Result<ControlFlow<()>> {
        self.last_ns = self.last_ns.max(arrived);
        if !self.times.was_at(answer.sequence, answer.sent_unix_ns) {
            self.strays += 1;
        } else if let Some(closing) = self.closing
            && answer.sequence >= closing
        {
            self.closed = Some(answer);
            return Ok(ControlFlow::Break(()));
        } else {
            self.count(answer, arrived);
        }
        let is_all = self.closing.is_none()
            && self.ended.load(Ordering::Acquire) > 0
            && self.answers.len() as u64 == self.sent.load(Ordering::Acquire);
        Ok(if is_all { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn stray(&mut self) -> ControlFlow<()> {
        self.strays += 1;
        ControlFlow::Continue(())
    }

    fn idle(&mut self, now: Nanos) -> ControlFlow<()> {
        let ended = self.ended.load(Ordering::Acquire);
        let over = ended > 0 && now.saturating_sub(ended.max(self.last_ns)) >= LOSS_THRESHOLD_NS;
        if over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
