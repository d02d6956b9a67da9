//! The receiving host of a trial: listens and accepts the sender, or opens the flows to it; counts or echoes, reports.

use crate::engine::admit::admit;
use crate::engine::count::{ArrivalCounter, Counted, SharedState};
use crate::engine::peers::{DataPorts, Peers};
use crate::engine::receive_loop::receive;
use crate::engine::reflect::Reflect;
use crate::engine::rx::RxBatch;
use crate::engine::socket::{Channel, tcp_total};
use crate::engine::stamp_clock::StampClock;
use crate::engine::{connect, endpoint, open_socket, threads};
use crate::error::{Attempt, EngineError};
use crate::host::counters::Snapshot;
use crate::host::socket_memory::SocketMemory;
use crate::host::{cpu, zone};
use crate::sys;
use socket2::Socket;
use stacklab_model::{
    Compared, DelayPoints, HostReport, Point, Probe, Received, Role, ScopedAddr, Sent, Transport, TrialSpec,
};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// Result of a receiver thread: its report, and the sockets, which stay open until it is collected.
pub(super) type Attended = Result<(HostReport, Vec<Channel>), EngineError>;

pub(crate) struct Receiver {
    pub address: SocketAddr,
    ended: Arc<AtomicBool>,
    /// `None` once it is collected.
    thread: Option<JoinHandle<Attended>>,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // One that nobody collects ends, too.
        self.ended.store(true, Ordering::Relaxed);
    }
}

impl Receiver {
    #[cfg(test)]
    pub(crate) fn listen(spec: TrialSpec, address: std::net::IpAddr) -> Result<Self, EngineError> {
        Self::listen_to(spec, address, None, &DataPorts::default())
    }

    /// Listens on an address, at one of the ports, for a sender that knows the trial's token, and is one of these peers
    /// if there are any.
    pub(crate) fn listen_to(
        spec: TrialSpec,
        address: impl Into<ScopedAddr>,
        peers: Option<Peers>,
        ports: &DataPorts,
    ) -> Result<Self, EngineError> {
        let given = address.into();
        let address = zone::socket_addr(&given, 0).attempt(|| format!("listen on {given}"))?;
        // Taken before the socket exists, and so before the sender can start: its first packets must be counted too.
        let (before, clock) = (Snapshot::take(&endpoint::interface_of(address)?), StampClock::new());
        let sockets = if spec.transport == Transport::Tcp { spec.flows } else { 1 };
        sys::raise_file_limit(sockets.into()).attempt(|| format!("admit {} flows", spec.flows))?;
        let (socket, listening) = open_socket::listen(&spec, address, ports)?;
        Ok(Self::start(listening, move |ended| {
            attend(&spec, peers.as_ref(), socket, listening, &before, clock, ended)
        }))
    }

    /// Receives on a thread, from flows that are open or will be.
    pub(super) fn start(
        address: SocketAddr,
        receive: impl FnOnce(&AtomicBool) -> Attended + Send + 'static,
    ) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let shared = Arc::clone(&ended);
        let thread = Some(thread::spawn(move || receive(&shared)));
        Receiver { address, ended, thread }
    }

    /// The receiver's report, after the sender has ended. Waits for messages still in flight.
    pub(crate) fn collect(mut self) -> Result<HostReport, EngineError> {
        self.ended.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("it is collected once");
        let attended = thread.join().map_err(|_| EngineError {
            attempted: format!("receive on {}", self.address),
            source: io::Error::other("the receive thread ended early"),
        })?;
        attended.map(|(side, _)| side)
    }
}

/// Runs the receiver. The channel stays open until the trial is collected, so that a late end marker does not meet a
/// closed port.
fn attend(
    spec: &TrialSpec,
    peers: Option<&Peers>,
    socket: Socket,
    listening: SocketAddr,
    before: &Snapshot,
    clock: StampClock,
    ended: &AtomicBool,
) -> Attended {
    sys::precise_timers();
    if spec.probe.probe == Probe::Connect {
        return Ok((connect::accept_connections(&socket, peers, before, ended)?, Vec::new()));
    }
    let unmet = endpoint::observe(&socket, None)?;
    let memory = SocketMemory::watch(spec);
    let (channels, strays) = admit(spec, peers, &socket, listening, ended)?;
    if channels.is_empty() {
        return Ok((side(unmet, before, &[&socket]), Vec::new()));
    }
    take(spec, channels, strays, memory, before, clock, ended)
}

/// Receives the trial on its flows. Datagrams of several flows from a sender that opened them share one socket.
pub(super) fn take(
    spec: &TrialSpec,
    channels: Vec<Channel>,
    strays: u64,
    memory: SocketMemory,
    before: &Snapshot,
    clock: StampClock,
    ended: &AtomicBool,
) -> Attended {
    let first = &channels[0];
    let shared = channels.len() < spec.flows as usize;
    let peer =
        if shared { sys::peek_sender(&first.socket).ok().and_then(|peer| peer.as_socket()) } else { None };
    let endpoint = endpoint::observe(&first.socket, peer)?;
    let listening = endpoint.local;
    let size = spec.message_bytes as usize;
    let attempt = || format!("receive {} on {listening} from {}", spec.transport, endpoint.peer);
    let mut sent = Sent::default();
    let counted = if spec.probe.probe.echoes() {
        let mut reflect = Reflect::new(spec, first, ended);
        let mut rx = RxBatch::new(&channels, clock).attempt(attempt)?;
        receive(&mut rx, size, spec.token, &mut reflect).attempt(attempt)?;
        sent = reflect.sent;
        Counted { received: reflect.received, cpu: reflect.cpu.finish(), ..Counted::default() }
    } else {
        count(spec, &channels, clock, ended).attempt(attempt)?
    };
    let Counted { received, delays, series, slices, cpu_parts, cpu, flow_bytes } = counted;
    let cpu = if !spec.schedule.is_alone() { cpu::of_slices(&slices, cpu_parts) } else { cpu };
    let arrived = if first.stamped { Point::Kernel } else { Point::Call };
    let (offset_ns, bound_ns, skew_ns_per_s) = (spec.clock_offset_ns, 0, 0);
    let compared = (offset_ns != 0).then_some(Compared { offset_ns, bound_ns, skew_ns_per_s });
    let points = DelayPoints { compared, ..DelayPoints::between(Point::Call, arrived) };
    let delay_points = delays.is_some().then_some(points);
    let tcp = tcp_total(&channels);
    if spec.transport == Transport::Tcp {
        for channel in &channels {
            // FIN tells the sender that everything was received. The sender may have closed already.
            let _ = channel.socket.shutdown(std::net::Shutdown::Write);
        }
    }
    let received = Received { strays: received.strays + strays, ..received };
    let report = HostReport {
        io: Some(first.io),
        socket_memory_kib: memory.peak_kib(received.first_ns, received.last_ns),
        sent,
        received,
        delays,
        delay_points,
        series,
        slices,
        flow_bytes,
        cpu,
        tcp,
        ..side(endpoint, before, &channels.iter().map(|channel| &channel.socket).collect::<Vec<_>>())
    };
    Ok((report, channels))
}

/// Counts the arrivals of all flows. Each thread counts its own sockets; datagrams of all flows may share one.
fn count(
    spec: &TrialSpec,
    channels: &[Channel],
    clock: StampClock,
    ended: &AtomicBool,
) -> io::Result<Counted> {
    let size = spec.message_bytes as usize;
    let shared = SharedState::new(ended);
    let groups = threads::groups(channels.len());
    let counted = threads::on_each(&groups, |group| {
        let own = &channels[group];
        // TCP may end early, with fewer connections than flows.
        let share_socket = spec.transport == Transport::Udp && channels.len() == 1;
        let awaited = if share_socket { spec.flows as usize } else { own.len() };
        let mut counter = ArrivalCounter::new(spec, &shared, awaited);
        // An interleaved trial's CPU time is that of its slices.
        if spec.schedule.is_alone() {
            counter = counter.with_cpu_time(spec.cpu_scope);
        }
        receive(&mut RxBatch::new(own, clock.clone())?, size, spec.token, &mut counter)?;
        Ok(counter)
    })?;
    let joined = counted.into_iter().reduce(|mut all, counter| {
        all.join(counter);
        all
    });
    Ok(joined.map(ArrivalCounter::finish).unwrap_or_default())
}

/// A report without traffic.
fn side(endpoint: stacklab_model::Endpoint, before: &Snapshot, sockets: &[&Socket]) -> HostReport {
    let mut counters = before.until(&Snapshot::take(&endpoint.interface), sockets[0]);
    if let drops @ 1.. = sockets[1..].iter().filter_map(|socket| sys::socket_drops(socket).ok()).sum() {
        *counters.0.entry("socket.drops".to_owned()).or_default() += drops;
    }
    HostReport { counters, peak_rss_kib: sys::peak_rss_kib(), ..HostReport::new(Role::Receiver, endpoint) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::sender;
    use stacklab_model::{Cell, Family, Io, Length, Metric, Pacing, ProbeSpec, SizeOf};

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
        let mut spec = TrialSpec::new(77, &Cell::new(family, transport, SizeOf::Payload, 200), probe);
        (spec.poll_ns, spec.io) = (10_000, io);
        spec
    }

    /// Every probe over every transport and family that it supports.
    fn each(probe: Probe, pacing: Pacing, length: Length, check: impl Fn(Transport, HostReport, HostReport)) {
        for family in Family::ALL.iter().copied() {
            let transports = Transport::ALL.iter().copied().filter(|transport| probe.supports(*transport));
            let ways = |transport| [Io::Send, Io::Sendmmsg, Io::Gso].map(|io| (transport, io));
            for (transport, io) in transports.flat_map(ways) {
                if (transport, io) == (Transport::Tcp, Io::Gso) {
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
                assert_eq!(receiver.delay_points, Some(DelayPoints::between(Point::Call, Point::Kernel)));
                assert_eq!(sender.delay_points, None);
                assert_eq!(receiver.series.iter().map(|row| row.messages).sum::<u64>(), 300);
                assert!(receiver.cpu.is_some() && sender.cpu.is_some());
                if transport == Transport::Tcp {
                    let segments = sender.tcp.as_ref().and_then(|tcp| tcp.sent_segments());
                    let tcp = sender.tcp.unwrap();
                    // On a busy machine, TCP retransmits segments that were only late.
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
    fn the_kernel_keeps_a_schedule_where_it_is_told_to() {
        for family in Family::ALL.iter().copied() {
            for flows in [1, 4] {
                let (pacing, length) = (Pacing::Schedule(4_000.0), Length::Time(400_000_000));
                let mut spec = spec(family, Transport::Tcp, Io::Send, Probe::Stream, pacing, length);
                (spec.flows, spec.tuning.kernel_pacing) = (flows, Some(true));
                // The first ten segments of a connection are not paced.
                (spec.message_bytes, spec.probe.warmup_ns) = (1000, 50_000_000);
                let receiver = Receiver::listen(spec.clone(), family.loopback()).unwrap();
                let sender = sender::run(&spec, family.loopback(), receiver.address).unwrap();
                let received = receiver.collect().unwrap().received;
                assert_eq!((sender.sent.measured, received.measured), (1_600, 1_600));
                assert_eq!(sender.endpoint.options.max_pacing_rate, Some(4_000_000 / u64::from(flows)));
                assert!(sender.pacing_error.is_none());
                let seconds = (received.last_ns - received.first_ns) as f64 / 1e9;
                let rate = 1_600.0 / seconds;
                // A busy machine slows it down. Without a schedule the rate would be a hundred times higher.
                assert!((400.0..4_400.0).contains(&rate), "{rate} messages a second over {flows} flows");
            }
        }
    }

    #[test]
    fn many_flows_arrive_whole_each_with_its_share() {
        const FLOWS: u32 = 50;
        for family in Family::ALL.iter().copied() {
            for (transport, io) in
                [(Transport::Tcp, Io::Send), (Transport::Tcp, Io::Sendmmsg), (Transport::Udp, Io::Sendmmsg)]
            {
                for (pacing, length) in [
                    (Pacing::Schedule(20_000.0), Length::Packets(1_003)),
                    (Pacing::Flood, Length::Time(30_000_000)),
                ] {
                    let spec = TrialSpec {
                        flows: FLOWS,
                        ..spec(family, transport, io, Probe::Stream, pacing, length)
                    };
                    let receiver = Receiver::listen(spec.clone(), family.loopback()).unwrap();
                    let sender = sender::run(&spec, family.loopback(), receiver.address).unwrap();
                    let receiver = receiver.collect().unwrap();
                    let received = &receiver.received;
                    if pacing == Pacing::Flood {
                        assert!(received.measured > 0);
                    } else {
                        assert_eq!(sender.sent.measured, 1_003);
                        assert_eq!(sender.pacing_error.unwrap().buckets.count(), 1_003);
                    }
                    if transport == Transport::Tcp || pacing != Pacing::Flood {
                        assert_eq!(received.measured, sender.sent.measured, "{transport} {io} {pacing:?}");
                    }
                    // A short flood may end before a busy machine has come to each flow.
                    if pacing != Pacing::Flood {
                        assert!(receiver.flow_bytes.iter().all(|bytes| *bytes > 0));
                    }
                    assert_eq!(receiver.flow_bytes.len(), FLOWS as usize);
                    assert_eq!(receiver.flow_bytes.iter().sum::<u64>(), received.bytes);
                    assert_eq!((received.duplicates, received.reordered, received.strays), (0, 0, 0));
                }
            }
        }
    }

    #[test]
    fn an_echo_comes_back_in_lockstep_and_on_schedule() {
        let schedule = Pacing::Schedule(2_000.0);
        for (probe, pacing) in [(Probe::Echo, Pacing::Lockstep), (Probe::EchoOpenLoop, schedule)] {
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
                    spec(family, transport, Io::Send, Probe::Stream, Pacing::Flood, Length::Packets(1));
                let side = Receiver::listen(spec, family.loopback()).unwrap().collect().unwrap();
                assert_eq!((side.endpoint.peer.port(), side.received), (0, Received::default()));
            }
        }
    }
}
