//! A socket with a message size: what both loops work on through an [`Outbox`](crate::outbox::Outbox) and an
//! [`Inbox`](crate::inbox::Inbox).

use crate::error::{Attempt, EngineError};
use crate::gather;
use crate::sys::{self, Batch, SEND_LIMIT};
use crate::tune;
use socket2::{Domain, Protocol, Socket, Type};
use stacklab_model::{Framing, Io, Pacing, Probe, TcpInfo, Transport, TrialSpec};
use std::ffi::c_int;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// How long a connection may take to open.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// Messages of one call, where several may go.
const MOST_AT_ONCE: usize = 32;
/// The most that one send of a train of datagrams may hold, bytes.
const LONGEST_TRAIN: usize = 65_000;
/// Room for datagrams that wait to be read, bytes: several milliseconds of a flood, so that a receiver that was not
/// running for a moment loses nothing.
const WAITING_ROOM: usize = 8 << 20;

/// A connected socket that carries messages of one size.
pub struct Channel {
    /// The socket.
    pub socket: Socket,
    pub(crate) transport: Transport,
    pub(crate) message_bytes: usize,
    /// How messages get into the kernel: as asked, or the nearest that this socket can do.
    pub(crate) io: Io,
    /// Messages of one call at most.
    pub(crate) at_once: usize,
    /// Bytes that one packet of the path holds at most.
    pub(crate) packet_bytes: usize,
    /// Whether the kernel says when a datagram, or the last packet of a stream's receive, arrived; else it is when the receive
    /// that brought it returned.
    pub(crate) stamped: bool,
    /// Whether receives may be put off until several datagrams have come: waking for each costs more than receiving it.
    pub(crate) gathers: bool,
    /// Whether messages may share segments.
    pub(crate) joins: bool,
    /// Whether datagrams may arrive joined.
    pub(crate) joined: bool,
    /// Flags of the messages' sends; those of an end marker, behind which nothing comes, are plain or of a whole.
    pub(crate) flags: c_int,
    /// How long a receive polls before it sleeps.
    pub(crate) poll_ns: sys::Nanos,
}

/// Opens a socket of the trial's family and transport, bound to the host's own address, never mapped.
pub fn open(spec: &TrialSpec, address: IpAddr) -> Result<Socket, EngineError> {
    let (kind, protocol) = match spec.transport {
        Transport::Tcp => (Type::STREAM, Protocol::TCP),
        Transport::Udp => (Type::DGRAM, Protocol::UDP),
    };
    let address = SocketAddr::new(address, 0);
    let bound = || -> io::Result<Socket> {
        let socket = Socket::new(Domain::for_address(address), kind, Some(protocol))?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        tune::tune(&socket, spec)?;
        socket.bind(&address.into())?;
        Ok(socket)
    };
    bound().attempt(|| format!("open a {} socket on {address}", spec.transport))
}

impl Channel {
    /// Connects to the receiver.
    pub fn connect(spec: &TrialSpec, from: IpAddr, to: SocketAddr) -> Result<Self, EngineError> {
        let socket = open(spec, from)?;
        tune::toward(&socket, spec, to)
            .and_then(|to| socket.connect_timeout(&to, CONNECT_LIMIT))
            .and_then(|()| tune::pace(&socket, spec))
            .attempt(|| format!("connect {} from {from} to {to}", spec.transport))?;
        Channel::new(spec, socket)
    }

    /// Takes over a connected socket.
    pub fn new(spec: &TrialSpec, socket: Socket) -> Result<Self, EngineError> {
        let attempt = || format!("prepare a {} socket for {} I/O", spec.transport, spec.io);
        let message_bytes = spec.message_bytes as usize;
        let mut channel = Channel {
            socket,
            transport: spec.transport,
            message_bytes,
            io: spec.io,
            at_once: 1,
            packet_bytes: 0,
            stamped: false,
            gathers: false,
            joins: false,
            joined: false,
            flags: sys::SEND_PLAIN,
            poll_ns: spec.poll_ns,
        };
        channel.prepare(spec).attempt(attempt)?;
        Ok(channel)
    }

    fn prepare(&mut self, spec: &TrialSpec) -> io::Result<()> {
        let socket = &self.socket;
        sys::keep_time(socket)?;
        let headers = (spec.family.header_bytes() + spec.transport.header_bytes()) as usize;
        // A receiver of several flows has no peer, and so no path; it sends nothing.
        let mtu = sys::path_mtu(socket, spec.family).map_or(usize::MAX, |mtu| mtu as usize);
        self.packet_bytes = mtu.saturating_sub(headers);
        if spec.transport == Transport::Tcp {
            tune::tune_connected(socket, spec)?;
            if spec.framing == Framing::Segment {
                self.flags = sys::SEND_WHOLE;
            }
        }
        // A message that waits for its turn or its answer goes alone.
        if spec.probe.pacing == Pacing::Flood && spec.io != Io::Plain && sys::SEVERAL_A_CALL {
            self.at_once = MOST_AT_ONCE.min(LONGEST_TRAIN / self.message_bytes).max(1);
        }
        if self.io == Io::Zerocopy {
            sys::allow_zerocopy(socket)?;
            self.flags |= sys::SEND_ZEROCOPY;
        }
        if self.io == Io::Segment {
            // A datagram that takes several packets cannot be one of a train.
            if self.message_bytes > self.packet_bytes || self.at_once < 2 {
                self.io = Io::Batch;
            } else {
                sys::segment_sends(socket, self.message_bytes)?;
            }
        }
        if spec.transport == Transport::Tcp && spec.probe.probe == Probe::Stream {
            self.stamped = sys::stamp_arrivals(socket).is_ok();
            self.gathers = self.stamped && gather::gathers(spec);
        }
        if self.io == Io::Batch && !sys::SEVERAL_A_CALL {
            self.io = Io::Plain;
        }
        self.joins = tune::joins(spec);
        if self.joins && self.at_once > 1 {
            self.flags = sys::SEND_MORE;
        }
        if spec.transport == Transport::Udp && spec.probe.probe == Probe::Stream {
            if spec.tuning.receive_buffer.is_none() {
                sys::receive_room(socket, WAITING_ROOM)?;
            }
            self.stamped = sys::stamp_arrivals(socket).is_ok();
            // The kernel has said when each arrived, so that nothing is lost by looking later.
            self.gathers = self.stamped && gather::gathers(spec);
            self.joined = self.io == Io::Segment
                && spec.framing == Framing::Message
                && sys::join_receives(socket).is_ok();
        }
        Ok(())
    }

    /// Sends one whole message, or a train of them. Gives how often the kernel had no buffer for it and it was tried
    /// again.
    pub fn send(&self, message: &[u8]) -> io::Result<u64> {
        self.send_with(message, self.flags)
    }

    /// Sends a message behind which nothing comes. What waited for more to fill a segment leaves with it: it would wait for
    /// the other host's delayed acknowledgement otherwise, and the flood would seem to last as long.
    pub fn send_last(&self, message: &[u8]) -> io::Result<u64> {
        if !self.joins {
            return self.send(message);
        }
        self.socket.set_tcp_nodelay(true)?;
        let refused = self.send_with(message, sys::SEND_PLAIN)?;
        self.socket.set_tcp_nodelay(false)?;
        Ok(refused)
    }

    fn send_with(&self, message: &[u8], flags: c_int) -> io::Result<u64> {
        let mut left = message;
        let mut refused = 0;
        while !left.is_empty() {
            refused += self.until_taken(|| {
                let sent = sys::send(&self.socket, left, flags)?;
                left = &left[sent..];
                Ok(())
            })?;
        }
        Ok(refused)
    }

    /// Sends the first `count` messages of a room whole. Gives how often the kernel had no buffer and it was tried again.
    pub(crate) fn send_all(&self, room: &mut Batch, count: usize) -> io::Result<u64> {
        if count == 1 || self.is_train(count) {
            return self.send(room.slots(0, count));
        }
        let (mut from, mut refused) = (0, 0);
        while from < count {
            refused += self.until_taken(|| {
                let (taken, bytes) = room.send(&self.socket, from, count, self.flags)?;
                from += taken;
                if taken > 0 && bytes < self.message_bytes {
                    self.send(&room.slots(from - 1, from)[bytes..])?;
                }
                Ok(())
            })?;
        }
        Ok(refused)
    }

    /// Whether so many messages go as one packet that the kernel cuts. One that would fit the link uncut is none: it
    /// would not be cut before it is queued, and a shaper would count it as one.
    pub(crate) fn is_train(&self, count: usize) -> bool {
        self.io == Io::Segment && count * self.message_bytes > self.packet_bytes
    }

    /// Calls again what was interrupted or found no buffer; gives how often it was the latter.
    pub(crate) fn until_taken(&self, mut send: impl FnMut() -> io::Result<()>) -> io::Result<u64> {
        let mut refused = 0;
        loop {
            match send() {
                Ok(()) => return Ok(refused),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if sys::is_out_of_buffers(&error) => {
                    refused += 1;
                    std::thread::yield_now();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let text = format!("the receiver took nothing for {} s", SEND_LIMIT.as_secs());
                    return Err(io::Error::new(io::ErrorKind::TimedOut, text));
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// TCP_INFO of all flows: counts added up, the rest the first one's. `None` of datagrams.
pub fn tcp_total(channels: &[Channel]) -> Option<TcpInfo> {
    let info = |channel: &Channel| match channel.transport {
        Transport::Tcp => sys::tcp_info(&channel.socket).ok(),
        Transport::Udp => None,
    };
    let sum = |a: Option<u64>, b: Option<u64>| Some(a? + b?);
    channels.iter().map(info).reduce(|total, info| {
        let (total, info) = (total?, info?);
        Some(TcpInfo {
            total_retrans: sum(total.total_retrans, info.total_retrans),
            data_segs_out: sum(total.data_segs_out, info.data_segs_out),
            data_segs_in: sum(total.data_segs_in, info.data_segs_in),
            bytes_sent: sum(total.bytes_sent, info.bytes_sent),
            bytes_retrans: sum(total.bytes_retrans, info.bytes_retrans),
            // They share a path, so that the least of any is the path's.
            min_rtt_us: total.min_rtt_us.into_iter().chain(info.min_rtt_us).min(),
            ..total
        })
    })?
}
