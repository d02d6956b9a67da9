//! The flows of a trial on the sending host: sends by the probe, ends the flows, and reports.

use crate::engine::allowance::Allowance;
use crate::engine::count::{ArrivalCounter, ArrivalCounts, SharedState};
use crate::engine::own_socket;
use crate::engine::pacer::PacingError;
use crate::engine::phases::{Finished, Sending, wait_until_empty};
use crate::engine::receive_loop::receive;
use crate::engine::rx::RxBatch;
use crate::engine::socket::{MessageSocket, tcp_total};
use crate::engine::stamps::{InterfaceRtt, StampClock};
use crate::engine::threads;
use crate::engine::turns::Turn;
use crate::host::{self, SocketMemory, cpu};
use crate::sys::{self, Nanos};
use crate::{Attempt, EngineError};
use stacklab_model::{
    Counters, DelayPoints, HostReport, Metric, Point, Probe, Role, ScopedAddr, Sent, TcpInfo, Transport,
    TrialSpec,
};
use std::net::{Shutdown, SocketAddr};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{io, thread};

const SRTT_PERIOD: Duration = Duration::from_millis(10);

/// The open flows of a trial, and how they are sent.
pub(super) struct FlowSender<'a> {
    pub spec: &'a TrialSpec,
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub channels: &'a [MessageSocket],
    /// The flows of each sending thread.
    pub groups: &'a [Range<usize>],
    /// As in [`crate::engine::sender::Run`].
    pub stop: Option<&'a AtomicBool>,
    pub allowance: Option<&'a Allowance>,
}

/// The state of the host before the trial's packets.
pub(super) struct HostBefore {
    pub counters: Counters,
    pub memory: SocketMemory,
}

/// What the sending host observes while it sends.
struct Observations<'a> {
    answers: ArrivalCounter<'a>,
    interface_rtt: Option<InterfaceRtt<'a>>,
    /// Mean of the smoothed round-trip time, microseconds, if it is sampled.
    srtt_mean_us: Option<f64>,
}

impl FlowSender<'_> {
    /// Sends all messages of the trial, and reports what this host saw.
    pub(super) fn run(
        &self,
        before: HostBefore,
        mut turn: Option<Turn<'_>>,
    ) -> Result<HostReport, EngineError> {
        let FlowSender { spec, from, to, .. } = *self;
        let given = ScopedAddr::from(from);
        let ended = AtomicBool::new(false);
        let shared = SharedState::new(&ended);
        let mut seen = Observations {
            answers: ArrivalCounter::new(spec, &shared, 1),
            interface_rtt: InterfaceRtt::watch(spec, &self.channels[0]),
            srtt_mean_us: None,
        };
        let finished = match spec.probe.probe {
            Probe::Echo | Probe::EchoUnderLoad => self.send_in_lockstep(turn.as_mut(), &mut seen),
            Probe::EchoOpenLoop => self.send_and_receive(&ended, &mut seen),
            Probe::Program | Probe::Sockets => {
                Err(io::Error::other("this probe has no messages that an agent could send"))
            }
            Probe::Stream | Probe::Paced | Probe::Search | Probe::Connect => {
                self.send_and_sample_srtt(turn.as_mut(), &ended, &mut seen)
            }
        };
        let finished = finished
            .attempt(|| format!("run {} over {} from {given} to {to}", spec.probe.probe, spec.transport))?;
        if let Some(turn) = turn {
            turn.complete();
        }
        self.report(before, finished, seen)
    }

    /// Sends on one flow, each message after the answer to the one before.
    fn send_in_lockstep(
        &self,
        turn: Option<&mut Turn<'_>>,
        seen: &mut Observations<'_>,
    ) -> io::Result<Finished> {
        let FlowSender { spec, channels, .. } = *self;
        let Observations { answers, interface_rtt, .. } = seen;
        let mut rx = RxBatch::new(channels, StampClock::new())?;
        let sending = Sending::new(spec, channels, 0..1)?;
        let mut sending = sending.stopped_by(self.stop).allowed_by(self.allowance);
        sending.phases(turn, |phase, slice, sequence| {
            answers.await_answer(phase, sequence, sys::now_ns());
            receive(&mut rx, spec.message_bytes as usize, spec.token, answers)?;
            let answered = answers.settle_answer(phase, slice);
            match interface_rtt {
                Some(trips) => trips.note(phase, answered.then(|| rx.recv_meta())),
                None => Ok(()),
            }
        })?;
        sending.finish()
    }

    /// Sends on a schedule, while another thread receives the answers.
    fn send_and_receive(&self, ended: &AtomicBool, seen: &mut Observations<'_>) -> io::Result<Finished> {
        let size = self.spec.message_bytes as usize;
        thread::scope(|scope| {
            let answers = scope.spawn(|| {
                let mut rx = RxBatch::new(self.channels, StampClock::new())?;
                receive(&mut rx, size, self.spec.token, &mut seen.answers)
            });
            let sent = self.stream(None);
            ended.store(true, Ordering::Relaxed);
            let received = answers.join().expect("the receive loop does not panic");
            sent.and_then(|sent| received.map(|()| sent))
        })
    }

    /// Sends a stream, while another thread samples the smoothed round-trip time if a metric needs it.
    fn send_and_sample_srtt(
        &self,
        turn: Option<&mut Turn<'_>>,
        ended: &AtomicBool,
        seen: &mut Observations<'_>,
    ) -> io::Result<Finished> {
        let metrics = &self.spec.probe.metrics;
        let asked = metrics.contains(&Metric::TcpSrtt) || metrics.contains(&Metric::BufferDelay);
        let sample = self.spec.transport == Transport::Tcp && asked;
        let first = &self.channels[0];
        thread::scope(|scope| {
            let sampler = sample.then(|| scope.spawn(|| sample_srtt(first, ended)));
            let sent = self.stream(turn);
            ended.store(true, Ordering::Relaxed);
            seen.srtt_mean_us =
                sampler.and_then(|sampler| sampler.join().expect("the sampler does not panic"));
            sent
        })
    }

    /// Sends on all flows without waiting for replies; each thread sends its own flows.
    fn stream(&self, turn: Option<&mut Turn<'_>>) -> io::Result<Finished> {
        let FlowSender { spec, channels, stop, allowance, .. } = *self;
        if let Some(turn) = turn {
            let mut sending = Sending::new(spec, channels, 0..channels.len())?.allowed_by(allowance);
            sending.phases(Some(turn), |_, _, _| Ok(()))?;
            return sending.finish();
        }
        let sent = threads::on_each(self.groups, |group| {
            let mut sending = Sending::new(spec, channels, group)?.stopped_by(stop).allowed_by(allowance);
            sending.phases(None, |_, _, _| Ok(()))?;
            sending.finish()
        })?;
        let all = sent.into_iter().reduce(Finished::join);
        all.ok_or_else(|| io::Error::other("there was no flow"))
    }

    /// Ends the flows, then reads what the host counted of them.
    fn report(
        &self,
        before: HostBefore,
        finished: Finished,
        seen: Observations<'_>,
    ) -> Result<HostReport, EngineError> {
        let spec = self.spec;
        let first = &self.channels[0];
        let endpoint = own_socket::observe(&first.socket, None)?;
        let sent = self.end_flows(&finished)?;
        let tcp = tcp_total(self.channels);
        let after = own_socket::count_at_uplinks(spec, &endpoint.interface);
        let mut counters = host::increase(&before.counters, after, &[&first.socket]);
        if let Some((sent, copied)) = finished.zerocopy {
            counters.0.insert("socket.zerocopy".to_owned(), sent);
            counters.0.insert("socket.zerocopy_copied".to_owned(), copied);
        }
        let ArrivalCounts { received, delays, series, slices: answered, .. } = seen.answers.finish();
        let cpu = if spec.schedule.is_alone() {
            finished.cpu.finish()
        } else {
            cpu::of_slices(&finished.slices, finished.cpu_parts)
        };
        let mut slices = finished.slices;
        for (slice, answered) in slices.iter_mut().zip(&answered) {
            slice.delay_ns = answered.delay_ns;
            slice.jitter_ns = answered.jitter_ns;
        }
        // Replies are timestamped when the program receives them.
        let left = if spec.probe.probe == Probe::EchoOpenLoop { Point::Schedule } else { Point::Call };
        let delay_points = delays.is_some().then(|| DelayPoints::between(left, Point::Call));
        let (interface_delays, point) = seen.interface_rtt.and_then(InterfaceRtt::finish).unzip();
        Ok(HostReport {
            io: Some(first.io),
            socket_memory_kib: before.memory.peak_kib(sent.first_ns, sent.last_ns),
            sent,
            received,
            delays,
            delay_points,
            interface_delays,
            interface_points: point.map(|point| DelayPoints::between(point, point)),
            pacing_error: finished.pacing_error.and_then(PacingError::finish),
            series,
            slices,
            cpu,
            tcp: tcp.map(|tcp| TcpInfo { srtt_mean_us: seen.srtt_mean_us, ..tcp }),
            counters,
            peak_rss_kib: sys::peak_rss_kib(),
            ..HostReport::new(Role::Sender, endpoint)
        })
    }

    /// Waits until the flows are empty, and returns what was sent without what they discarded.
    fn end_flows(&self, finished: &Finished) -> Result<Sent, EngineError> {
        let FlowSender { spec, from, to, .. } = *self;
        let mut sent = finished.sent.clone();
        for (channel, end) in self.channels.iter().zip(&finished.ends) {
            let left = drain(channel, spec.transport, finished.ends_ns)
                .attempt(|| format!("end {} from {from} to {to}", spec.probe.probe))?;
            let discarded = (left as usize).saturating_sub(end.marker) + end.rest;
            sent.discard(discarded as u64, spec.message_bytes.into());
        }
        Ok(sent)
    }
}

/// Waits until the receiver has closed, or for UDP the send queue is empty, or the trial has ended. Returns the bytes
/// of a connection that have not arrived then, which are discarded.
fn drain(channel: &MessageSocket, transport: Transport, until: Nanos) -> io::Result<u32> {
    if transport == Transport::Udp {
        wait_until_empty(channel, until)?;
        return Ok(0);
    }
    channel.socket.shutdown(Shutdown::Write)?;
    let mut rest = [0; 4096];
    while sys::now_ns() < until {
        match sys::receive(&channel.socket, &mut rest) {
            Ok(0) => return Ok(0),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
    }
    let left = sys::unsent_bytes(&channel.socket)?.unwrap_or(0);
    // Closing it now resets it, and what a queue still holds reaches a port that is closed.
    channel.socket.set_linger(Some(Duration::ZERO))?;
    Ok(left)
}

/// Mean of the smoothed round-trip time in microseconds, sampled until the trial has ended.
fn sample_srtt(channel: &MessageSocket, ended: &AtomicBool) -> Option<f64> {
    let mut sum = 0;
    let mut samples = 0;
    while !ended.load(Ordering::Relaxed) {
        thread::sleep(SRTT_PERIOD);
        if let Some(rtt) = sys::tcp_info(&channel.socket).ok().and_then(|info| info.rtt_us) {
            sum += rtt;
            samples += 1;
        }
    }
    (samples > 0).then(|| sum as f64 / f64::from(samples))
}
