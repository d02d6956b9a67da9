//! Messages that each belong to another connection: of some sockets of the sender and some of the receiver, each pair
//! is one. The receiver reads after the sender is done, from queues that hold all of it, so that its work takes nothing
//! from the path; the kernel has stamped when each message arrived.

use crate::engine::pacer::Pacer;
use crate::protocol::ports::{
    AnswersToSend, MessagesToPorts, MessagesToTake, PortsToOpen, SentToPorts, TakenFromPorts,
};
use crate::stats::waiting::WaitingCounter;
use crate::sys::{self, Batch, Nanos, RealtimePriority, RunDelay, Socket, SocketOption};
use crate::{Attempt, EngineError};
use socket2::{Domain, Protocol, Type};
use stacklab_model::{Length, Pacing, SenderPriority};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Token, sequence number and send time.
const HEADER: usize = 16;
/// The most sockets: those of a million connections at both hosts.
const MAX_SOCKETS: u32 = 1024;
/// What the kernel charges for a message beyond its bytes, at the most.
const OVERHEAD_BYTES: u32 = 1280;
const MAX_BUFFER: u32 = 256 << 20;
/// Messages that one call reads.
const AT_ONCE: usize = 64;
/// Nothing comes any more once nothing came for this long, or for as long as a few messages take.
const MIN_QUIET_NS: Nanos = 20_000_000;
const QUIET_MESSAGES: f64 = 5.0;
/// How long the first message may be under way, and how long it may take to read all.
const MAX_DELAY_NS: Nanos = 500_000_000;
const MAX_TAKING_NS: Nanos = 20_000_000_000;
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// The sockets of one host.
pub(crate) struct ManyPorts {
    sockets: Vec<Socket>,
    /// The port of each.
    pub(crate) ports: Vec<u16>,
    message_bytes: u32,
    /// What was read last: where answers go.
    arrived: Vec<Arrived>,
    drops: u64,
}

/// A message that was read.
struct Arrived {
    socket: usize,
    sequence: u32,
    from: SocketAddr,
}

/// A message that is to be sent.
struct Outgoing {
    socket: usize,
    sequence: u32,
    to: SocketAddr,
}

/// How messages are sent.
struct Sending {
    token: u32,
    per_second: f64,
    length: Length,
    priority: SenderPriority,
}

impl ManyPorts {
    pub(crate) fn open(asked: &PortsToOpen) -> Result<Self, EngineError> {
        let PortsToOpen { address, count, .. } = asked;
        let attempted = format!("open {count} UDP sockets on {address}");
        if !sys::has_kernel_sockets() || cfg!(windows) {
            let reason = "it needs the sockets of Linux";
            return Err(io::Error::new(io::ErrorKind::Unsupported, reason)).attempt(|| attempted);
        }
        Self::open_all(asked).attempt(|| attempted)
    }

    fn open_all(asked: &PortsToOpen) -> io::Result<Self> {
        let PortsToOpen { address, count, messages, message_bytes } = asked;
        let count = (*count).clamp(1, MAX_SOCKETS);
        sys::raise_file_limit(u64::from(count))?;
        let room = messages.saturating_mul(message_bytes.saturating_add(OVERHEAD_BYTES)).min(MAX_BUFFER);
        let mut sockets = Vec::new();
        let mut ports = Vec::new();
        for _ in 0..count {
            let socket = open_socket(address.ip(), room as usize)?;
            ports.push(socket.local_addr()?.as_socket().map_or(0, |own| own.port()));
            sockets.push(socket);
        }
        let message_bytes = (*message_bytes).max(HEADER as u32);
        Ok(ManyPorts { sockets, ports, message_bytes, arrived: Vec::new(), drops: 0 })
    }

    /// Sends messages, each on the next pair of sockets.
    pub(crate) fn send(&self, asked: &MessagesToPorts) -> Result<SentToPorts, EngineError> {
        let sending = Sending {
            token: asked.token,
            per_second: asked.per_second,
            length: asked.length,
            priority: asked.priority,
        };
        let sources = self.sockets.len();
        self.send_all(&sending, |number| {
            let port = asked.ports.get(number as usize / sources % asked.ports.len().max(1))?;
            let to = SocketAddr::new(asked.to, *port);
            Some(Outgoing { socket: number as usize % sources, sequence: number as u32, to })
        })
        .attempt(|| format!("send messages of new connections to {}", asked.to))
    }

    /// Answers what was read last.
    pub(crate) fn answer(&self, asked: &AnswersToSend) -> Result<SentToPorts, EngineError> {
        let sending = Sending {
            token: asked.token,
            per_second: asked.per_second,
            length: Length::Packets(self.arrived.len() as u64),
            priority: SenderPriority::Normal,
        };
        self.send_all(&sending, |number| {
            let Arrived { socket, sequence, from } = *self.arrived.get(number as usize)?;
            Some(Outgoing { socket, sequence, to: from })
        })
        .attempt(|| "answer the messages of new connections".to_owned())
    }

    fn send_all(
        &self,
        sending: &Sending,
        mut choose: impl FnMut(u64) -> Option<Outgoing>,
    ) -> io::Result<SentToPorts> {
        let mut batch = Batch::new(1, self.message_bytes as usize);
        batch.keep_addresses();
        sys::precise_timers();
        let run_delay = RunDelay::of_this_thread();
        let is_urgent = sending.priority == SenderPriority::Realtime && sys::processors_online() > 1;
        let priority = is_urgent.then(RealtimePriority::take).flatten();
        let waited_before = run_delay.read();
        let mut pacer = Pacer::start(Pacing::Shifted(sending.per_second), sending.length);
        let mut sent = SentToPorts { at_realtime_priority: priority.is_some(), ..SentToPorts::default() };
        while let Some(slot) = pacer.next_slot(sent.messages, 1) {
            let Some(Outgoing { socket, sequence, to }) = choose(sent.messages) else { break };
            write_header(batch.slot(0), sending.token, sequence, slot.now);
            batch.set_destination(0, to);
            send_one(&mut batch, &self.sockets[socket], pacer.ends_ns())?;
            if sent.messages == 0 {
                sent.first_ns = slot.now;
            }
            sent.messages += 1;
            pacer.record_send(slot);
        }
        sent.last_ns = sys::now_ns();
        sent.waited_ns =
            run_delay.read().zip(waited_before).map(|(after, before)| after.saturating_sub(before));
        Ok(sent)
    }

    /// Reads messages until no more come.
    pub(crate) fn take(&mut self, asked: &MessagesToTake) -> Result<TakenFromPorts, EngineError> {
        self.take_all(asked).attempt(|| "read the messages of new connections".to_owned())
    }

    fn take_all(&mut self, asked: &MessagesToTake) -> io::Result<TakenFromPorts> {
        self.arrived.clear();
        let mut reader = Reader::new(asked, self.message_bytes as usize);
        let begins_ns = sys::now_ns();
        let gaps_ns = (QUIET_MESSAGES * 1e9 / asked.per_second.max(1.0)) as Nanos;
        let quiet_ns = MIN_QUIET_NS.max(gaps_ns);
        let mut last_ns = begins_ns;
        loop {
            let before = self.arrived.len();
            for (place, socket) in self.sockets.iter().enumerate() {
                reader.read_socket(place, socket, self.sockets.len(), &mut self.arrived)?;
            }
            let now_ns = sys::now_ns();
            if self.arrived.len() > before {
                last_ns = now_ns;
            }
            let under_way_ns = if self.arrived.is_empty() { MAX_DELAY_NS } else { reader.least_delay_ns };
            let due_ns =
                last_ns.max(asked.sent_until_ns.saturating_add(under_way_ns)).saturating_add(quiet_ns);
            let is_complete = self.arrived.len() as u64 >= asked.sent;
            if is_complete || now_ns > due_ns || now_ns > begins_ns.saturating_add(MAX_TAKING_NS) {
                break;
            }
            sys::sleep(POLL_INTERVAL);
        }
        let mut drops = 0;
        for socket in &self.sockets {
            drops += sys::socket_drops(socket)?;
        }
        let before = std::mem::replace(&mut self.drops, drops);
        Ok(TakenFromPorts {
            messages: self.arrived.len() as u64,
            waiting: reader.waiting.count(),
            first_ns: reader.first_ns.unwrap_or(0),
            last_ns: reader.last_ns,
            drops: drops.saturating_sub(before),
        })
    }
}

fn open_socket(address: IpAddr, room: usize) -> io::Result<Socket> {
    let own = SocketAddr::new(address, 0);
    let socket = Socket::new(Domain::for_address(own), Type::DGRAM, Some(Protocol::UDP))?;
    if own.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    sys::set(&socket, SocketOption::ReceiveBuffer(room))?;
    sys::set(&socket, SocketOption::RxTimestamps)?;
    socket.bind(&own.into())?;
    sys::set_timeouts(&socket)?;
    Ok(socket)
}

/// Sends a message, and tries again where the kernel has no room, until this time.
fn send_one(batch: &mut Batch, socket: &Socket, ends_ns: Nanos) -> io::Result<()> {
    loop {
        match batch.send(socket, 0, 1, sys::SEND_PLAIN) {
            Ok(_) => return Ok(()),
            Err(error) if is_full(&error) && sys::now_ns() < ends_ns => {}
            Err(error) => return Err(error),
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock || sys::is_out_of_buffers(error)
}

fn write_header(message: &mut [u8], token: u32, sequence: u32, sent_ns: Nanos) {
    message[..4].copy_from_slice(&token.to_be_bytes());
    message[4..8].copy_from_slice(&sequence.to_be_bytes());
    message[8..HEADER].copy_from_slice(&sent_ns.to_be_bytes());
}

/// Sequence number and send time of a message with this token.
fn read_header(message: &[u8], token: u32) -> Option<(u32, Nanos)> {
    let (seen, rest) = message.split_first_chunk::<4>()?;
    let (sequence, rest) = rest.split_first_chunk::<4>()?;
    let sent_ns = rest.first_chunk::<8>()?;
    (u32::from_be_bytes(*seen) == token)
        .then(|| (u32::from_be_bytes(*sequence), Nanos::from_be_bytes(*sent_ns)))
}

/// Reads the messages of one sending, each once.
struct Reader {
    batch: Batch,
    token: u32,
    stride: usize,
    seen: Vec<bool>,
    waiting: WaitingCounter,
    /// By how much the kernel's stamps are ahead of the monotonic clock.
    ahead_ns: i64,
    least_delay_ns: Nanos,
    first_ns: Option<Nanos>,
    last_ns: Nanos,
}

impl Reader {
    fn new(asked: &MessagesToTake, message_bytes: usize) -> Self {
        let mut batch = Batch::new(AT_ONCE, message_bytes);
        batch.keep_addresses();
        let most = u64::from(MAX_SOCKETS) * u64::from(MAX_SOCKETS);
        let per_second = asked.per_second.max(1.0);
        let took_ns = (asked.sent.min(most) as f64 / per_second * 1e9) as Nanos;
        Reader {
            batch,
            token: asked.token,
            stride: asked.stride.max(1) as usize,
            seen: vec![false; asked.most.min(most) as usize],
            waiting: WaitingCounter::new(per_second, took_ns),
            ahead_ns: sys::realtime_offset().offset_ns,
            least_delay_ns: Nanos::MAX,
            first_ns: None,
            last_ns: 0,
        }
    }

    /// Reads what waits at a socket. `sockets` is the number of all of them.
    fn read_socket(
        &mut self,
        place: usize,
        socket: &Socket,
        sockets: usize,
        arrived: &mut Vec<Arrived>,
    ) -> io::Result<()> {
        loop {
            let count = match self.batch.receive(socket, false) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            for slot in 0..count {
                let (Some((sequence, sent_ns)), Some(from)) =
                    (read_header(self.batch.slot(slot), self.token), self.batch.source(slot))
                else {
                    continue;
                };
                let is_at_home = sequence as usize / self.stride % sockets == place;
                let Some(seen) = self.seen.get_mut(sequence as usize).filter(|_| is_at_home) else {
                    continue;
                };
                if std::mem::replace(seen, true) {
                    continue;
                }
                self.note_arrival(slot, sent_ns);
                arrived.push(Arrived { socket: place, sequence, from });
            }
            if count < AT_ONCE {
                return Ok(());
            }
        }
    }

    fn note_arrival(&mut self, slot: usize, sent_ns: Nanos) {
        let stamp = self.batch.recv_meta(slot).software_rx_ns;
        let arrived_ns = match stamp {
            Some(stamp) => stamp.saturating_add_signed(-self.ahead_ns),
            None => sys::now_ns(),
        };
        self.waiting.record(sent_ns, arrived_ns);
        self.least_delay_ns = self.least_delay_ns.min(arrived_ns.saturating_sub(sent_ns));
        self.first_ns = Some(self.first_ns.map_or(arrived_ns, |first_ns| first_ns.min(arrived_ns)));
        self.last_ns = self.last_ns.max(arrived_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::Family;

    const SOURCES: u32 = 4;
    const PORTS: u32 = 3;

    fn open(family: Family, count: u32) -> ManyPorts {
        let address = family.loopback().to_string().parse().unwrap();
        ManyPorts::open(&PortsToOpen { address, count, messages: 100, message_bytes: 64 }).unwrap()
    }

    fn taking(sent: u64, sent_until_ns: u64, stride: u32) -> MessagesToTake {
        MessagesToTake { opened: 1, token: 7, sent, most: sent, per_second: 10_000.0, sent_until_ns, stride }
    }

    fn sending(family: Family, ports: Vec<u16>, messages: u64) -> MessagesToPorts {
        MessagesToPorts {
            opened: 1,
            token: 7,
            to: family.loopback(),
            ports,
            message_bytes: 64,
            per_second: 10_000.0,
            length: Length::Packets(messages),
            priority: SenderPriority::Normal,
        }
    }

    #[test]
    fn each_message_has_its_own_pair_of_ports() {
        for family in Family::ALL {
            let mut sender = open(*family, SOURCES);
            let mut receiver = open(*family, PORTS);
            let sent = sender.send(&sending(*family, receiver.ports.clone(), 12)).unwrap();
            assert_eq!(sent.messages, 12);
            let taken = receiver.take(&taking(12, sent.last_ns, SOURCES)).unwrap();
            assert_eq!((taken.messages, taken.drops), (12, 0), "{family}");
            assert!(taken.first_ns >= sent.first_ns && taken.last_ns >= taken.first_ns);
            let mut pairs: Vec<_> =
                receiver.arrived.iter().map(|one| (one.from, receiver.ports[one.socket])).collect();
            pairs.sort();
            pairs.dedup();
            assert_eq!(pairs.len(), 12, "{family}: {pairs:?}");
            let asked = AnswersToSend { opened: 1, token: 7, per_second: 10_000.0 };
            let answered = receiver.answer(&asked).unwrap();
            let back = sender.take(&taking(12, answered.last_ns, 1)).unwrap();
            assert_eq!((answered.messages, back.messages), (12, 12), "{family}");
        }
    }

    #[test]
    fn copies_and_strays_do_not_count() {
        let sender = open(Family::Ipv4, SOURCES);
        let mut receiver = open(Family::Ipv4, PORTS);
        let asked = sending(Family::Ipv4, receiver.ports.clone(), 12);
        sender.send(&MessagesToPorts { token: 8, ..asked.clone() }).unwrap();
        sender.send(&asked).unwrap();
        let sent = sender.send(&asked).unwrap();
        assert_eq!(receiver.take(&taking(12, sent.last_ns, SOURCES)).unwrap().messages, 12);
        // At another socket than it was sent to, it came by a wrong way.
        let sent = sender.send(&asked).unwrap();
        let wrong = receiver.take(&taking(12, sent.last_ns, 1)).unwrap();
        assert!(wrong.messages < 12, "{wrong:?}");
    }
}
