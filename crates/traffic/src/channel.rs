//! A socket with a message size: what both loops work on.

use crate::error::{Attempt, EngineError};
use crate::sys;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use stacklab_model::{Framing, Transport, TrialSpec};
use std::ffi::c_int;
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// How long a receive waits before its sink may look at the time.
pub const RECEIVE_TICK: Duration = Duration::from_millis(20);
/// How long a send may block before the receiver counts as stuck.
const SEND_LIMIT: Duration = Duration::from_secs(30);
/// How long a connection may take to open.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// Bytes read at once from a stream.
const STREAM_BUFFER: usize = 256 * 1024;

/// A connected socket that carries messages of one size.
pub struct Channel {
    /// The socket.
    pub socket: Socket,
    transport: Transport,
    message_bytes: usize,
    flags: c_int,
    /// How long a receive polls before it sleeps.
    poll_ns: sys::Nanos,
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
        let prepared = || -> io::Result<()> {
            socket.set_read_timeout(Some(RECEIVE_TICK))?;
            socket.set_write_timeout(Some(SEND_LIMIT))?;
            if spec.transport == Transport::Tcp {
                socket.set_tcp_nodelay(true)?;
            }
            Ok(())
        };
        prepared().attempt(|| format!("prepare a {} socket", spec.transport))?;
        let flags = if spec.transport == Transport::Tcp && spec.framing == Framing::Segment {
            sys::SEND_WHOLE
        } else {
            sys::SEND_PLAIN
        };
        let message_bytes = spec.message_bytes as usize;
        Ok(Channel { socket, transport: spec.transport, message_bytes, flags, poll_ns: spec.poll_ns })
    }

    /// Sends one whole message. Gives how often the kernel had no buffer for it and it was tried again.
    pub fn send(&self, message: &[u8]) -> io::Result<u64> {
        let mut left = message;
        let mut refused = 0;
        while !left.is_empty() {
            match self.socket.send_with_flags(left, self.flags) {
                Ok(sent) => left = &left[sent..],
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
        Ok(refused)
    }

    /// A place for what arrives.
    pub fn inbox(&self) -> Inbox<'_> {
        // One byte more than a datagram of the right size shows one that is too long.
        let room = match self.transport {
            Transport::Tcp => STREAM_BUFFER.max(2 * self.message_bytes),
            Transport::Udp => self.message_bytes + 1,
        };
        Inbox { channel: self, buffer: vec![0; room].into_boxed_slice(), start: 0, end: 0 }
    }
}

/// What one receive brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filled {
    /// Bytes to look at.
    Bytes,
    /// Nothing within [`RECEIVE_TICK`].
    Nothing,
    /// The peer has closed.
    Closed,
}

/// Bytes received and not yet looked at.
pub struct Inbox<'a> {
    channel: &'a Channel,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Inbox<'_> {
    /// Receives once.
    pub fn fill(&mut self) -> io::Result<Filled> {
        match self.channel.transport {
            Transport::Udp => (self.start, self.end) = (0, 0),
            // Move a message's first part to the front only when its rest would not fit behind it.
            Transport::Tcp
                if self.buffer.len() - self.start < self.channel.message_bytes || self.start == self.end =>
            {
                self.buffer.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.end - self.start);
            }
            Transport::Tcp => {}
        }
        loop {
            return match self.receive() {
                Ok(0) if self.channel.transport == Transport::Tcp => Ok(Filled::Closed),
                Ok(bytes) => {
                    self.end += bytes;
                    Ok(Filled::Bytes)
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Filled::Nothing),
                // A datagram's port that nobody holds any more.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(Filled::Closed),
                Err(error) => Err(error),
            };
        }
    }

    /// Receives what there is, polling for a while and then sleeping until something comes.
    fn receive(&mut self) -> io::Result<usize> {
        let Channel { socket, poll_ns, .. } = self.channel;
        let room = &mut self.buffer[self.end..];
        if *poll_ns > 0 {
            let start = sys::now_ns();
            while sys::now_ns() - start < *poll_ns {
                match sys::receive_now(socket, room) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::hint::spin_loop(),
                    received => return received,
                }
            }
        }
        (&*socket).read(room)
    }

    /// The next whole message (of a datagram, whatever its length), or `None` when more must be received first.
    pub fn next(&mut self) -> Option<&mut [u8]> {
        let available = self.end - self.start;
        let length = match self.channel.transport {
            Transport::Udp if available > 0 => available,
            Transport::Tcp if available >= self.channel.message_bytes => self.channel.message_bytes,
            _ => return None,
        };
        let start = self.start;
        self.start += length;
        Some(&mut self.buffer[start..start + length])
    }
}
