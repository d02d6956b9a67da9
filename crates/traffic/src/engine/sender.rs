//! The sending host of a trial: prepares, warms up, measures, ends, reports.

use crate::engine::allowance::Allowance;
use crate::engine::count::{ArrivalCounter, Counted, SharedState};
use crate::engine::flows::{self, connect_all};
use crate::engine::opening::WaitingSender;
use crate::engine::own_socket;
use crate::engine::pacer::PacingError;
use crate::engine::phases::{Finished, Sending, wait_until_empty};
use crate::engine::receive_loop::receive;
use crate::engine::rx::RxBatch;
use crate::engine::socket::{Channel, tcp_total};
use crate::engine::stamps::{InterfaceRtt, StampClock};
use crate::engine::turns::Turn;
use crate::engine::{connect, threads};
use crate::host::{self, SocketMemory, cpu, zone};
use crate::protocol::message::SendArm;
use crate::sys::{self, Nanos};
use crate::{Attempt, EngineError};
use stacklab_model::{
    Counters, DelayPoints, HostReport, Metric, Point, Probe, Role, ScopedAddr, TcpInfo, Transport, TrialSpec,
    count,
};
use std::net::{Shutdown, SocketAddr};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use std::{io, thread};

const SRTT_PERIOD: Duration = Duration::from_millis(10);

/// How a sender runs, but for its trial and its addresses.
#[derive(Default)]
pub(crate) struct Run<'a> {
    /// The flows that the receiver has opened, if it does.
    pub waiting: Option<WaitingSender>,
    /// The turns of an arm of an interleaved trial, which sends in them only. Only streams and echoes can.
    pub turn: Option<Turn<'a>>,
    /// Ends the trial early: what was sent until then is the whole trial.
    pub stop: Option<&'a AtomicBool>,
    /// What all senders of the agent together may send, if that has a limit.
    pub allowance: Option<&'a Allowance>,
}

#[cfg(test)]
pub(crate) fn run(
    spec: &TrialSpec,
    from: impl Into<ScopedAddr>,
    to: SocketAddr,
) -> Result<HostReport, EngineError> {
    run_arm(SendArm { spec: Box::new(spec.clone()), from: from.into(), to, waiting: None }, Run::default())
}

/// Runs the sender of a trial. Link-local addresses are in the zone of the own one.
pub(crate) fn run_arm(arm: SendArm, run: Run<'_>) -> Result<HostReport, EngineError> {
    let Run { waiting, turn, stop, allowance } = run;
    let SendArm { spec, from: given, to, .. } = arm;
    let spec = &*spec;
    sys::precise_timers();
    let (from, to) = match &waiting {
        Some(waiting) => (waiting.address, to),
        None => zone::ends(&given, to).attempt(|| format!("send from {given} to {to}"))?,
    };
    if turn.is_some() && !spec.probe.probe.interleaves() {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "only streams and echoes can take turns"))
            .attempt(|| format!("run {} in turns", spec.probe.probe));
    }
    if spec.probe.probe == Probe::Connect {
        return connect::open_connections(spec, from, to, stop);
    }
    // Before the trial's packets; those that opened the flows are not the sender's.
    let opened = waiting.map(|waiting| waiting.flows(to)).transpose()?;
    let before = host::counters(&own_socket::interface_of(from)?);
    let memory = SocketMemory::watch(spec);
    sys::raise_file_limit(spec.flows.into()).attempt(|| format!("open {}", count(spec.flows, "flow")))?;
    let mut channels = match opened {
        Some(channels) => channels,
        None => {
            if let Some(allowance) = allowance {
                flows::await_opening(spec, allowance, stop);
            }
            connect_all(spec, from, to)?
        }
    };
    // In turns, one thread sends all.
    let all = 0..channels.len();
    let groups = if turn.is_some() { vec![all] } else { threads::groups(channels.len()) };
    if groups.iter().any(|group| group.len() > 1) {
        channels.iter_mut().for_each(Channel::without_zerocopy);
    }
    let channels = channels;
    guarded(spec, &channels, to, || {
        on_flows(spec, (from, to), &channels, &groups, (before, memory), (turn, stop, allowance))
    })
}

fn on_flows(
    spec: &TrialSpec,
    (from, to): (SocketAddr, SocketAddr),
    channels: &[Channel],
    groups: &[Range<usize>],
    (before, memory): (Counters, SocketMemory),
    (mut turn, stop, allowance): (Option<Turn<'_>>, Option<&AtomicBool>, Option<&Allowance>),
) -> Result<HostReport, EngineError> {
    let given = ScopedAddr::from(from);
    let first = &channels[0];
    let attempt = || format!("run {} over {} from {given} to {to}", spec.probe.probe, spec.transport);
    let ended = AtomicBool::new(false);
    let shared = SharedState::new(&ended);
    let mut counter = ArrivalCounter::new(spec, &shared, 1);
    let size = spec.message_bytes as usize;
    let mut srtt_mean_us = None;
    let mut interface_rtt = InterfaceRtt::watch(spec, first);
    let report = match spec.probe.probe {
        Probe::Echo | Probe::EchoUnderLoad => {
            lockstep(spec, channels, &mut counter, &mut interface_rtt, (turn.as_mut(), stop, allowance))
        }
        Probe::EchoOpenLoop => thread::scope(|scope| {
            let answers = scope.spawn(|| {
                receive(&mut RxBatch::new(channels, StampClock::new())?, size, spec.token, &mut counter)
            });
            let sent = stream(spec, channels, groups, None, (stop, allowance));
            ended.store(true, Ordering::Relaxed);
            let received = answers.join().expect("the receive loop does not panic");
            sent.and_then(|sent| received.map(|()| sent))
        }),
        Probe::Stream | Probe::Paced | Probe::Search | Probe::Connect => {
            let metrics = &spec.probe.metrics;
            let asked = metrics.contains(&Metric::TcpSrtt) || metrics.contains(&Metric::BufferDelay);
            let sample = spec.transport == Transport::Tcp && asked;
            thread::scope(|scope| {
                let sampler = sample.then(|| scope.spawn(|| sample_srtt(first, &ended)));
                let sent = stream(spec, channels, groups, turn.as_mut(), (stop, allowance));
                ended.store(true, Ordering::Relaxed);
                srtt_mean_us =
                    sampler.and_then(|sampler| sampler.join().expect("the sampler does not panic"));
                sent
            })
        }
    };
    let report = report.attempt(attempt)?;
    if let Some(turn) = turn {
        turn.complete();
    }
    let endpoint = own_socket::observe(&first.socket, None)?;
    let mut sent = report.sent;
    for (channel, end) in channels.iter().zip(&report.ends) {
        let left = drain(channel, spec.transport, report.ends_ns);
        let left = left.attempt(|| format!("end {} from {from} to {to}", spec.probe.probe))?;
        let discarded = (left as usize).saturating_sub(end.marker) + end.rest;
        sent.discard(discarded as u64, spec.message_bytes.into());
    }
    let tcp = tcp_total(channels);
    let mut counters = host::counters_since(&before, &endpoint.interface, &[&first.socket]);
    if let Some((sent, copied)) = report.zerocopy {
        counters.0.insert("socket.zerocopy".to_owned(), sent);
        counters.0.insert("socket.zerocopy_copied".to_owned(), copied);
    }
    let Counted { received, delays, series, slices: answered, .. } = counter.finish();
    let cpu = if spec.schedule.is_alone() {
        report.cpu.finish()
    } else {
        cpu::of_slices(&report.slices, report.cpu_parts)
    };
    let mut slices = report.slices;
    for (slice, answered) in slices.iter_mut().zip(&answered) {
        (slice.delay_ns, slice.jitter_ns) = (answered.delay_ns, answered.jitter_ns);
    }
    // Replies are timestamped when the program receives them.
    let left = if spec.probe.probe == Probe::EchoOpenLoop { Point::Schedule } else { Point::Call };
    let delay_points = delays.is_some().then(|| DelayPoints::between(left, Point::Call));
    let (interface_delays, point) = interface_rtt.and_then(InterfaceRtt::finish).unzip();
    Ok(HostReport {
        io: Some(first.io),
        socket_memory_kib: memory.peak_kib(sent.first_ns, sent.last_ns),
        sent,
        received,
        delays,
        delay_points,
        interface_delays,
        interface_points: point.map(|point| DelayPoints::between(point, point)),
        pacing_error: report.pacing_error.and_then(PacingError::finish),
        series,
        slices,
        cpu,
        tcp: tcp.map(|tcp| TcpInfo { srtt_mean_us, ..tcp }),
        counters,
        peak_rss_kib: sys::peak_rss_kib(),
        ..HostReport::new(Role::Sender, endpoint)
    })
}

/// Sends on one flow, each message after the answer to the one before.
fn lockstep(
    spec: &TrialSpec,
    channels: &[Channel],
    counter: &mut ArrivalCounter<'_>,
    interface_rtt: &mut Option<InterfaceRtt<'_>>,
    (turn, stop, allowance): (Option<&mut Turn<'_>>, Option<&AtomicBool>, Option<&Allowance>),
) -> io::Result<Finished> {
    let mut rx = RxBatch::new(channels, StampClock::new())?;
    let mut sending = Sending::new(spec, channels, 0..1)?.stopped_by(stop).allowed_by(allowance);
    sending.phases(turn, |phase, slice, sequence| {
        counter.await_answer(phase, sequence, sys::now_ns());
        receive(&mut rx, spec.message_bytes as usize, spec.token, counter)?;
        let answered = counter.was_answered(phase, slice);
        match interface_rtt {
            Some(trips) => trips.note(phase, answered.then(|| rx.recv_meta())),
            None => Ok(()),
        }
    })?;
    sending.finish()
}

/// Sends on all flows without waiting for replies; each thread sends its own flows.
fn stream(
    spec: &TrialSpec,
    channels: &[Channel],
    groups: &[Range<usize>],
    turn: Option<&mut Turn<'_>>,
    (stop, allowance): (Option<&AtomicBool>, Option<&Allowance>),
) -> io::Result<Finished> {
    if let Some(turn) = turn {
        let mut sending = Sending::new(spec, channels, 0..channels.len())?.allowed_by(allowance);
        sending.phases(Some(turn), |_, _, _| Ok(()))?;
        return sending.finish();
    }
    let sent = threads::on_each(groups, |group| {
        let mut sending = Sending::new(spec, channels, group)?.stopped_by(stop).allowed_by(allowance);
        sending.phases(None, |_, _, _| Ok(()))?;
        sending.finish()
    })?;
    let all = sent.into_iter().reduce(Finished::join);
    all.ok_or_else(|| io::Error::other("there was no flow"))
}

/// Waits until the receiver has closed, or for UDP the send queue is empty, or the trial has ended. Returns the bytes
/// of a connection that have not arrived then, which are discarded.
fn drain(channel: &Channel, transport: Transport, until: Nanos) -> io::Result<u32> {
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
fn sample_srtt(channel: &Channel, ended: &AtomicBool) -> Option<f64> {
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

/// How often a sender looks whether anything was acknowledged.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// A sender gives up after this many looks in a row; a kernel that probes for the path MTU has done so by then.
const MAX_LOOKS: u32 = 8;

/// Sends on the flows of a trial by `send`. Connections on which nothing was ever acknowledged are ended: in a path MTU
/// black hole they open, because small packets arrive, and no large one does (RFC 2923, section 2.1).
fn guarded<T>(
    spec: &TrialSpec,
    channels: &[Channel],
    to: SocketAddr,
    send: impl FnOnce() -> Result<T, EngineError>,
) -> Result<T, EngineError> {
    if spec.transport != Transport::Tcp {
        return send();
    }
    let (over, watched) = mpsc::channel::<()>();
    let (sent, is_hole) = thread::scope(|scope| {
        let watcher = scope.spawn(move || {
            let mut looks = 0;
            while looks < MAX_LOOKS {
                if watched.recv_timeout(POLL_INTERVAL) != Err(RecvTimeoutError::Timeout) {
                    return false;
                }
                let all_wait = channels.iter().all(|channel| sys::is_unacknowledged(&channel.socket));
                looks = if all_wait { looks + 1 } else { 0 };
            }
            for channel in channels {
                let _ = channel.socket.shutdown(Shutdown::Both);
            }
            true
        });
        let sent = send();
        drop(over);
        (sent, watcher.join().unwrap_or(false))
    });
    if !is_hole {
        return sent.map_err(given_up);
    }
    let text = format!(
        "nothing was acknowledged for {} s, though the connection opened: large packets do not arrive; a path MTU black hole? Smaller segments (-M 1220) may pass",
        (MAX_LOOKS * POLL_INTERVAL).as_secs()
    );
    Err(io::Error::new(io::ErrorKind::TimedOut, text))
        .attempt(|| format!("send over {} to {to}", spec.transport))
}

/// Explains the error of a connection that the kernel has ended after too many retransmissions of one segment.
fn given_up(error: EngineError) -> EngineError {
    let EngineError { attempted, mut source } = error;
    if source.kind() == io::ErrorKind::TimedOut && source.raw_os_error().is_some() {
        let text = "the kernel ended a connection because retransmissions of a segment failed too often: the path or \
                    this host's queue drops too much; use fewer flows (-P), or measure UDP";
        source = io::Error::new(io::ErrorKind::TimedOut, text);
    }
    EngineError { attempted, source }
}
