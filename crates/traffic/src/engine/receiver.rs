//! The receiving host of a trial: listens and accepts the sender, or opens the flows to it; counts or echoes, reports.

use crate::engine::admit::Listener;
use crate::engine::connect;
use crate::engine::count::{ArrivalCounter, ArrivalCounts, SharedState};
use crate::engine::header::{Header, Phase};
use crate::engine::mapped;
use crate::engine::own_socket;
use crate::engine::peers::{DataPorts, Peers};
use crate::engine::receive_loop::{Sink, receive, stop_if};
use crate::engine::rx::RxBatch;
use crate::engine::socket::{MessageSocket, tcp_total};
use crate::engine::sources::SourceCounter;
use crate::engine::stamps::StampClock;
use crate::engine::threads::{self, Ender};
use crate::host::cpu::{self, CpuWindow};
use crate::host::{self, SocketMemory, zone};
use crate::stats::flow::{Arrival, SequenceWindow};
use crate::sys::{self, Nanos, Socket};
use crate::{Attempt, EngineError};
use stacklab_model::{
    Compared, Counters, DelayPoints, Endpoint, HostReport, Point, Probe, Received, Role, ScopedAddr, Sent,
    Transport, TrialSpec,
};
use std::io;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// Result of a receiver thread: its report, and the sockets, which stay open until it is collected.
pub(super) type Attended = Result<(HostReport, Vec<MessageSocket>), EngineError>;

pub(crate) struct Receiver {
    pub address: SocketAddr,
    ender: Ender,
    thread: JoinHandle<Attended>,
}

impl Receiver {
    #[cfg(test)]
    pub(crate) fn listen(spec: TrialSpec, address: std::net::IpAddr) -> Result<Self, EngineError> {
        Self::listen_to(spec, address, None, &DataPorts::default())
    }

    /// Listens at one of the ports for a sender that knows the token, and is one of the peers if there are any.
    pub(crate) fn listen_to(
        spec: TrialSpec,
        address: impl Into<ScopedAddr>,
        peers: Option<Peers>,
        ports: &DataPorts,
    ) -> Result<Self, EngineError> {
        let given = address.into();
        let address = zone::socket_addr(&given, 0).attempt(|| format!("listen on {given}"))?;
        // Taken before the socket exists, and so before the sender can start: its first packets must be counted too.
        let before = host::counters(&own_socket::interface_of(address)?);
        let clock = StampClock::new();
        let sockets = if spec.transport == Transport::Tcp { spec.flows } else { 1 };
        sys::raise_file_limit(sockets.into())
            .attempt(|| format!("admit {}", stacklab_model::count(spec.flows, "flow")))?;
        let (socket, listening) = own_socket::listen(&spec, address, ports)?;
        Ok(Self::start(listening, move |ended| {
            let spec = &spec;
            let peers = peers.as_ref();
            let socket = &socket;
            attend(Listener { spec, peers, socket, address: listening, ended }, &before, clock)
        }))
    }

    /// Receives on a thread, from flows that are open or will be.
    pub(super) fn start(
        address: SocketAddr,
        receive: impl FnOnce(&AtomicBool) -> Attended + Send + 'static,
    ) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let ender = Ender(Arc::clone(&ended));
        Receiver { address, ender, thread: thread::spawn(move || receive(&ended)) }
    }

    /// The receiver's report, after the sender has ended. Waits for messages still in flight.
    pub(crate) fn collect(self) -> Result<HostReport, EngineError> {
        drop(self.ender);
        let attended = self.thread.join().map_err(|_| io::Error::other("the receive thread ended early"));
        attended.attempt(|| format!("receive on {}", self.address))?.map(|(report, _)| report)
    }
}

/// The channels stay open until the trial is collected, so that a late end marker does not meet a closed port.
fn attend(listener: Listener<'_>, before: &Counters, clock: StampClock) -> Attended {
    let Listener { spec, socket, address, ended, .. } = listener;
    sys::precise_timers();
    if spec.probe.probe == Probe::Connect {
        return Ok((connect::accept_connections(listener, before)?, Vec::new()));
    }
    let unmet = own_socket::observe_at(socket, address, None)?;
    let memory = SocketMemory::watch(spec);
    let (channels, strays) = listener.admit()?;
    if channels.is_empty() {
        return Ok((side(unmet, before, &[socket]), Vec::new()));
    }
    let flows = OpenFlows { channels, own: address, strays };
    take(spec, flows, memory, before, clock, ended)
}

/// The flows of a trial at the receiver.
pub(super) struct OpenFlows {
    pub channels: Vec<MessageSocket>,
    /// The receiver's own address.
    pub own: SocketAddr,
    /// What came while they were opened, and was of none of them.
    pub strays: u64,
}

/// Receives the trial on its flows. Datagrams of several flows from a sender that opened them share one socket.
pub(super) fn take(
    spec: &TrialSpec,
    flows: OpenFlows,
    memory: SocketMemory,
    before: &Counters,
    clock: StampClock,
    ended: &AtomicBool,
) -> Attended {
    let OpenFlows { channels, own, strays } = flows;
    let first = &channels[0];
    let is_unconnected = channels.len() < spec.flows as usize || spec.destinations > 1;
    let peeked = if is_unconnected { sys::peek_sender(&first.socket).ok() } else { None };
    let peer = peeked.and_then(|peer| mapped::from_socket(&peer));
    let endpoint = own_socket::observe_at(&first.socket, own, peer)?;
    let listening = endpoint.local;
    let size = spec.message_bytes as usize;
    let attempt = || format!("receive {} on {listening} from {}", spec.transport, endpoint.peer);
    let mut sent = Sent::default();
    let mut flow_sources = Vec::new();
    let shared = SharedState::new(ended);
    let counted = if spec.probe.probe.echoes() {
        let mut reflect = Reflect::new(spec, first, ended);
        let mut rx = RxBatch::new(&channels, clock).attempt(attempt)?;
        receive(&mut rx, size, spec.token, &mut reflect).attempt(attempt)?;
        sent = reflect.sent;
        ArrivalCounts { received: reflect.received, cpu: reflect.cpu.finish(), ..ArrivalCounts::default() }
    } else {
        let SourceCounter { counter, sources, .. } =
            count(spec, &channels, clock, &shared).attempt(attempt)?;
        flow_sources = sources;
        counter.finish()
    };
    let ArrivalCounts { received, delays, series, slices, cpu_parts, cpu, flow_bytes } = counted;
    let cpu = if !spec.schedule.is_alone() { cpu::of_slices(&slices, cpu_parts) } else { cpu };
    let delay_points = delays.is_some().then(|| find_points(spec, first));
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
        flow_sources,
        cpu,
        tcp,
        ..side(endpoint, before, &channels.iter().map(|channel| &channel.socket).collect::<Vec<_>>())
    };
    Ok((report, channels))
}

/// The moments between which one-way delays were measured.
fn find_points(spec: &TrialSpec, first: &MessageSocket) -> DelayPoints {
    let arrived = if first.stamped { Point::Kernel } else { Point::Call };
    let offset_ns = spec.clock_offset_ns;
    let bound_ns = 0;
    let skew_ns_per_s = 0;
    let compared = (offset_ns != 0).then_some(Compared { offset_ns, bound_ns, skew_ns_per_s });
    DelayPoints { compared, ..DelayPoints::between(Point::Call, arrived) }
}

/// Counts the arrivals of all flows. Each thread counts its own sockets; datagrams of all flows may share one.
fn count<'a>(
    spec: &TrialSpec,
    channels: &[MessageSocket],
    clock: StampClock,
    shared: &'a SharedState<'a>,
) -> io::Result<SourceCounter<'a>> {
    let size = spec.message_bytes as usize;
    let groups = threads::groups(channels.len());
    let counted = threads::on_each(&groups, |group| {
        let own = &channels[group];
        // TCP may end early, with fewer connections than flows.
        let share_socket = spec.transport == Transport::Udp && channels.len() == 1;
        let awaited = if share_socket { spec.flows as usize } else { own.len() };
        let mut counter = ArrivalCounter::new(spec, shared, awaited);
        // An interleaved trial's CPU time is that of its slices.
        if spec.schedule.is_alone() {
            counter = counter.with_cpu_time(spec.cpu_scope);
        }
        let mut rx = RxBatch::new(own, clock.clone())?;
        if !spec.uplinks.is_empty() {
            rx.keep_sources();
        }
        let mut counter = SourceCounter::new(spec, counter);
        receive(&mut rx, size, spec.token, &mut counter)?;
        Ok(counter)
    })?;
    let joined = counted.into_iter().reduce(|mut all, counter| {
        all.join(counter);
        all
    });
    joined.ok_or_else(|| io::Error::other("there was no flow"))
}

fn side(endpoint: Endpoint, before: &Counters, sockets: &[&Socket]) -> HostReport {
    let counters = host::counters_since(before, &endpoint.interface, sockets);
    HostReport { counters, peak_rss_kib: sys::peak_rss_kib(), ..HostReport::new(Role::Receiver, endpoint) }
}

/// Sends every message back once, with the time of its arrival written into it.
pub(super) struct Reflect<'a> {
    channel: &'a MessageSocket,
    /// Set by whoever knows that the sender has ended.
    ended: &'a AtomicBool,
    pub received: Received,
    sent: Sent,
    /// Open from the first measured arrival to the first end marker.
    cpu: CpuWindow,
    /// The measured messages that have come: a further copy of one is counted, and not answered.
    seen: SequenceWindow,
}

impl<'a> Reflect<'a> {
    pub(super) fn new(spec: &TrialSpec, channel: &'a MessageSocket, ended: &'a AtomicBool) -> Self {
        let received = Received::default();
        let sent = Sent::default();
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
        Header::write_reflection_time(message, now);
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
        Ok(stop_if(header.phase == Phase::End && header.markers_left == 0))
    }

    fn stray(&mut self) -> ControlFlow<()> {
        self.received.strays += 1;
        ControlFlow::Continue(())
    }

    fn idle(&mut self, _now: Nanos) -> ControlFlow<()> {
        stop_if(self.ended.load(Ordering::Relaxed))
    }
}
