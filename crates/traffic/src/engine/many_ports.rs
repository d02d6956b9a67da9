//! Messages that each belong to another connection: of some sockets of the sender and some of the receiver, each pair
//! is one. The receiver reads after the sender is done, from queues that hold all of it, so that its work takes nothing
//! from the path; the kernel has stamped when each message arrived.

mod reader;

use crate::engine::many_ports::reader::Reader;
use crate::engine::pacer::Pacer;
use crate::protocol::ports::{
    AnswersToSend, MessagesToPorts, MessagesToTake, PortsToOpen, SentToPorts, TakenFromPorts,
};
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
/// Nothing comes any more once nothing came for this long, or for as long as a few messages take.
const MIN_QUIET_NS: Nanos = 20_000_000;
const QUIET_MESSAGES: f64 = 5.0;
/// How long the first message may be under way, and how long it may take to read all.
const MAX_DELAY_NS: Nanos = 500_000_000;
const MAX_TAKING_NS: Nanos = 20_000_000_000;
/// How long it may take to send a number of messages, as a multiple of the time at their rate, and its bounds. The
/// coordinator waits for longer.
const MAX_SENDING_LENGTHS: f64 = 3.0;
const MIN_SENDING_LIMIT_NS: f64 = 1e9;
const MAX_SENDING_LIMIT_NS: f64 = 45e9;
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

impl Sending {
    /// How long it may take, where the kernel has no room for messages. A schedule with an end has its own limit.
    fn limit_ns(&self) -> Nanos {
        match self.length {
            Length::Time(_) => Nanos::MAX,
            Length::Packets(messages) => {
                let planned_ns = messages as f64 * 1e9 / self.per_second;
                let limit_ns = planned_ns * MAX_SENDING_LENGTHS;
                limit_ns.clamp(MIN_SENDING_LIMIT_NS, MAX_SENDING_LIMIT_NS) as Nanos
            }
        }
    }
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
        let pacer = Pacer::start(Pacing::Shifted(sending.per_second), sending.length);
        let mut pacer = pacer.within(sending.limit_ns());
        let mut sent = SentToPorts { at_realtime_priority: priority.is_some(), ..SentToPorts::default() };
        while let Some(slot) = pacer.next_slot(sent.messages, 1) {
            let Some(Outgoing { socket, sequence, to }) = choose(sent.messages) else { break };
            write_header(batch.slot(0), sending.token, sequence, slot.now);
            batch.set_destination(0, to);
            if !send_one(&mut batch, &self.sockets[socket], pacer.ends_ns())? {
                break;
            }
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

/// Sends a message, and tries again where the kernel has no room, until this time. Returns whether it was sent.
fn send_one(batch: &mut Batch, socket: &Socket, ends_ns: Nanos) -> io::Result<bool> {
    loop {
        match batch.send(socket, 0, 1, sys::SEND_PLAIN) {
            Ok(_) => return Ok(true),
            Err(error) if !is_full(&error) => return Err(error),
            Err(_) if sys::now_ns() >= ends_ns => return Ok(false),
            Err(_) => {}
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

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_kernel_ends_a_stream() {
        let (socket, _peer) = socket2::Socket::pair(Domain::UNIX, Type::DGRAM, None).unwrap();
        socket.set_nonblocking(true).unwrap();
        let socket = Socket::from(socket);
        let mut batch = Batch::new(1, 64);
        let ends_ns = sys::now_ns() + 20_000_000;
        let mut sent = 0;
        while send_one(&mut batch, &socket, ends_ns).unwrap() {
            sent += 1;
            assert!(sent < 100_000, "the socket has room for all");
        }
        assert!(sent > 0 && sys::now_ns() >= ends_ns, "{sent} messages");
    }

    #[test]
    fn a_number_of_messages_has_an_end() {
        for (length, per_second, limit_ns) in [
            (Length::Packets(100_000), 10_000.0, 30_000_000_000),
            (Length::Packets(12), 10_000.0, 1_000_000_000),
            (Length::Packets(u64::MAX), 0.0, 45_000_000_000),
            (Length::Time(1), 10_000.0, Nanos::MAX),
        ] {
            let sending = Sending { token: 7, per_second, length, priority: SenderPriority::Normal };
            assert_eq!(sending.limit_ns(), limit_ns);
        }
    }
}
