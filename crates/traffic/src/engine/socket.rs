//! A socket with a message size, which both loops use through a `TxBatch` and an `RxBatch`.

use crate::engine::destinations;
use crate::engine::header::{ForeignFormat, Header};
use crate::engine::own_socket;
use crate::engine::socket_options;
use crate::sys::{self, Batch, Nanos, SEND_LIMIT, Socket, SocketOption};
use crate::{Attempt, EngineError, timing};
use stacklab_model::{Io, Pacing, Probe, ScopedAddr, SizeOf, TcpInfo, Transport, TrialSpec};
use std::ffi::c_int;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

pub(crate) const CONNECT_LIMIT: Duration = Duration::from_secs(5);
const MAX_AT_ONCE: usize = 32;
/// The same in a GSO batch: what each kernel with UDP_SEGMENT takes (UDP_MAX_SEGMENTS was 64 before Linux 6.9).
const MAX_GSO_SEGMENTS: usize = 64;
const MAX_GSO_BYTES: usize = 65_000;
/// Receive buffer of a UDP stream, bytes: a receiver that was briefly not scheduled loses nothing of a flood.
const WAITING_ROOM: usize = 8 << 20;

/// A connected socket that carries messages of one size.
pub(crate) struct MessageSocket {
    pub socket: Socket,
    pub transport: Transport,
    pub message_bytes: usize,
    /// The I/O mode: the requested one, or the nearest that this socket supports.
    pub io: Io,
    pub at_once: usize,
    /// Maximum payload bytes per packet of the path.
    packet_bytes: usize,
    /// Whether the kernel timestamps arrivals. If not, the arrival time is when the receive returned.
    pub stamped: bool,
    pub coalesces: bool,
    shares_segments: bool,
    /// Whether one call sends several messages as one piece, because sendmmsg would skip bytes.
    joins: bool,
    /// Whether each message has its own destination.
    spreads: bool,
    pub gro: bool,
    /// Flags of sends; end markers use plain or MSG_EOR flags.
    pub flags: c_int,
    pub poll_ns: Nanos,
    pub foreign: Option<ForeignFormat>,
    /// The kernel's counts when the flow had been opened, which are not those of the trial.
    opening: TcpInfo,
}

impl MessageSocket {
    /// Connects to the receiver within this time. `from` has port 0.
    pub(crate) fn connect(
        spec: &TrialSpec,
        from: SocketAddr,
        to: SocketAddr,
        limit: Duration,
    ) -> Result<Self, EngineError> {
        Self::connect_bound(spec, own_socket::open(spec, from)?, [from, to], limit)
    }

    /// The same with a socket that is bound.
    pub(crate) fn connect_bound(
        spec: &TrialSpec,
        socket: Socket,
        [from, to]: [SocketAddr; 2],
        limit: Duration,
    ) -> Result<Self, EngineError> {
        destinations::prepare(spec);
        // No time at all would be a wrong argument.
        let limit = limit.max(Duration::from_millis(1));
        socket_options::destination(&socket, spec, to)
            .and_then(|at| {
                socket.connect_timeout(&at, limit).map_err(|error| own_socket::add_connection_hint(error, to))
            })
            .and_then(|()| socket_options::set_pacing(&socket, spec))
            .attempt(|| format!("connect {} from {} to {to}", spec.transport, ScopedAddr::from(from)))?;
        MessageSocket::new(spec, socket)
    }

    pub(crate) fn new(spec: &TrialSpec, socket: Socket) -> Result<Self, EngineError> {
        let message_bytes = spec.message_bytes as usize;
        let mut channel = MessageSocket {
            socket,
            transport: spec.transport,
            message_bytes,
            io: spec.io,
            at_once: 1,
            packet_bytes: 0,
            stamped: false,
            coalesces: false,
            shares_segments: false,
            joins: false,
            spreads: spec.destinations > 1,
            gro: false,
            flags: sys::SEND_PLAIN,
            poll_ns: spec.poll_ns,
            foreign: None,
            opening: TcpInfo::default(),
        };
        channel
            .prepare(spec)
            .attempt(|| format!("prepare a {} socket for {} I/O", spec.transport, spec.io))?;
        Ok(channel)
    }

    fn prepare(&mut self, spec: &TrialSpec) -> io::Result<()> {
        let socket = &self.socket;
        sys::set_timeouts(socket)?;
        let headers = (spec.family.header_bytes() + spec.transport.header_bytes()) as usize;
        // A receiver of several flows has no peer, and so no path. It sends nothing.
        let mtu = sys::path_mtu(socket, spec.family).map_or(usize::MAX, |mtu| mtu as usize);
        self.packet_bytes = mtu.saturating_sub(headers);
        if spec.transport == Transport::Tcp {
            socket_options::set_after_connect(socket, spec)?;
            if spec.size_of == SizeOf::Payload {
                self.flags = sys::SEND_EOR;
            }
        }
        if self.spreads && self.io == Io::Gso {
            // A GSO batch goes to one address.
            self.io = Io::Sendmmsg;
        }
        // Scheduled messages and closed-loop messages are sent one per call.
        if spec.probe.pacing == Pacing::Flood && spec.io != Io::Send && sys::BATCHED_CALLS {
            let most = if self.io == Io::Gso { MAX_GSO_SEGMENTS } else { MAX_AT_ONCE };
            self.at_once = most.min(MAX_GSO_BYTES / self.message_bytes).max(1);
        }
        if self.io == Io::Zerocopy {
            sys::set(socket, SocketOption::Zerocopy)?;
            self.flags |= sys::SEND_ZEROCOPY;
        }
        if self.io == Io::Gso {
            // A fragmented datagram cannot be part of a GSO batch.
            if self.message_bytes > self.packet_bytes || self.at_once < 2 {
                self.io = Io::Sendmmsg;
            } else {
                sys::set(socket, SocketOption::Gso(self.message_bytes))?;
            }
        }
        if spec.probe.probe == Probe::Stream {
            // Arrivals are timestamped by the kernel, so a later receive does not change the arrival times.
            self.stamped = sys::set(socket, SocketOption::RxTimestamps).is_ok();
            self.coalesces = self.stamped && timing::coalesces(spec);
        }
        if self.io == Io::Sendmmsg && !sys::BATCHED_CALLS {
            self.io = Io::Send;
        }
        self.joins = spec.transport == Transport::Tcp && sys::skips_bytes();
        if self.joins && spec.size_of == SizeOf::Payload {
            // In one piece they would share segments.
            (self.io, self.at_once) = (Io::Send, 1);
        }
        self.shares_segments = socket_options::shares_segments(spec);
        if self.shares_segments && self.at_once > 1 {
            self.flags = sys::SEND_MORE;
        }
        if spec.transport == Transport::Udp && spec.probe.probe == Probe::Stream {
            if spec.tuning.receive_buffer.is_none() {
                sys::set(socket, SocketOption::ReceiveBuffer(WAITING_ROOM))?;
            }
            let joins = self.io == Io::Gso && spec.size_of == SizeOf::Write;
            self.gro = joins && sys::set(socket, SocketOption::Gro).is_ok();
        }
        Ok(())
    }

    /// Sends from a buffer that is used again at once, not with MSG_ZEROCOPY.
    pub(crate) fn without_zerocopy(&mut self) {
        if self.io == Io::Zerocopy {
            self.io = if sys::BATCHED_CALLS { Io::Sendmmsg } else { Io::Send };
            self.flags &= !sys::SEND_ZEROCOPY;
        }
    }

    /// The trial begins: what the kernel has counted until now is not part of it.
    pub(crate) fn begin_trial(&mut self) {
        self.opening = sys::tcp_info(&self.socket).unwrap_or_default();
    }

    /// TCP_INFO without what opening the flow has counted.
    fn tcp_info(&self) -> io::Result<TcpInfo> {
        let mut now = sys::tcp_info(&self.socket)?;
        let mut before = self.opening.clone();
        for (now, before) in counters(&mut now).into_iter().zip(counters(&mut before)) {
            *now = now.map(|now| now.saturating_sub(before.unwrap_or(0)));
        }
        Ok(now)
    }

    /// Writes a header to the front of a message, in the format of this channel.
    pub(crate) fn write(&self, header: &Header, message: &mut [u8]) {
        match self.foreign {
            None => header.write(message),
            Some(format) => format.write(header, message),
        }
    }

    /// Sends one whole message or a GSO batch. Returns how often it was retried after ENOBUFS.
    pub(crate) fn send(&self, message: &[u8]) -> io::Result<u64> {
        Ok(self.send_until(message, self.flags, Nanos::MAX)?.refused)
    }

    /// Sends the last message and what MSG_MORE held back, which would wait for the peer's delayed acknowledgement.
    pub(crate) fn send_last(&self, message: &[u8], until: Nanos) -> io::Result<Taken> {
        let flags = if self.shares_segments { sys::SEND_PLAIN } else { self.flags };
        let taken = self.send_until(message, flags, until)?;
        self.push()?;
        Ok(taken)
    }

    /// Flushes what MSG_MORE held back of the messages so far.
    pub(crate) fn push(&self) -> io::Result<()> {
        if self.shares_segments {
            // Turning it on sends what waits.
            self.socket.set_tcp_nodelay(true)?;
            self.socket.set_tcp_nodelay(false)?;
        }
        Ok(())
    }

    /// Sends one message, or a GSO batch, as far as there is room for it until this time.
    pub(crate) fn send_until(&self, message: &[u8], flags: c_int, until: Nanos) -> io::Result<Taken> {
        let mut left = message;
        let mut taken = Taken::default();
        while !left.is_empty() {
            let is_taken = self.until_taken(until, &mut taken.refused, || {
                let sent = sys::send(&self.socket, left, flags)?;
                left = &left[sent..];
                Ok(())
            })?;
            if !is_taken {
                break;
            }
            taken.calls += 1;
        }
        taken.messages = usize::from(left.len() < message.len());
        taken.left = if taken.messages > 0 { left.len() } else { 0 };
        Ok(taken)
    }

    /// Sends the first `count` messages of a batch, as far as there is room for them until this time.
    pub(crate) fn send_all(&self, room: &mut Batch, count: usize, until: Nanos) -> io::Result<Taken> {
        if count == 1 && !self.spreads || self.is_gso_batch(count) {
            // A GSO batch is taken as a whole.
            let taken = self.send_until(room.slots(0, count), self.flags, until)?;
            return Ok(Taken { messages: taken.messages * count, ..taken });
        }
        let mut all = Taken::default();
        while all.messages < count && all.left == 0 {
            let mut messages = 0;
            let mut bytes = 0;
            let is_taken = self.until_taken(until, &mut all.refused, || {
                (messages, bytes) = self.send_some(room, all.messages, count, self.flags)?;
                Ok(())
            })?;
            if !is_taken {
                break;
            }
            all.messages += messages;
            all.calls += messages;
            if messages > 0 && bytes < self.message_bytes {
                let rest = &room.slots(all.messages - 1, all.messages)[bytes..];
                let taken = self.send_until(rest, self.flags, until)?;
                all.left = if taken.messages > 0 { taken.left } else { rest.len() };
                all.refused += taken.refused;
                all.calls += taken.calls;
            }
        }
        Ok(all)
    }

    /// One call for the messages `from..to`. Returns how many were accepted, and how many bytes of the last one.
    pub(crate) fn send_some(
        &self,
        room: &mut Batch,
        from: usize,
        to: usize,
        flags: c_int,
    ) -> io::Result<(usize, usize)> {
        if !self.joins {
            return room.send(&self.socket, from, to, flags);
        }
        let bytes = sys::send(&self.socket, room.slots(from, to), flags)?;
        let messages = bytes.div_ceil(self.message_bytes);
        Ok((messages, bytes - messages.saturating_sub(1) * self.message_bytes))
    }

    /// Whether these messages are a GSO batch. One that fits a packet would be queued and shaped as one packet.
    pub(crate) fn is_gso_batch(&self, count: usize) -> bool {
        self.io == Io::Gso && count * self.message_bytes > self.packet_bytes
    }

    /// Repeats a call after EINTR and ENOBUFS, which it counts, and while there is no room. Returns whether it was
    /// taken.
    fn until_taken(
        &self,
        until: Nanos,
        refused: &mut u64,
        mut send: impl FnMut() -> io::Result<()>,
    ) -> io::Result<bool> {
        let mut since = None;
        loop {
            match send() {
                Ok(()) => return Ok(true),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if sys::is_out_of_buffers(&error) => {
                    *refused += 1;
                    std::thread::yield_now();
                    if until < Nanos::MAX && sys::now_ns() >= until {
                        return Ok(false);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let now = sys::now_ns();
                    if now >= until {
                        return Ok(false);
                    }
                    if now - *since.get_or_insert(now) > SEND_LIMIT.as_nanos() as Nanos {
                        let text = format!("the receiver read nothing for {} s", SEND_LIMIT.as_secs());
                        return Err(io::Error::new(io::ErrorKind::TimedOut, text));
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    /// Messages, including a partly sent last one.
    pub messages: usize,
    /// Bytes of the last message that were not taken.
    pub left: usize,
    pub calls: usize,
    /// Calls repeated after ENOBUFS.
    pub refused: u64,
}

fn counters(info: &mut TcpInfo) -> [&mut Option<u64>; 5] {
    let TcpInfo { total_retrans, data_segs_out, data_segs_in, bytes_sent, bytes_retrans, .. } = info;
    [total_retrans, data_segs_out, data_segs_in, bytes_sent, bytes_retrans]
}

/// TCP_INFO of all flows: counters are summed, other fields are the first flow's. `None` for datagrams.
pub(crate) fn tcp_total<'a>(channels: impl IntoIterator<Item = &'a MessageSocket>) -> Option<TcpInfo> {
    let mut channels = channels.into_iter();
    let mut total = read_tcp_info(channels.next()?)?;
    for channel in channels {
        let mut info = read_tcp_info(channel)?;
        for (sum, more) in counters(&mut total).into_iter().zip(counters(&mut info)) {
            *sum = sum.zip(*more).map(|(sum, more)| sum + more);
        }
        // The flows share a path, so the minimum over all flows is the path's minimum.
        total.min_rtt_us = total.min_rtt_us.into_iter().chain(info.min_rtt_us).min();
    }
    Some(total)
}

fn read_tcp_info(channel: &MessageSocket) -> Option<TcpInfo> {
    match channel.transport {
        Transport::Tcp => channel.tcp_info().ok(),
        Transport::Udp => None,
    }
}
