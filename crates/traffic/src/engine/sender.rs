//! The sending host of a trial: prepares, warms up, measures, ends, reports.

use crate::engine::connect;
use crate::engine::count::{ArrivalCounter, Counted, SharedState};
use crate::engine::endpoint;
use crate::engine::header::{Header, Phase};
use crate::engine::interface_rtt::InterfaceRtt;
use crate::engine::pacer::Lateness;
use crate::engine::receive::receive;
use crate::engine::rx::RxBatch;
use crate::engine::send::{SendPhase, SendReport, Stamp, send};
use crate::engine::socket::{Channel, tcp_total};
use crate::engine::threads;
use crate::engine::tx::TxBatch;
use crate::error::{Attempt, EngineError};
use crate::host::counters::Snapshot;
use crate::host::cpu::CpuWindow;
use crate::host::socket_memory::SocketMemory;
use crate::sys;
use stacklab_model::{
    DelayPoints, HostReport, Length, Metric, Pacing, Point, Probe, Role, Sent, TcpInfo, Transport, TrialSpec,
};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Number of end markers on a lossy transport, and the pause between two.
const UDP_MARKERS: u8 = 3;
const MARKER_PAUSE: Duration = Duration::from_millis(2);
/// How long the send queue may take to drain once the trial is over.
const DRAIN_LIMIT: Duration = Duration::from_secs(60);
/// Sampling period of the smoothed round-trip time.
const SRTT_PERIOD: Duration = Duration::from_millis(10);

/// Runs the sender of a trial, from the address `from` to a listening receiver.
pub fn run(spec: &TrialSpec, from: IpAddr, to: SocketAddr) -> Result<HostReport, EngineError> {
    sys::precise_timers();
    if spec.probe.probe == Probe::Connect {
        return connect::open_connections(spec, from, to);
    }
    let before = Snapshot::take(&endpoint::interface_of(from)?);
    let memory = SocketMemory::watch(spec);
    sys::raise_file_limit(spec.flows.into()).attempt(|| format!("open {} flows", spec.flows))?;
    let channels =
        (0..spec.flows).map(|_| Channel::connect(spec, from, to)).collect::<Result<Vec<_>, EngineError>>()?;
    let first = &channels[0];
    let attempt = || format!("run {} over {} from {from} to {to}", spec.probe.probe, spec.transport);
    let ended = AtomicBool::new(false);
    let shared = SharedState::new(&ended);
    let mut counter = ArrivalCounter::new(spec, &shared, 1);
    let size = spec.message_bytes as usize;
    let mut srtt_mean_us = None;
    let mut interface_rtt = InterfaceRtt::watch(spec, first);
    let report = match spec.probe.probe {
        Probe::Echo | Probe::EchoLoaded => {
            let mut rx = RxBatch::new(&channels).attempt(attempt)?;
            let mut sending = Sending::new(spec, &channels, 0..1).attempt(attempt)?;
            let done = sending.phases(|phase, sequence| {
                counter.await_answer(phase, sequence, sys::now_ns());
                receive(&mut rx, size, spec.token, &mut counter)?;
                match &mut interface_rtt {
                    Some(trips) => trips.note(phase, counter.was_answered().then(|| rx.recv_meta())),
                    None => Ok(()),
                }
            });
            done.and_then(|()| sending.finish())
        }
        Probe::EchoOpen => thread::scope(|scope| {
            let answers =
                scope.spawn(|| receive(&mut RxBatch::new(&channels)?, size, spec.token, &mut counter));
            let sent = stream(spec, &channels);
            ended.store(true, Ordering::Relaxed);
            let received = answers.join().expect("the receive loop does not panic");
            sent.and_then(|sent| received.map(|()| sent))
        }),
        Probe::Stream | Probe::Connect => {
            let asked = [Metric::TcpSrtt, Metric::BufferDelay]
                .iter()
                .any(|metric| spec.probe.metrics.contains(metric));
            let sample = spec.transport == Transport::Tcp && asked;
            thread::scope(|scope| {
                let sampler = sample.then(|| scope.spawn(|| sample_srtt(first, &ended)));
                let sent = stream(spec, &channels);
                ended.store(true, Ordering::Relaxed);
                srtt_mean_us =
                    sampler.and_then(|sampler| sampler.join().expect("the sampler does not panic"));
                sent
            })
        }
    };
    let report = report.attempt(attempt)?;
    let endpoint = endpoint::observe(&first.socket, None)?;
    for channel in &channels {
        let drained = drain(channel, spec.transport);
        drained.attempt(|| format!("end {} from {from} to {to}", spec.probe.probe))?;
    }
    let tcp = tcp_total(&channels);
    let mut counters = before.until(&Snapshot::take(&endpoint.interface), &first.socket);
    if let Some((sent, copied)) = report.zerocopy {
        counters.0.insert("socket.zerocopy".to_owned(), sent);
        counters.0.insert("socket.zerocopy_copied".to_owned(), copied);
    }
    let Counted { received, delays, series, .. } = counter.finish();
    // Replies are timestamped when the program receives them.
    let left = if spec.probe.probe == Probe::EchoOpen { Point::Schedule } else { Point::Call };
    let delay_points = delays.is_some().then(|| DelayPoints::between(left, Point::Call));
    let (interface_delays, point) = interface_rtt.and_then(InterfaceRtt::finish).unzip();
    Ok(HostReport {
        io: Some(first.io),
        socket_memory_kib: memory.peak_kib(report.sent.first_ns, report.sent.last_ns),
        sent: report.sent,
        received,
        delays,
        delay_points,
        interface_delays,
        interface_points: point.map(|point| DelayPoints::between(point, point)),
        lateness: report.lateness.and_then(Lateness::finish),
        series,
        cpu: report.cpu.finish(),
        tcp: tcp.map(|tcp| TcpInfo { srtt_mean_us, ..tcp }),
        counters,
        peak_rss_kib: sys::peak_rss_kib(),
        ..HostReport::new(Role::Sender, endpoint)
    })
}

/// Sends on all flows without waiting for replies; each thread sends its own flows.
fn stream(spec: &TrialSpec, channels: &[Channel]) -> io::Result<Finished> {
    let groups = threads::groups(channels.len());
    let sent = threads::on_each(&groups, |group| {
        let mut sending = Sending::new(spec, channels, group)?;
        sending.phases(|_, _| Ok(()))?;
        sending.finish()
    })?;
    let all = sent.into_iter().reduce(Finished::join);
    all.ok_or_else(|| io::Error::other("there was no flow"))
}

/// Result of the sending threads.
struct Finished {
    sent: Sent,
    lateness: Option<Lateness>,
    cpu: CpuWindow,
    /// Zero-copy sends, and how many of them the kernel copied anyway.
    zerocopy: Option<(u64, u64)>,
}

impl Finished {
    /// Adds two results.
    fn join(mut self, other: Finished) -> Finished {
        let (sent, more) = (&mut self.sent, &other.sent);
        sent.warmup += more.warmup;
        sent.measured += more.measured;
        sent.markers += more.markers;
        sent.bytes += more.bytes;
        sent.refused += more.refused;
        sent.first_ns = sent.first_ns.min(more.first_ns);
        sent.last_ns = sent.last_ns.max(more.last_ns);
        sent.max_late_ns = sent.max_late_ns.max(more.max_late_ns);
        if let (Some(late), Some(more)) = (&mut self.lateness, &other.lateness) {
            late.join(more);
        }
        self.cpu.join(other.cpu);
        self
    }
}

/// The phases of a trial on one thread's flows.
struct Sending<'a> {
    spec: &'a TrialSpec,
    /// This thread's share of the schedule and of the message count.
    pacing: Pacing,
    warmup: Length,
    length: Length,
    tx: TxBatch<'a>,
    sent: Sent,
    lateness: Option<Lateness>,
    cpu: CpuWindow,
}

impl<'a> Sending<'a> {
    fn new(spec: &'a TrialSpec, channels: &'a [Channel], group: Range<usize>) -> io::Result<Self> {
        let all = channels.len() as u64;
        let pacing = match spec.probe.pacing {
            // Send whenever the kernel has room: the kernel keeps the schedule.
            _ if spec.kernel_paced().is_some() => Pacing::Flood,
            Pacing::Schedule(per_second) => Pacing::Schedule(per_second * group.len() as f64 / all as f64),
            pacing => pacing,
        };
        let upto = |flow: usize, packets: u64| (u128::from(packets) * flow as u128 / u128::from(all)) as u64;
        let share = |length: Length| match counted(spec, length) {
            Length::Packets(packets) => {
                Length::Packets(upto(group.end, packets) - upto(group.start, packets))
            }
            length => length,
        };
        Ok(Sending {
            spec,
            pacing,
            warmup: share(Length::Time(spec.probe.warmup_ns)),
            length: share(spec.probe.length),
            tx: TxBatch::new(&channels[group.clone()], group.start as u16)?,
            sent: Sent::default(),
            lateness: None,
            cpu: CpuWindow::new(spec.cpu_scope),
        })
    }

    /// Runs the warm-up, the measured phase and the end markers. `after_each` is called after each message with its
    /// phase and sequence number.
    fn phases(&mut self, mut after_each: impl FnMut(Phase, u64) -> io::Result<()>) -> io::Result<()> {
        if self.spec.probe.warmup_ns > 0 {
            let warm = self.phase(Phase::Warmup, self.warmup, &mut after_each)?;
            self.sent.warmup = warm.messages;
        }
        self.cpu.open();
        let measured = self.phase(Phase::Measured, self.length, &mut after_each)?;
        self.cpu.close();
        self.sent.measured = measured.messages;
        self.sent.bytes = measured.messages * u64::from(self.spec.message_bytes);
        self.sent.refused = measured.refused;
        self.sent.first_ns = measured.first_ns;
        self.sent.last_ns = measured.last_ns;
        self.sent.max_late_ns = measured.lateness.as_ref().map(Lateness::most_ns);
        self.lateness = measured.lateness;
        self.mark_end()
    }

    fn phase(
        &mut self,
        phase: Phase,
        length: Length,
        after_each: &mut impl FnMut(Phase, u64) -> io::Result<()>,
    ) -> io::Result<SendReport> {
        let open_loop = self.spec.probe.probe == Probe::EchoOpen;
        let send_phase = SendPhase {
            token: self.spec.token,
            phase,
            pacing: self.pacing,
            length,
            stamp: if open_loop { Stamp::Intended } else { Stamp::Actual },
        };
        send(&send_phase, &mut self.tx, |sequence| after_each(phase, sequence))
    }

    fn mark_end(&mut self) -> io::Result<()> {
        let markers = if self.spec.transport == Transport::Udp { UDP_MARKERS } else { 1 };
        for markers_left in (0..markers).rev() {
            self.sent.markers += self.tx.mark_end(Header {
                token: self.spec.token,
                phase: Phase::End,
                markers_left,
                flow: 0,
                sequence: 0,
                sent_ns: sys::now_ns(),
            })?;
            if markers_left > 0 {
                thread::sleep(MARKER_PAUSE);
            }
        }
        Ok(())
    }

    fn finish(self) -> io::Result<Finished> {
        let Sending { tx, sent, lateness, cpu, .. } = self;
        Ok(Finished { sent, lateness, cpu, zerocopy: tx.finish()? })
    }
}

/// Converts a duration to a message count if the kernel paces. Accepted messages leave later, so the time of the send
/// calls does not say when the phase ends.
fn counted(spec: &TrialSpec, length: Length) -> Length {
    match (spec.kernel_paced(), length) {
        (Some(per_second), Length::Time(ns)) => {
            Length::Packets((per_second * ns as f64 / 1e9).round() as u64)
        }
        _ => length,
    }
}

/// Waits until everything has left: for TCP until the receiver has closed, for UDP until the send queue is empty.
fn drain(channel: &Channel, transport: Transport) -> io::Result<()> {
    let start = sys::now_ns();
    let in_time = || sys::now_ns() - start < DRAIN_LIMIT.as_nanos() as u64;
    let late =
        || io::Error::new(io::ErrorKind::TimedOut, format!("not done within {} s", DRAIN_LIMIT.as_secs()));
    match transport {
        Transport::Tcp => {
            channel.socket.shutdown(std::net::Shutdown::Write)?;
            let mut rest = [0; 4096];
            while in_time() {
                match sys::receive(&channel.socket, &mut rest) {
                    Ok(0) => return Ok(()),
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            Err(late())
        }
        Transport::Udp => {
            while sys::unsent_bytes(&channel.socket)?.is_some_and(|bytes| bytes > 0) {
                if !in_time() {
                    return Err(late());
                }
                thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        }
    }
}

/// Mean of the smoothed round-trip time in microseconds, sampled until the trial has ended.
fn sample_srtt(channel: &Channel, ended: &AtomicBool) -> Option<f64> {
    let (mut sum, mut samples) = (0, 0);
    while !ended.load(Ordering::Relaxed) {
        thread::sleep(SRTT_PERIOD);
        if let Some(rtt) = sys::tcp_info(&channel.socket).ok().and_then(|info| info.rtt_us) {
            sum += rtt;
            samples += 1;
        }
    }
    (samples > 0).then(|| sum as f64 / f64::from(samples))
}
