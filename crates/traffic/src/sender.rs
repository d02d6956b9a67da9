//! The sending host of a trial: prepare, warm up, measure, end, observe.

use crate::account::Account;
use crate::channel::Channel;
use crate::connect;
use crate::counters::Snapshot;
use crate::cpu::CpuWindow;
use crate::error::{Attempt, EngineError};
use crate::header::{Header, Phase};
use crate::inbox::Inbox;
use crate::observe;
use crate::outbox::Outbox;
use crate::receive::receive;
use crate::send::{Mailed, Mailing, Stamp, send};
use crate::sys;
use stacklab_model::{Length, Metric, Probe, Role, Sent, Side, TcpInfo, Transport, TrialSpec};
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// End markers of a transport that may lose them, and the pause between two.
const UDP_MARKERS: u8 = 3;
const MARKER_PAUSE: Duration = Duration::from_millis(2);
/// How long what was sent may take to leave the host once the trial is over.
const DRAIN_LIMIT: Duration = Duration::from_secs(60);
/// Between two samples of the smoothed round-trip time.
const SRTT_PERIOD: Duration = Duration::from_millis(10);

/// Runs the sender's part of a trial, from the address `from` to a listening receiver.
pub fn run(spec: &TrialSpec, from: IpAddr, to: SocketAddr) -> Result<Side, EngineError> {
    sys::fine_timers();
    if spec.probe.probe == Probe::Connect {
        return connect::open_connections(spec, from, to);
    }
    let before = Snapshot::take(&observe::interface_of(from)?);
    let channel = Channel::connect(spec, from, to)?;
    let ended = AtomicBool::new(false);
    let mut account = Account::new(spec, &ended);
    let mut sending = Sending::new(spec, &channel);
    let size = spec.message_bytes as usize;
    let mut srtt_mean_us = None;
    let done = match spec.probe.probe {
        Probe::Echo => {
            let mut inbox = Inbox::new(&channel);
            sending.phases(|phase, sequence| {
                account.await_answer(phase, sequence, sys::now_ns());
                receive(&mut inbox, size, spec.token, &mut account)
            })
        }
        Probe::EchoOpen => thread::scope(|scope| {
            let answers = scope.spawn(|| receive(&mut Inbox::new(&channel), size, spec.token, &mut account));
            let sent = sending.phases(|_, _| Ok(()));
            ended.store(true, Ordering::Relaxed);
            let received = answers.join().expect("the receive loop does not panic");
            sent.and(received)
        }),
        Probe::Stream | Probe::Connect => {
            let sample = spec.transport == Transport::Tcp && spec.probe.metrics.contains(&Metric::TcpSrtt);
            thread::scope(|scope| {
                let sampler = sample.then(|| scope.spawn(|| sample_srtt(&channel, &ended)));
                let sent = sending.phases(|_, _| Ok(()));
                ended.store(true, Ordering::Relaxed);
                srtt_mean_us =
                    sampler.and_then(|sampler| sampler.join().expect("the sampler does not panic"));
                sent
            })
        }
    };
    done.attempt(|| format!("run {} over {} from {from} to {to}", spec.probe.probe, spec.transport))?;
    let endpoint = observe::endpoint(&channel.socket, None)?;
    hang_up(&channel, spec.transport).attempt(|| format!("end {} from {from} to {to}", spec.probe.probe))?;
    let tcp = (spec.transport == Transport::Tcp).then(|| sys::tcp_info(&channel.socket).ok()).flatten();
    let counters = before.until(&Snapshot::take(&endpoint.interface), &channel.socket);
    let (received, delays, series, _) = account.finish();
    Ok(Side {
        role: Role::Sender,
        endpoint,
        io: Some(channel.io),
        sent: sending.sent,
        received,
        delays,
        series,
        cpu: sending.cpu.finish(),
        tcp: tcp.map(|tcp| TcpInfo { srtt_mean_us, ..tcp }),
        counters,
        peak_rss_kib: observe::peak_rss_kib(),
    })
}

/// The phases of a trial on one channel.
struct Sending<'a> {
    spec: &'a TrialSpec,
    channel: &'a Channel,
    outbox: Outbox<'a>,
    sent: Sent,
    cpu: CpuWindow,
}

impl<'a> Sending<'a> {
    fn new(spec: &'a TrialSpec, channel: &'a Channel) -> Self {
        let (outbox, cpu) = (Outbox::new(channel), CpuWindow::new(spec.cpu_scope));
        Sending { spec, channel, outbox, sent: Sent::default(), cpu }
    }

    /// Warms up, measures and says that it is over; `after_each` is called after each message with its phase and
    /// sequence number.
    fn phases(&mut self, mut after_each: impl FnMut(Phase, u64) -> io::Result<()>) -> io::Result<()> {
        if self.spec.probe.warmup_ns > 0 {
            let warm = self.phase(Phase::Warmup, Length::Time(self.spec.probe.warmup_ns), &mut after_each)?;
            self.sent.warmup = warm.messages;
        }
        self.cpu.open();
        let measured = self.phase(Phase::Measured, self.spec.probe.length, &mut after_each)?;
        self.cpu.close();
        self.sent.measured = measured.messages;
        self.sent.bytes = measured.messages * u64::from(self.spec.message_bytes);
        self.sent.refused = measured.refused;
        self.sent.first_ns = measured.first_ns;
        self.sent.last_ns = measured.last_ns;
        self.sent.max_late_ns = measured.max_late_ns;
        self.mark_end()
    }

    fn phase(
        &mut self,
        phase: Phase,
        length: Length,
        after_each: &mut impl FnMut(Phase, u64) -> io::Result<()>,
    ) -> io::Result<Mailed> {
        let open_loop = self.spec.probe.probe == Probe::EchoOpen;
        let mailing = Mailing {
            token: self.spec.token,
            phase,
            pacing: self.spec.probe.pacing,
            length,
            stamp: if open_loop { Stamp::Intended } else { Stamp::Actual },
        };
        send(&mailing, &mut self.outbox, |sequence| after_each(phase, sequence))
    }

    fn mark_end(&mut self) -> io::Result<()> {
        let markers = if self.spec.transport == Transport::Udp { UDP_MARKERS } else { 1 };
        for markers_left in (0..markers).rev() {
            let header = Header {
                token: self.spec.token,
                phase: Phase::End,
                markers_left,
                sequence: self.sent.measured,
                sent_ns: sys::now_ns(),
            };
            let message = self.outbox.slot(0);
            header.write(message);
            match self.channel.send(message) {
                // The receiver has heard an earlier one and is gone.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(()),
                sent => sent?,
            };
            self.sent.markers += 1;
            if markers_left > 0 {
                thread::sleep(MARKER_PAUSE);
            }
        }
        Ok(())
    }
}

/// Waits until everything has left: TCP until the receiver has taken it and closed, UDP until no queue holds any.
fn hang_up(channel: &Channel, transport: Transport) -> io::Result<()> {
    let start = sys::now_ns();
    let in_time = || sys::now_ns() - start < DRAIN_LIMIT.as_nanos() as u64;
    let late =
        || io::Error::new(io::ErrorKind::TimedOut, format!("not done within {} s", DRAIN_LIMIT.as_secs()));
    match transport {
        Transport::Tcp => {
            channel.socket.shutdown(std::net::Shutdown::Write)?;
            let mut rest = [0; 4096];
            while in_time() {
                match (&channel.socket).read(&mut rest) {
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
            while sys::unsent_bytes(&channel.socket)? > 0 {
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
