//! A socket with a message size: what both loops work on through an [`Outbox`](crate::outbox::Outbox) and an
//! [`Inbox`](crate::inbox::Inbox).

use crate::error::{Attempt, EngineError};
use crate::sys;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use stacklab_model::{Framing, Io, Pacing, Probe, Transport, TrialSpec};
use std::ffi::c_int;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// How long a receive waits before its sink may look at the time.
pub const RECEIVE_TICK: Duration = Duration::from_millis(20);
/// How long a send may block before the receiver counts as stuck.
const SEND_LIMIT: Duration = Duration::from_secs(30);
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
    /// Whether the kernel says when a datagram arrived; else it is when the receive that brought it returned.
    pub(crate) stamped: bool,
    /// Whether datagrams may arrive joined.
    pub(crate) joined: bool,
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
        socket.bind(&address.into())?;
        Ok(socket)
    };
    bound().attempt(|| format!("open a {} socket on {address}", spec.transport))
}

impl Channel {
    /// Connects to the receiver.
    pub fn connect(spec: &TrialSpec, from: IpAddr, to: SocketAddr) -> Result<Self, EngineError> {
        let socket = open(spec, from)?;
        socket
            .connect_timeout(&SockAddr::from(to), CONNECT_LIMIT)
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
            joined: false,
            flags: sys::SEND_PLAIN,
            poll_ns: spec.poll_ns,
        };
        channel.prepare(spec).attempt(attempt)?;
        Ok(channel)
    }

    fn prepare(&mut self, spec: &TrialSpec) -> io::Result<()> {
        let socket = &self.socket;
        socket.set_read_timeout(Some(RECEIVE_TICK))?;
        socket.set_write_timeout(Some(SEND_LIMIT))?;
        let headers = (spec.family.header_bytes() + spec.transport.header_bytes()) as usize;
        self.packet_bytes = (sys::path_mtu(socket, spec.family)? as usize).saturating_sub(headers);
        if spec.transport == Transport::Tcp {
            socket.set_tcp_nodelay(true)?;
            if spec.framing == Framing::Segment {
                self.flags = sys::SEND_WHOLE;
            }
        }
        // A message that waits for its turn or its answer goes alone.
        if spec.probe.pacing == Pacing::Flood && spec.io != Io::Plain {
            self.at_once = MOST_AT_ONCE.min(LONGEST_TRAIN / self.message_bytes).max(1);
        }
        if self.io == Io::Segment {
            // A datagram that takes several packets cannot be one of a train.
            if self.message_bytes > self.packet_bytes || self.at_once < 2 {
                self.io = Io::Batch;
            } else {
                sys::segment_sends(socket, self.message_bytes)?;
            }
        }
        if spec.transport == Transport::Udp && spec.probe.probe == Probe::Stream {
            sys::receive_room(socket, WAITING_ROOM)?;
            self.stamped = sys::stamp_arrivals(socket).is_ok();
            self.joined = self.io == Io::Segment
                && spec.framing == Framing::Message
                && sys::join_receives(socket).is_ok();
        }
        Ok(())
    }

    /// Sends one whole message, or a train of them. Gives how often the kernel had no buffer for it and it was tried
    /// again.
    pub fn send(&self, message: &[u8]) -> io::Result<u64> {
        let mut left = message;
        let mut refused = 0;
        while !left.is_empty() {
            refused += self.until_taken(|| {
                let sent = self.socket.send_with_flags(left, self.flags)?;
                left = &left[sent..];
                Ok(())
            })?;
        }
        Ok(refused)
    }

    /// Calls again what was interrupted or found no buffer; gives how often it was the latter.
    pub(crate) fn until_taken(&self, mut send: impl FnMut() -> io::Result<()>) -> io::Result<u64> {
        let mut refused = 0;
        loop {
            match send() {
                Ok(()) => return Ok(refused),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
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
