//! The receiving host of a trial: listen, admit the sender, count or send back, observe.

use crate::account::Account;
use crate::channel::{self, Channel, RECEIVE_TICK};
use crate::connect;
use crate::counters::Snapshot;
use crate::error::{Attempt, EngineError};
use crate::inbox::Inbox;
use crate::observe;
use crate::receive::receive;
use crate::reflect::Reflect;
use crate::sys;
use socket2::Socket;
use stacklab_model::{Probe, Received, Role, Sent, Side, Transport, TrialSpec};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 1024;

/// A receiver that waits for its sender or has met it.
pub struct Receiver {
    /// Where it listens.
    pub address: SocketAddr,
    ended: Arc<AtomicBool>,
    thread: JoinHandle<Result<(Side, Option<Channel>), EngineError>>,
}

impl Receiver {
    /// Listens on an address, port chosen by the kernel.
    pub fn listen(spec: TrialSpec, address: IpAddr) -> Result<Self, EngineError> {
        // Before there is a socket, and so before the sender can begin: what it sends at once must be counted too.
        let before = Snapshot::take(&observe::interface_of(address)?);
        let socket = channel::open(&spec, address)?;
        let ready = || -> io::Result<SocketAddr> {
            socket.set_read_timeout(Some(RECEIVE_TICK))?;
            if spec.transport == Transport::Tcp {
                socket.listen(BACKLOG)?;
            }
            socket.local_addr()?.as_socket().ok_or_else(|| io::Error::other("the socket has no IP address"))
        };
        let listening = ready().attempt(|| format!("listen for {} on {address}", spec.transport))?;
        let ended = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let ended = Arc::clone(&ended);
            move || attend(&spec, socket, listening, &before, &ended)
        });
        Ok(Receiver { address: listening, ended, thread })
    }

    /// What it saw, now that the sender has ended; waits for messages still on their way.
    pub fn collect(self) -> Result<Side, EngineError> {
        self.ended.store(true, Ordering::Relaxed);
        let attended = self.thread.join().map_err(|_| EngineError {
            attempted: format!("receive on {}", self.address),
            source: io::Error::other("the receive thread ended early"),
        })?;
        attended.map(|(side, _)| side)
    }
}

/// Does all of a receiver's work. The channel is kept open until the trial is collected, so that a marker that comes
/// late meets no closed port.
fn attend(
    spec: &TrialSpec,
    socket: Socket,
    listening: SocketAddr,
    before: &Snapshot,
    ended: &AtomicBool,
) -> Result<(Side, Option<Channel>), EngineError> {
    sys::fine_timers();
    if spec.probe.probe == Probe::Connect {
        return Ok((connect::accept_connections(&socket, before, ended)?, None));
    }
    let unmet = observe::endpoint(&socket, None)?;
    let Some(channel) = admit(spec, &socket, listening, ended)? else {
        return Ok((side(unmet, before, &socket), None));
    };
    let endpoint = observe::endpoint(&channel.socket, None)?;
    let size = spec.message_bytes as usize;
    let attempt = || format!("receive {} on {listening} from {}", spec.transport, endpoint.peer);
    let (sent, received, delays, series, cpu);
    if spec.probe.probe.echoes() {
        let mut reflect = Reflect::new(spec, &channel, ended);
        receive(&mut Inbox::new(&channel), size, spec.token, &mut reflect).attempt(attempt)?;
        (sent, received, cpu) = (reflect.sent, reflect.received, reflect.cpu);
        (delays, series) = (None, Vec::new());
    } else {
        let mut account = Account::new(spec, ended);
        receive(&mut Inbox::new(&channel), size, spec.token, &mut account).attempt(attempt)?;
        sent = Sent::default();
        (received, delays, series, cpu) = account.finish();
    }
    let tcp = (spec.transport == Transport::Tcp).then(|| sys::tcp_info(&channel.socket).ok()).flatten();
    if spec.transport == Transport::Tcp {
        // Tells the sender that everything was taken. It may have closed before; then there is nobody to tell.
        let _ = channel.socket.shutdown(std::net::Shutdown::Write);
    }
    let cpu = cpu.finish();
    let io = Some(channel.io);
    let side =
        Side { io, sent, received, delays, series, cpu, tcp, ..side(endpoint, before, &channel.socket) };
    Ok((side, Some(channel)))
}

/// A side that saw nothing yet.
fn side(endpoint: stacklab_model::Endpoint, before: &Snapshot, socket: &Socket) -> Side {
    let counters = before.until(&Snapshot::take(&endpoint.interface), socket);
    Side {
        role: Role::Receiver,
        endpoint,
        io: None,
        sent: Sent::default(),
        received: Received::default(),
        delays: None,
        series: Vec::new(),
        cpu: None,
        tcp: None,
        counters,
        peak_rss_kib: observe::peak_rss_kib(),
    }
}

/// Waits for the sender's connection or first datagram; `None` when the trial ended without one.
fn admit(
    spec: &TrialSpec,
    socket: &Socket,
    listening: SocketAddr,
    ended: &AtomicBool,
) -> Result<Option<Channel>, EngineError> {
    loop {
        // Looked at first: what came before the end is still there to be admitted after it.
        let over = ended.load(Ordering::Relaxed);
        let met = match spec.transport {
            Transport::Tcp => socket.accept().map(|(connection, _)| connection),
            Transport::Udp => socket.peek_sender().and_then(|sender| {
                let socket = socket.try_clone()?;
                socket.connect(&sender)?;
                Ok(socket)
            }),
        };
        match met {
            Ok(socket) => return Channel::new(spec, socket).map(Some),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                if over {
                    return Ok(None);
                }
            }
            error => return error.map(|_| None).attempt(|| format!("admit a sender on {listening}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sender;
    use stacklab_model::{CpuScope, Family, Framing, Io, Length, Metric, Pacing, ProbeSpec};

    fn spec(
        family: Family,
        transport: Transport,
        io: Io,
        probe: Probe,
        pacing: Pacing,
        length: Length,
    ) -> TrialSpec {
        let probe = ProbeSpec {
            probe,
            pacing,
            length,
            warmup_ns: 2_000_000,
            interval_ns: 1_000_000,
            metrics: vec![Metric::TcpSrtt],
        };
        let (framing, cpu_scope) = (Framing::Segment, CpuScope::Shared);
        TrialSpec {
            token: 77,
            family,
            transport,
            framing,
            message_bytes: 200,
            cpu_scope,
            poll_ns: 10_000,
            io,
            probe,
        }
    }

    /// Every probe over every transport and family that it supports.
    fn each(probe: Probe, pacing: Pacing, length: Length, check: impl Fn(Transport, Side, Side)) {
        for family in Family::ALL.iter().copied() {
            let transports = Transport::ALL.iter().copied().filter(|transport| probe.supports(*transport));
            let ways = |transport| [Io::Plain, Io::Batch, Io::Segment].map(|io| (transport, io));
            for (transport, io) in transports.flat_map(ways) {
                if (transport, io) == (Transport::Tcp, Io::Segment) {
                    continue;
                }
                let spec = spec(family, transport, io, probe, pacing, length);
                let receiver = Receiver::listen(spec.clone(), family.loopback()).unwrap();
                let sender = sender::run(&spec, family.loopback(), receiver.address).unwrap();
                let receiver = receiver.collect().unwrap();
                for side in [&sender, &receiver] {
                    assert_eq!((side.endpoint.family, side.endpoint.transport), (family, transport));
                    assert_eq!(side.endpoint.local.ip(), family.loopback());
                }
                assert_eq!(sender.endpoint.local.ip(), receiver.endpoint.peer.ip());
                check(transport, sender, receiver);
            }
        }
    }

    #[test]
    fn a_paced_stream_arrives_whole_and_in_order() {
        each(
            Probe::Stream,
            Pacing::Schedule(5_000.0),
            Length::Packets(300),
            |transport, sender, receiver| {
                assert_eq!((sender.sent.measured, sender.sent.bytes), (300, 60_000));
                let received = &receiver.received;
                assert_eq!((received.measured, received.bytes), (300, 60_000));
                assert_eq!((received.duplicates, received.reordered, received.strays), (0, 0, 0));
                assert_eq!(receiver.delays.unwrap().buckets.count(), 300);
                assert_eq!(receiver.series.iter().map(|row| row.messages).sum::<u64>(), 300);
                assert!(receiver.cpu.is_some() && sender.cpu.is_some());
                if transport == Transport::Tcp {
                    let segments = crate::proof::segments(&sender);
                    let tcp = sender.tcp.unwrap();
                    // A busy machine makes TCP send a segment again that was only late.
                    let all = sender.sent.warmup + 300 + sender.sent.markers + tcp.total_retrans.unwrap();
                    assert_eq!(segments, Some((all * 200, all)));
                    assert!(tcp.srtt_mean_us.is_some());
                }
            },
        );
    }

    #[test]
    fn a_timed_flood_counts_what_was_sent_and_what_arrived() {
        each(Probe::Stream, Pacing::Flood, Length::Time(30_000_000), |transport, sender, receiver| {
            assert!(sender.sent.measured > 0);
            assert!(receiver.received.measured > 0);
            match transport {
                Transport::Tcp => assert_eq!(receiver.received.measured, sender.sent.measured),
                Transport::Udp => assert!(receiver.received.measured <= sender.sent.measured),
            }
        });
    }

    #[test]
    fn an_echo_comes_back_in_lockstep_and_on_schedule() {
        for (probe, pacing) in [(Probe::Echo, Pacing::Lockstep), (Probe::EchoOpen, Pacing::Schedule(2_000.0))]
        {
            each(probe, pacing, Length::Packets(100), |_, sender, receiver| {
                assert_eq!(sender.sent.measured, 100);
                assert_eq!((sender.received.measured, receiver.sent.measured), (100, 100));
                assert_eq!(sender.delays.unwrap().buckets.count(), 100);
            });
        }
    }

    #[test]
    fn connections_open_one_after_another() {
        each(Probe::Connect, Pacing::Flood, Length::Packets(50), |_, sender, receiver| {
            assert_eq!(sender.sent.measured, 50);
            assert!(receiver.received.measured >= 50);
            assert_eq!(sender.delays.unwrap().buckets.count(), 50);
        });
    }

    #[test]
    fn a_receiver_whose_sender_never_comes_says_so_when_collected() {
        for family in Family::ALL.iter().copied() {
            for transport in Transport::ALL.iter().copied() {
                let spec =
                    spec(family, transport, Io::Plain, Probe::Stream, Pacing::Flood, Length::Packets(1));
                let side = Receiver::listen(spec, family.loopback()).unwrap().collect().unwrap();
                assert_eq!((side.endpoint.peer.port(), side.received), (0, Received::default()));
            }
        }
    }
}
