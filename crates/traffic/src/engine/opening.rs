//! Flows that the receiver opens, where its host can only connect out: behind a stateful firewall or address
//! translation. The sender waits for an opening message on each flow, which has the trial's token, and answers those of
//! datagrams; so the firewalls of both hosts know the flow before the first message of the trial.

use crate::engine::admit::{Listener, is_peer, peek_header};
use crate::engine::allowance::{Allowance, Burst};
use crate::engine::flows::{self, bare_header, connect_all, is_nothing};
use crate::engine::header::{Header, Phase};
use crate::engine::mapped;
use crate::engine::own_socket;
use crate::engine::peers::{DataPorts, Peers};
use crate::engine::receiver::{OpenFlows, Receiver, take};
use crate::engine::socket::MessageSocket;
use crate::engine::socket_options;
use crate::engine::stamps::StampClock;
use crate::engine::threads::Ender;
use crate::host::{self, SocketMemory, zone};
use crate::sys::{self, Interest, Nanos, PollEntry};
use crate::{Attempt, EngineError};
use stacklab_model::{HEADER_BYTES, ScopedAddr, Transport, TrialSpec, count};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const OPENING_BYTES: usize = HEADER_BYTES as usize;
/// How long a sender waits for the receiver's flows: several lost opening datagrams.
const OPEN_LIMIT: Duration = Duration::from_secs(3);
/// Time between two opening datagrams of a flow that was not answered.
const REPEAT: Duration = Duration::from_millis(100);

/// Bits per second of the opening datagrams of a receiver that nobody answers.
pub(crate) fn opening_bits_per_second(spec: &TrialSpec) -> f64 {
    let datagrams = if spec.transport == Transport::Udp { f64::from(spec.flows) } else { 0.0 };
    datagrams * OPENING_BYTES as f64 * 8.0 / REPEAT.as_secs_f64()
}

pub(crate) struct WaitingSender {
    pub address: SocketAddr,
    spec: TrialSpec,
    ender: Ender,
    thread: JoinHandle<Result<Vec<Option<MessageSocket>>, EngineError>>,
}

impl WaitingSender {
    /// Waits on an address for a receiver that knows the trial's token, and is one of these peers if there are any.
    pub(crate) fn listen(
        spec: TrialSpec,
        address: &ScopedAddr,
        peers: Option<Peers>,
        ports: &DataPorts,
    ) -> Result<Self, EngineError> {
        let own = zone::socket_addr(address, 0).attempt(|| format!("listen on {address}"))?;
        sys::raise_file_limit(spec.flows.into())
            .attempt(|| format!("admit {}", count(spec.flows, "flow")))?;
        let (socket, listening) = own_socket::listen(&spec, own, ports)?;
        let ended = Arc::new(AtomicBool::new(false));
        let ender = Ender(Arc::clone(&ended));
        let thread = thread::spawn({
            let spec = spec.clone();
            move || {
                let spec = &spec;
                let peers = peers.as_ref();
                let socket = &socket;
                let address = listening;
                let listener = Listener { spec, peers, socket, address, ended: &ended };
                match spec.transport {
                    Transport::Tcp => connections(listener),
                    Transport::Udp => {
                        datagrams(listener).attempt(|| format!("wait for the receiver on {listening}"))
                    }
                }
            }
        });
        Ok(WaitingSender { address: listening, spec, ender, thread })
    }

    /// The flows. Datagrams of one that was not opened go to `to`, and are probably lost: that is what is measured.
    pub(crate) fn flows(self, to: SocketAddr) -> Result<Vec<MessageSocket>, EngineError> {
        let WaitingSender { address, spec, ender, thread } = self;
        let began = Instant::now();
        while !thread.is_finished() && began.elapsed() < OPEN_LIMIT {
            sys::sleep(Duration::from_millis(1));
        }
        drop(ender);
        let opened = thread.join().map_err(|_| io::Error::other("the thread ended early"));
        let opened = opened.attempt(|| format!("wait for the receiver on {address}"))??;
        if spec.transport == Transport::Tcp {
            let opened: Vec<MessageSocket> = opened.into_iter().flatten().collect();
            if opened.len() < spec.flows as usize {
                let hint = own_socket::firewall_hint(spec.transport, address.port());
                let opened = opened.len();
                let flows = count(spec.flows, "flow");
                let text = format!("the other host opened {opened} of {flows} to {address}; {hint}");
                return Err(io::Error::new(io::ErrorKind::TimedOut, text))
                    .attempt(|| format!("send over {} to {}", spec.transport, to.ip()));
            }
            return Ok(opened);
        }
        let mut channels = Vec::with_capacity(opened.len());
        for flow in opened {
            channels.push(match flow {
                Some(channel) => channel,
                None => connect(&spec, address, to).attempt(|| format!("send from {address} to {to}"))?,
            });
        }
        Ok(channels)
    }
}

fn connections(listener: Listener<'_>) -> Result<Vec<Option<MessageSocket>>, EngineError> {
    let (channels, _) = listener.admit()?;
    for channel in &channels {
        socket_options::set_pacing(&channel.socket, listener.spec)
            .attempt(|| format!("prepare a flow on {}", listener.address))?;
    }
    Ok(channels.into_iter().map(Some).collect())
}

/// The flows whose opening datagrams came, by number.
fn datagrams(listener: Listener<'_>) -> io::Result<Vec<Option<MessageSocket>>> {
    let Listener { spec, peers, socket, address, ended } = listener;
    let mut flows: Vec<Option<MessageSocket>> = (0..spec.flows).map(|_| None).collect();
    // Each flow has a socket at this port.
    socket.set_reuse_address(true)?;
    while !ended.load(Ordering::Relaxed) && flows.iter().any(Option::is_none) {
        let from = match sys::peek_sender(socket) {
            Ok(from) => mapped::from_socket(&from),
            Err(error) if is_nothing(&error) => continue,
            Err(error) => return Err(error),
        };
        let mut room = [0; OPENING_BYTES];
        let Ok(taken) = sys::receive_now(socket, &mut room) else { continue };
        let Some(from) = from.filter(|from| is_peer(peers, Some(*from))) else { continue };
        let Some(header) =
            Header::read(&room[..taken], spec.token).filter(|header| header.phase == Phase::Open)
        else {
            continue;
        };
        if let Some(flow @ None) = flows.get_mut(usize::from(header.flow)) {
            *flow = Some(connect(spec, address, from)?);
        }
        if let Some(Some(channel)) = flows.get(usize::from(header.flow)) {
            // What is refused or lost is asked for again.
            let _ = channel.socket.send(&room[..taken]);
        }
    }
    Ok(flows)
}

/// A socket at the sender's port, connected to the receiver's of one flow.
fn connect(spec: &TrialSpec, own: SocketAddr, to: SocketAddr) -> io::Result<MessageSocket> {
    let socket = own_socket::bind(spec, own, true)?;
    let to = match (own, to) {
        // A link-local receiver is in the zone of this address.
        (SocketAddr::V6(own), SocketAddr::V6(mut to)) if to.ip().is_unicast_link_local() => {
            to.set_scope_id(own.scope_id());
            to.into()
        }
        _ => to,
    };
    socket.connect(&socket_options::destination(&socket, spec, to)?)?;
    MessageSocket::new(spec, socket).map_err(|error| error.source)
}

/// A receiver that opens the flows from an address to a sender that waits for them.
pub(crate) fn receiver(
    spec: TrialSpec,
    address: &ScopedAddr,
    sender: SocketAddr,
    allowance: Option<Arc<Allowance>>,
) -> Result<Receiver, EngineError> {
    let attempt = || format!("open flows from {address} to {sender}");
    let (from, to) = zone::ends(address, sender).attempt(attempt)?;
    let before = host::counters(&own_socket::interface_of(from)?);
    let clock = StampClock::new();
    sys::raise_file_limit(spec.flows.into()).attempt(attempt)?;
    let memory = SocketMemory::watch(&spec);
    if let Some(allowance) = &allowance {
        flows::await_opening(&spec, allowance, None);
    }
    let channels = connect_all(&spec, from, to)?;
    let own = own_socket::observe(&channels[0].socket, None)?.local;
    Ok(Receiver::start(own, move |ended| {
        sys::precise_timers();
        let strays = match spec.transport {
            Transport::Tcp => 0,
            Transport::Udp => until_answer(&spec, &channels, ended, allowance.as_deref())
                .attempt(|| format!("open flows from {own} to {to}"))?,
        };
        take(&spec, OpenFlows { channels, own, strays }, memory, &before, clock, ended)
    }))
}

/// Repeats opening datagrams until each flow is answered, a message has come, or the trial has ended. Returns the
/// strays.
fn until_answer(
    spec: &TrialSpec,
    channels: &[MessageSocket],
    ended: &AtomicBool,
    allowance: Option<&Allowance>,
) -> io::Result<u64> {
    let mut waiting: Vec<(u16, &MessageSocket)> = (0..).zip(channels).collect();
    let mut strays = 0;
    let mut sent = None::<Instant>;
    while !waiting.is_empty() && !ended.load(Ordering::Relaxed) {
        if sent.is_none_or(|sent| sent.elapsed() >= REPEAT) {
            for (flow, channel) in &waiting {
                if let Some(allowance) = allowance {
                    if !allowance.wait(Burst::Forbidden, Nanos::MAX, Some(ended)) {
                        break;
                    }
                    allowance.spend(OPENING_BYTES as u64);
                }
                // Refused by a firewall, for example: it is sent again.
                let _ = channel.socket.send(&bare_header(spec.token, *flow, Phase::Open));
            }
            sent = Some(Instant::now());
        }
        let mut ready: Vec<PollEntry> =
            waiting.iter().map(|(_, channel)| PollEntry::new(&channel.socket, Interest::Readable)).collect();
        sys::poll_sockets(&mut ready, sys::RECEIVE_TICK)?;
        let looked: Vec<_> = waiting.drain(..).zip(ready).collect();
        for ((flow, channel), entry) in looked {
            let seen = if entry.is_ready() { peek_header(&channel.socket).ok().flatten() } else { None };
            let read = seen.map(|seen| Header::read_front(&seen, spec.message_bytes as usize, spec.token));
            match read.map(|header| header.map(|header| header.phase)) {
                // A message: the sender has begun.
                Some(Some(Phase::Warmup | Phase::Measured | Phase::End)) => return Ok(strays),
                Some(phase) => {
                    let _ = sys::receive_now(&channel.socket, &mut [0; OPENING_BYTES]);
                    if phase.is_none() {
                        strays += 1;
                        waiting.push((flow, channel));
                    }
                }
                None => waiting.push((flow, channel)),
            }
        }
    }
    Ok(strays)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::sender::{self, Run};
    use crate::fixtures;
    use crate::protocol::message::SendArm;
    use stacklab_model::{Family, HostReport, Length, Pacing, Probe};
    use std::net::UdpSocket;

    fn spec(family: Family, transport: Transport, probe: Probe, flows: u32) -> TrialSpec {
        let mut spec = fixtures::spec(family, transport);
        let schedule = Pacing::Schedule(5_000.0);
        (spec.probe.probe, spec.flows) = (probe, flows);
        spec.probe.pacing = if probe == Probe::Echo { Pacing::Lockstep } else { schedule };
        (spec.probe.length, spec.probe.warmup_ns) = (Length::Packets(500), 10_000_000);
        spec
    }

    fn waiting(spec: &TrialSpec, peers: Option<Peers>) -> WaitingSender {
        let own = spec.family.loopback().into();
        WaitingSender::listen(spec.clone(), &own, peers, &DataPorts::default()).unwrap()
    }

    fn trial(spec: &TrialSpec) -> [HostReport; 2] {
        let own: ScopedAddr = spec.family.loopback().into();
        let waiting = waiting(spec, None);
        let receiver = receiver(spec.clone(), &own, waiting.address, None).unwrap();
        let arm = SendArm { spec: Box::new(spec.clone()), from: own, to: receiver.address, waiting: None };
        let sent = sender::run_arm(arm, Run { waiting: Some(waiting), ..Run::default() }).unwrap();
        [sent, receiver.collect().unwrap()]
    }

    #[test]
    fn everything_arrives_on_flows_opened_by_the_receiver() {
        for family in Family::ALL.iter().copied() {
            for transport in Transport::ALL.iter().copied() {
                for (probe, flows) in [(Probe::Stream, 1), (Probe::Stream, 5), (Probe::Echo, 1)] {
                    let spec = spec(family, transport, probe, flows);
                    let [sender, receiver] = trial(&spec);
                    let what = format!("{family} {transport} {probe} {flows}");
                    assert_eq!((sender.sent.measured, receiver.received.measured), (500, 500), "{what}");
                    assert_eq!((sender.received.strays, receiver.received.strays), (0, 0), "{what}");
                    if flows == 1 {
                        assert_eq!(sender.endpoint.peer, receiver.endpoint.local, "{what}");
                        assert_eq!(receiver.endpoint.peer, sender.endpoint.local, "{what}");
                    } else {
                        // All at one port of the sender.
                        assert_eq!(receiver.endpoint.peer.port(), sender.endpoint.local.port(), "{what}");
                        assert!(receiver.flow_bytes.iter().all(|bytes| *bytes > 0), "{what}");
                    }
                    if probe == Probe::Echo {
                        assert_eq!(sender.received.measured, 500, "{what}");
                    }
                }
            }
        }
    }

    #[test]
    fn only_a_peer_with_the_token_opens_flows() {
        let spec = spec(Family::Ipv4, Transport::Udp, Probe::Stream, 1);
        let peers = Peers { addresses: vec!["127.0.0.9".parse().unwrap()], networks: Vec::new() };
        let waiting = waiting(&spec, Some(peers));
        // An answer is waited for as long as it takes; that there is none shows soon.
        let soon = Duration::from_millis(300);
        for (from, token) in [("127.0.0.1:0", spec.token), ("127.0.0.9:0", !spec.token)] {
            let socket = send_opening(from, waiting.address, token);
            socket.set_read_timeout(Some(soon)).unwrap();
            assert!(socket.recv(&mut [0; 64]).is_err());
        }
        let socket = send_opening("127.0.0.9:0", waiting.address, spec.token);
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        assert!(socket.recv(&mut [0; 64]).is_ok());
        let receiver = socket.local_addr().unwrap();
        drop(socket);
        let flows = waiting.flows("127.0.0.1:9".parse().unwrap()).unwrap();
        assert_eq!(flows[0].socket.peer_addr().unwrap().as_socket(), Some(receiver));
    }

    fn send_opening(from: &str, to: SocketAddr, token: u32) -> UdpSocket {
        let socket = UdpSocket::bind(from).unwrap();
        socket.connect(to).unwrap();
        socket.send(&bare_header(token, 0, Phase::Open)).unwrap();
        socket
    }

    #[test]
    fn datagrams_of_unopened_flows_are_sent_and_lost() {
        let own = Family::Ipv4.loopback();
        let spec = spec(Family::Ipv4, Transport::Udp, Probe::Stream, 2);
        let nobody = UdpSocket::bind((own, 0)).unwrap().local_addr().unwrap();
        // Connections cannot be replaced.
        let of_tcp = TrialSpec { transport: Transport::Tcp, ..spec.clone() };
        let reason = waiting(&of_tcp, None).flows(nobody).err().unwrap().to_string();
        assert!(reason.contains("opened 0 of 2 flows") && reason.contains("firewall"), "{reason}");
        let waits = waiting(&spec, None);
        let at = waits.address;
        let flows = waits.flows(nobody).unwrap();
        assert_eq!(flows.len(), 2);
        for flow in flows {
            assert_eq!(flow.socket.local_addr().unwrap().as_socket(), Some(at));
            assert_eq!(flow.socket.peer_addr().unwrap().as_socket(), Some(nobody));
        }
    }
}
