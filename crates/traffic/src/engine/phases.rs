//! The phases of a trial on one thread's flows: warm-up, measured phase as a whole or in slices, end markers.

mod in_turns;

pub use in_turns::{MIN_MESSAGES, MIN_ROUND_TRIPS};

use crate::engine::allowance::{Allowance, MAX_OVERHEAD, overhead_bytes};
use crate::engine::destinations::Destinations;
use crate::engine::header::{Header, Phase, end_markers};
use crate::engine::pacer::PacingError;
use crate::engine::send_loop::{SendPhase, SendReport, Stamp, send};
use crate::engine::socket::MessageSocket;
use crate::engine::turns::Turn;
use crate::engine::tx::{FlowEnd, TxBatch};
use crate::host::cpu::CpuWindow;
use crate::sys::{self, Nanos, RealtimePriority, RunDelay};
use crate::timing::longest;
use stacklab_model::{Length, Pacing, Probe, SenderPriority, Sent, Slice, TrialSpec};
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use std::{io, thread};

/// How long what is on the way may take to arrive when a trial or a slice ends. A deep queue may take longer.
pub const END_LIMIT: Duration = Duration::from_secs(5);
/// The pause between two end markers on a lossy transport.
const MARKER_PAUSE: Duration = Duration::from_millis(2);
/// How often a sender looks whether its path is empty.
const POLL_INTERVAL: Duration = Duration::from_micros(50);

pub(crate) struct Finished {
    pub sent: Sent,
    pub pacing_error: Option<PacingError>,
    pub cpu: CpuWindow,
    pub slices: Vec<Slice>,
    /// User and kernel time of the sending thread over the slices, if the system divides it.
    pub cpu_parts: Option<(Nanos, Nanos)>,
    pub ends_ns: Nanos,
    pub ends: Vec<FlowEnd>,
    /// Zero-copy sends, and how many of them the kernel copied anyway.
    pub zerocopy: Option<(u64, u64)>,
}

impl Finished {
    pub(crate) fn join(mut self, other: Finished) -> Finished {
        let sent = &mut self.sent;
        let more = &other.sent;
        sent.warmup += more.warmup;
        sent.measured += more.measured;
        sent.markers += more.markers;
        sent.bytes += more.bytes;
        sent.refused += more.refused;
        sent.first_ns = earlier_send(sent.first_ns, more.first_ns);
        sent.last_ns = sent.last_ns.max(more.last_ns);
        sent.max_late_ns = sent.max_late_ns.max(more.max_late_ns);
        if let (Some(late), Some(more)) = (&mut self.pacing_error, &other.pacing_error) {
            late.join(more);
        }
        self.cpu.join(other.cpu);
        self.ends_ns = self.ends_ns.max(other.ends_ns);
        self.ends.extend(other.ends);
        self
    }
}

pub(crate) struct Sending<'a> {
    spec: &'a TrialSpec,
    /// This thread's share of the schedule and of the message count.
    pacing: Pacing,
    /// When the schedule's first message is due after the beginning: the threads alternate.
    offset_ns: Nanos,
    warmup: Length,
    length: Length,
    tx: TxBatch<'a>,
    done: Finished,
    run_delay: RunDelay,
    channels: &'a [MessageSocket],
    allowance: Option<&'a Allowance>,
    stop: Option<&'a AtomicBool>,
    /// Round trips that each slice of an echo has at the least: those that fit into its length.
    min_round_trips: u64,
}

/// The destinations of a flow's datagrams, if they are several.
fn choose_destinations(spec: &TrialSpec, channel: &MessageSocket) -> io::Result<Option<Destinations>> {
    if spec.destinations == 1 {
        return Ok(None);
    }
    let peer = channel.socket.peer_addr()?.as_socket();
    Ok(peer.map(|peer| Destinations::of(spec, peer.port())))
}

impl<'a> Sending<'a> {
    /// For a group of the flows, which the calling thread sends.
    pub(crate) fn new(
        spec: &'a TrialSpec,
        channels: &'a [MessageSocket],
        group: Range<usize>,
    ) -> io::Result<Self> {
        let all = channels.len() as u64;
        let pacing = match spec.probe.pacing {
            // Send whenever the kernel has room: the kernel keeps the schedule.
            _ if spec.kernel_pacing_rate().is_some() => Pacing::Flood,
            Pacing::Schedule(per_second) => Pacing::Schedule(per_second * group.len() as f64 / all as f64),
            Pacing::Shifted(per_second) => Pacing::Shifted(per_second * group.len() as f64 / all as f64),
            Pacing::Stepped(step) => Pacing::Stepped(step.share(group.len() as f64 / all as f64)),
            pacing => pacing,
        };
        let offset_ns = match pacing {
            Pacing::Schedule(own) | Pacing::Shifted(own) => {
                (1e9 / own * group.start as f64 / all as f64) as Nanos
            }
            _ => 0,
        };
        Ok(Sending {
            spec,
            pacing,
            offset_ns,
            warmup: share_length(count_paced_messages(spec, Length::Time(spec.probe.warmup_ns)), &group, all),
            length: share_length(count_paced_messages(spec, spec.probe.length), &group, all),
            tx: TxBatch::new(&channels[group.clone()], group.start as u16)?
                .spread_over(choose_destinations(spec, &channels[0])?),
            done: Finished {
                sent: Sent::default(),
                pacing_error: None,
                cpu: CpuWindow::new(spec.cpu_scope),
                slices: Vec::new(),
                cpu_parts: None,
                ends_ns: 0,
                ends: Vec::new(),
                zerocopy: None,
            },
            run_delay: RunDelay::of_this_thread(),
            channels,
            allowance: None,
            stop: None,
            min_round_trips: 0,
        })
    }

    /// The same, which sends no more than this allows.
    pub(crate) fn allowed_by(self, allowance: Option<&'a Allowance>) -> Self {
        Sending { tx: self.tx.allowed_by(allowance), allowance, ..self }
    }

    pub(crate) fn stopped_by(self, stop: Option<&'a AtomicBool>) -> Self {
        Sending { stop, ..self }
    }

    /// Runs all phases. `after_each` is called after each message with its phase, slice and sequence number.
    pub(crate) fn phases(
        &mut self,
        turn: Option<&mut Turn<'_>>,
        mut after_each: impl FnMut(Phase, u32, u64) -> io::Result<()>,
    ) -> io::Result<()> {
        let Some(turn) = turn else {
            if let Pacing::Share(_) = self.pacing {
                return Err(no_flood_rate());
            }
            let _priority = self.take_priority();
            if self.spec.probe.warmup_ns > 0 {
                let warm = self.phase(Phase::Warmup, self.warmup, 0, &mut after_each)?;
                self.done.sent.warmup = warm.messages;
            }
            self.done.cpu.open();
            match (self.pacing, self.length) {
                // As a slice, whose waits for a processor are known.
                (Pacing::Shifted(_) | Pacing::Stepped(_), Length::Time(ns)) => {
                    self.slice(0, ns, &mut after_each)?
                }
                _ => {
                    let measured = self.phase(Phase::Measured, self.length, 0, &mut after_each)?;
                    self.count(measured);
                }
            }
            self.done.cpu.close();
            return self.mark_end();
        };
        self.in_turns(turn, &mut after_each)?;
        // In a separate turn: end markers do not load another arm's slice.
        turn.wait()?;
        self.mark_end()?;
        turn.pass();
        Ok(())
    }

    /// The realtime priority that the trial asks for, while it is kept. A thread without the right to it keeps its
    /// own, and so does one on a machine with one processor, which the receiver needs too.
    fn take_priority(&mut self) -> Option<RealtimePriority> {
        let is_asked_for = self.spec.sender_priority == SenderPriority::Realtime;
        let is_sensible = is_asked_for && sys::processors_online() > 1;
        let priority = is_sensible.then(RealtimePriority::take).flatten();
        self.done.sent.at_realtime_priority = priority.is_some();
        priority
    }

    fn count(&mut self, part: SendReport) {
        let sent = &mut self.done.sent;
        if sent.measured == 0 {
            sent.first_ns = part.first_ns;
        }
        sent.measured += part.messages;
        sent.bytes = sent.measured * u64::from(self.spec.message_bytes);
        sent.refused += part.refused;
        sent.last_ns = part.last_ns;
        sent.max_late_ns = sent.max_late_ns.max(part.pacing_error.as_ref().map(PacingError::most_ns));
        match (&mut self.done.pacing_error, part.pacing_error) {
            (Some(late), Some(more)) => late.join(&more),
            (late, more) => *late = late.take().or(more),
        }
    }

    fn phase(
        &mut self,
        phase: Phase,
        length: Length,
        slice: u32,
        after_each: &mut impl FnMut(Phase, u32, u64) -> io::Result<()>,
    ) -> io::Result<SendReport> {
        let open_loop = self.spec.probe.probe == Probe::EchoOpenLoop;
        let send_phase = SendPhase {
            token: self.spec.token,
            phase,
            pacing: self.pacing,
            length,
            min_messages: if phase == Phase::Measured { self.min_round_trips } else { 0 },
            stamp: if open_loop { Stamp::Intended } else { Stamp::Actual },
            slice,
            offset_ns: self.offset_ns,
            // Messages of the kernel's schedule are counted, and what is counted must end, too.
            limit_ns: match (phase, self.spec.probe.length) {
                (Phase::Measured, _) => {
                    (longest(self.spec) + END_LIMIT).as_nanos().try_into().unwrap_or(Nanos::MAX)
                }
                _ => Nanos::MAX,
            },
            sent_before: if phase == Phase::Measured {
                self.done.sent.measured
            } else {
                self.done.sent.warmup
            },
            stop: self.stop,
        };
        send(&send_phase, &mut self.tx, |sequence| after_each(phase, slice, sequence))
    }

    fn mark_end(&mut self) -> io::Result<()> {
        // A limit to the rate holds for the markers of all flows, too.
        let markers_ns = self.allowance.map_or(0, |allowance| allowance.lasts_ns(overhead_bytes(self.spec)));
        let markers_ns = markers_ns.min(MAX_OVERHEAD.as_nanos() as Nanos);
        self.done.ends_ns = sys::now_ns() + END_LIMIT.as_nanos() as Nanos + markers_ns;
        self.tx.wait_until(self.done.ends_ns);
        for markers_left in (0..end_markers(self.spec.transport)).rev() {
            let token = self.spec.token;
            let phase = Phase::End;
            let sent_ns = sys::now_ns();
            let marker = Header { token, phase, markers_left, sent_ns, ..Header::default() };
            self.done.sent.markers += self.tx.mark_end(marker)?;
            if markers_left > 0 {
                thread::sleep(MARKER_PAUSE);
            }
        }
        Ok(())
    }

    /// What was sent. Waits until the kernel no longer needs the buffers.
    pub(crate) fn finish(mut self) -> io::Result<Finished> {
        self.done.ends = self.tx.ends();
        self.done.zerocopy = self.tx.finish(self.done.ends_ns)?;
        Ok(self.done)
    }
}

/// A share of the flood rate, and nobody flooded.
fn no_flood_rate() -> io::Error {
    let reason = "a share of the flood rate needs the arms of an interleaved trial on one testbed";
    io::Error::new(io::ErrorKind::InvalidInput, reason)
}

/// A message count, if the kernel paces: accepted messages leave later, so send calls do not show when a phase ends.
fn count_paced_messages(spec: &TrialSpec, length: Length) -> Length {
    match (spec.kernel_pacing_rate(), length) {
        (Some(per_second), Length::Time(ns)) => {
            Length::Packets((per_second * ns as f64 / 1e9).round() as u64)
        }
        _ => length,
    }
}

/// The part that a group of all flows has of a length: it divides a count of messages.
fn share_length(length: Length, group: &Range<usize>, all: u64) -> Length {
    let Length::Packets(packets) = length else { return length };
    let upto = |flow: usize| (u128::from(packets) * flow as u128 / u128::from(all)) as u64;
    Length::Packets(upto(group.end) - upto(group.start))
}

/// Waits until all has left a socket, or for TCP is acknowledged. Returns whether that was before `until`.
pub(crate) fn wait_until_empty(channel: &MessageSocket, until: Nanos) -> io::Result<bool> {
    while sys::unsent_bytes(&channel.socket)?.is_some_and(|bytes| bytes > 0) {
        if sys::now_ns() > until {
            return Ok(false);
        }
        // Asleep: acknowledgements are worked on by this processor.
        sys::sleep(POLL_INTERVAL);
    }
    Ok(true)
}

/// The earlier of two threads' first sends; 0 of one that found no room for a message.
fn earlier_send(one: Nanos, other: Nanos) -> Nanos {
    if one == 0 || other == 0 { one.max(other) } else { one.min(other) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_that_sent_nothing_has_no_first_send() {
        for (one, other, earlier) in [(7, 5, 5), (5, 7, 5), (0, 5, 5), (5, 0, 5), (0, 0, 0)] {
            assert_eq!(earlier_send(one, other), earlier);
        }
    }
}
