//! The echo sink.

use crate::engine::header::{Header, Phase};
use crate::engine::receive_loop::Sink;
use crate::engine::socket::Channel;
use crate::host::cpu::CpuWindow;
use crate::stats::sequence::{Arrival, SequenceWindow};
use crate::sys::Nanos;
use stacklab_model::{Received, Sent, TrialSpec};
use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

/// Sends every message back once, with the time of its arrival written into it.
pub(crate) struct Reflect<'a> {
    channel: &'a Channel,
    ended: &'a AtomicBool,
    pub received: Received,
    pub sent: Sent,
    /// CPU time from the first measured arrival to the first end marker.
    pub cpu: CpuWindow,
    /// The measured messages that have come: a further copy of one is counted, and not answered.
    seen: SequenceWindow,
}

impl<'a> Reflect<'a> {
    /// A reflector on a channel. `ended` is set by whoever knows that the sender has ended.
    pub(crate) fn new(spec: &TrialSpec, channel: &'a Channel, ended: &'a AtomicBool) -> Self {
        let (received, sent) = (Received::default(), Sent::default());
        let seen = SequenceWindow::new(1);
        Reflect { channel, ended, received, sent, cpu: CpuWindow::new(spec.cpu_scope), seen }
    }
}

impl Sink for Reflect<'_> {
    fn take(&mut self, header: Header, message: &mut [u8], now: Nanos) -> io::Result<ControlFlow<()>> {
        if header.phase == Phase::Open {
            return Ok(ControlFlow::Continue(()));
        }
        if header.phase == Phase::Measured {
            match self.seen.arrive(header.sequence) {
                Arrival::Duplicate => {
                    self.received.duplicates += 1;
                    return Ok(ControlFlow::Continue(()));
                }
                Arrival::Reordered => self.received.reordered += 1,
                Arrival::First | Arrival::BeyondWindow => {}
            }
        }
        Header::write_reflected(message, now);
        match self.channel.send(message) {
            Ok(refused) => self.sent.refused += refused,
            // The sender needs no reply to its last marker, and may have closed.
            Err(error) if header.phase == Phase::End && error.kind() == io::ErrorKind::ConnectionRefused => {}
            // It has discarded what had not arrived when its time was over.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) =>
            {
                return Ok(ControlFlow::Break(()));
            }
            Err(error) => return Err(error),
        }
        match header.phase {
            Phase::Warmup => {
                self.received.warmup += 1;
                self.sent.warmup += 1;
            }
            Phase::Measured => {
                if self.received.measured == 0 {
                    self.cpu.open();
                    (self.received.first_ns, self.sent.first_ns) = (now, now);
                }
                self.received.measured += 1;
                self.received.bytes += message.len() as u64;
                self.sent.measured += 1;
                self.sent.bytes += message.len() as u64;
                (self.received.last_ns, self.sent.last_ns) = (now, now);
            }
            Phase::End => {
                self.cpu.close();
                self.sent.markers += 1;
            }
            Phase::Open => {}
        }
        let last = header.phase == Phase::End && header.markers_left == 0;
        Ok(if last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn stray(&mut self) -> ControlFlow<()> {
        self.received.strays += 1;
        ControlFlow::Continue(())
    }

    fn idle(&mut self, _now: Nanos) -> ControlFlow<()> {
        if self.ended.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
