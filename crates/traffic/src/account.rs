//! The sink that counts: arrivals, losses, delays, series; at the receiver of a stream and the sender of an echo.

use crate::cpu::CpuWindow;
use crate::delay::DelayRecorder;
use crate::header::{Header, Phase};
use crate::receive::Sink;
use crate::sequence::{Arrival, SequenceWindow};
use crate::series::Series;
use crate::sys::Nanos;
use stacklab_model::{Delays, IntervalRow, Received, TrialSpec};
use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

/// A message is lost when it has not arrived so long after the end marker or the last arrival behind it, whichever
/// is later (the waiting time that RFC 7680 asks to be stated).
const LOSS_THRESHOLD_NS: Nanos = 50_000_000;
/// The same where no end marker has arrived, counted from when the sender was known to have ended.
const SILENCE_NS: Nanos = 500_000_000;
/// How long a closed loop waits for an answer before it sends the next message.
const ANSWER_LIMIT_NS: Nanos = 1_000_000_000;

/// Counts what arrives.
pub struct Account<'a> {
    received: Received,
    window: SequenceWindow,
    delays: DelayRecorder,
    series: Series,
    cpu: CpuWindow,
    /// How many measured messages were sent, once an end marker has said so.
    expected: Option<u64>,
    /// The answer that a closed loop waits for, and since when.
    awaited: Option<(Phase, u64, Nanos)>,
    last_arrival_ns: Nanos,
    /// Set by whoever knows that the sender has ended.
    ended: &'a AtomicBool,
}

impl<'a> Account<'a> {
    /// An empty account.
    pub fn new(spec: &TrialSpec, ended: &'a AtomicBool) -> Self {
        Account {
            received: Received::default(),
            window: SequenceWindow::new(),
            delays: DelayRecorder::new(),
            series: Series::new(spec.probe.interval_ns),
            cpu: CpuWindow::new(spec.cpu_scope),
            expected: None,
            awaited: None,
            last_arrival_ns: 0,
            ended,
        }
    }

    /// Stops the next receive at this answer, or when it has not come for a second.
    pub fn await_answer(&mut self, phase: Phase, sequence: u64, now: Nanos) {
        self.awaited = Some((phase, sequence, now));
    }

    /// What was counted: arrivals, delays, series, and the CPU time from the first measured arrival to the end marker.
    pub fn finish(self) -> (Received, Option<Delays>, Vec<IntervalRow>, CpuWindow) {
        (self.received, self.delays.finish(), self.series.finish(), self.cpu)
    }

    fn measured(&mut self, header: Header, bytes: u64, now: Nanos) {
        if self.received.measured == 0 {
            self.received.first_ns = now;
            self.cpu.open();
        }
        match self.window.arrive(header.sequence) {
            Arrival::First => {}
            Arrival::Reordered => self.received.reordered += 1,
            Arrival::Duplicate => {
                self.received.duplicates += 1;
                return;
            }
            Arrival::BeyondWindow => {
                self.received.beyond_window += 1;
                return;
            }
        }
        self.received.measured += 1;
        self.received.at_first += u64::from(now == self.received.first_ns);
        self.received.bytes += bytes;
        self.received.last_ns = self.received.last_ns.max(now);
        let delay = now.saturating_sub(header.sent_ns);
        self.delays.record(delay);
        self.series.record(now.saturating_sub(self.received.first_ns), bytes, delay);
    }
}

impl Sink for Account<'_> {
    fn take(&mut self, header: Header, message: &mut [u8], now: Nanos) -> io::Result<ControlFlow<()>> {
        self.last_arrival_ns = now;
        match header.phase {
            Phase::Warmup => self.received.warmup += 1,
            Phase::Measured => self.measured(header, message.len() as u64, now),
            Phase::End if self.expected.is_none() => {
                self.cpu.close();
                self.expected = Some(header.sequence);
            }
            Phase::End => {}
        }
        let complete = self.expected.is_some_and(|expected| self.received.measured >= expected);
        let answered = self
            .awaited
            .is_some_and(|(phase, sequence, _)| phase == header.phase && sequence == header.sequence);
        Ok(if complete || answered { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn stray(&mut self) {
        self.received.strays += 1;
    }

    fn idle(&mut self, now: Nanos) -> ControlFlow<()> {
        if let Some((_, _, since)) = self.awaited {
            return stop_if(now.saturating_sub(since) >= ANSWER_LIMIT_NS);
        }
        if self.last_arrival_ns == 0 {
            self.last_arrival_ns = now;
        }
        let quiet = now.saturating_sub(self.last_arrival_ns);
        let ended = self.ended.load(Ordering::Relaxed);
        stop_if(self.expected.is_some() && quiet >= LOSS_THRESHOLD_NS || ended && quiet >= SILENCE_NS)
    }
}

fn stop_if(stop: bool) -> ControlFlow<()> {
    if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}
