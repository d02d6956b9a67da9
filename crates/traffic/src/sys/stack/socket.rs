//! A socket of a stack, with the calls that the engine makes of a kernel's.

use crate::sys::stack::packets::{Stack, StackState};
use crate::sys::stack::slot::Slot;
use crate::sys::stack::{lacks, would_block};
use crate::sys::{Interest, Nanos};
use smoltcp::socket::tcp;
use stacklab_model::{Family, Transport};
use std::ffi::c_int;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// As long as a kernel waits where no limit is set.
const NO_TIMEOUT_NS: Nanos = 3_600_000_000_000;

pub(crate) struct StackSocket {
    pub(super) stack: Arc<Stack>,
    pub(super) key: usize,
    pub(super) family: Family,
    pub(super) transport: Transport,
    // Beside the stack: each call reads one before it waits for the stack.
    read_timeout_ns: AtomicU64,
    write_timeout_ns: AtomicU64,
}

impl Drop for StackSocket {
    fn drop(&mut self) {
        self.stack.lock().remove_slot(self.key);
    }
}

impl StackSocket {
    pub(crate) fn new(stack: &Arc<Stack>, family: Family, transport: Transport) -> Self {
        StackSocket::of(stack, Slot::new(family, transport, stack.waiting_room))
    }

    fn of(stack: &Arc<Stack>, slot: Slot) -> Self {
        let family = slot.family;
        let transport = slot.transport;
        let key = stack.lock().add_slot(slot);
        StackSocket {
            stack: Arc::clone(stack),
            key,
            family,
            transport,
            read_timeout_ns: AtomicU64::new(NO_TIMEOUT_NS),
            write_timeout_ns: AtomicU64::new(NO_TIMEOUT_NS),
        }
    }

    fn readable(&self) -> [(usize, Interest); 1] {
        [(self.key, Interest::Readable)]
    }

    pub(crate) fn transport(&self) -> Transport {
        self.transport
    }

    /// Identifies it among those of the stack.
    pub(crate) fn key(&self) -> usize {
        self.key
    }

    /// Binds it to one of the stack's addresses; port 0 is one that is free.
    pub(crate) fn bind(&self, address: SocketAddr) -> io::Result<()> {
        if address.ip().to_canonical() != address.ip() {
            return Err(lacks("IPv4 addresses at IPv6 sockets"));
        }
        if !self.stack.holds(address.ip()) || Family::of(address.ip()) != self.family {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        }
        let mut state = self.stack.lock();
        let mut local = address;
        if address.port() == 0 {
            local.set_port(state.choose_port()?);
        }
        if state.slots.iter().flatten().any(|slot| slot.takes(self.transport, local)) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        state.slot(self.key).local = Some(local);
        match self.transport {
            Transport::Tcp => Ok(()),
            Transport::Udp => state.open_datagrams(self.key, local),
        }
    }

    pub(crate) fn connect(&self, to: SocketAddr, limit: Duration) -> io::Result<()> {
        match self.transport {
            Transport::Tcp => self.connect_stream(to, limit),
            Transport::Udp => {
                self.stack.lock().slot(self.key).peer = Some(to);
                Ok(())
            }
        }
    }

    pub(crate) fn listen(&self, backlog: usize) -> io::Result<()> {
        self.stack.lock().listen(self.key, backlog)
    }

    /// A connection that was opened to this listening socket, and its peer; `WouldBlock` after the read timeout.
    pub(crate) fn accept(&self) -> io::Result<(StackSocket, SocketAddr)> {
        let limit = self.read_timeout();
        let (slot, peer) = self.stack.wait(&self.readable(), limit, |state| state.accept(self.key))?;
        Ok((StackSocket::of(&self.stack, slot), peer))
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.stack.lock().slot(self.key).local.ok_or_else(|| io::ErrorKind::InvalidInput.into())
    }

    pub(crate) fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.stack.lock().slot(self.key).peer.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    pub(crate) fn shutdown(&self) -> io::Result<()> {
        let mut state = self.stack.lock();
        let Some(handle) = state.connection(self.key) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        state.sockets.get_mut::<tcp::Socket>(handle).close();
        state.send_packets();
        Ok(())
    }

    pub(crate) fn set_linger(&self, linger: Option<Duration>) {
        self.stack.lock().slot(self.key).settings.resets_on_close = linger == Some(Duration::ZERO);
    }

    pub(crate) fn set_read_timeout(&self, limit: Option<Duration>) {
        set_timeout(&self.read_timeout_ns, limit);
    }

    pub(crate) fn set_write_timeout(&self, limit: Option<Duration>) {
        set_timeout(&self.write_timeout_ns, limit);
    }

    pub(crate) fn read_timeout(&self) -> Duration {
        Duration::from_nanos(self.read_timeout_ns.load(Ordering::Relaxed))
    }

    pub(crate) fn write_timeout(&self) -> Duration {
        Duration::from_nanos(self.write_timeout_ns.load(Ordering::Relaxed))
    }

    /// Sends a datagram, or as much as fits of a stream; `WouldBlock` after the limit.
    pub(crate) fn send(&self, message: &[u8], flags: c_int, limit: Duration) -> io::Result<usize> {
        self.stack.wait(&[(self.key, Interest::Writable)], limit, |state| match self.transport {
            Transport::Tcp => state.send_stream(self.key, message, flags & libc::MSG_EOR != 0),
            Transport::Udp => state.send_datagram(self.key, message, self.stack.config.mtu),
        })
    }

    /// Receives a datagram, of which the rest that does not fit is lost, or what has arrived of a stream; 0 at its end.
    /// Returns the whole length of a datagram. `WouldBlock` after the limit.
    pub(crate) fn receive(&self, room: &mut [u8], limit: Duration) -> io::Result<usize> {
        self.stack.wait(&self.readable(), limit, |state| match self.transport {
            Transport::Tcp => state.read_stream(self.key, |socket| socket.recv_slice(room)),
            Transport::Udp => state.receive_datagram(self.key, room),
        })
    }

    /// Reads what waits, and leaves it there. `WouldBlock` if nothing does.
    pub(crate) fn peek(&self, room: &mut [u8]) -> io::Result<usize> {
        self.stack.wait(&self.readable(), Duration::ZERO, |state| match self.transport {
            Transport::Tcp => state.read_stream(self.key, |socket| socket.peek_slice(room)),
            Transport::Udp => {
                let (datagram, _) = state.first_datagram(self.key)?;
                let count = room.len().min(datagram.len());
                room[..count].copy_from_slice(&datagram[..count]);
                Ok(count)
            }
        })
    }

    /// Who sent the next datagram, which stays; `WouldBlock` after the read timeout.
    pub(crate) fn peek_sender(&self) -> io::Result<SocketAddr> {
        let limit = self.read_timeout();
        self.stack.wait(&self.readable(), limit, |state| state.first_datagram(self.key).map(|(_, from)| from))
    }

    /// Waits until one of these sockets is ready. Returns of each whether it is.
    pub(crate) fn await_ready(
        stack: &Stack,
        sockets: &[(usize, Interest)],
        limit: Duration,
    ) -> io::Result<Vec<bool>> {
        let mut found = vec![false; sockets.len()];
        let waited = stack.wait(sockets, limit, |state: &mut StackState| {
            for (place, (key, what)) in sockets.iter().enumerate() {
                found[place] = state.is_ready(*key, *what);
                // They share the room at the link, which the first one takes: whoever asks again asks for the others.
                if found[place] && *what == Interest::Writable {
                    break;
                }
            }
            if found.contains(&true) { Ok(()) } else { would_block() }
        });
        match waited {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(found),
        }
    }
}

fn set_timeout(timeout_ns: &AtomicU64, limit: Option<Duration>) {
    timeout_ns.store(limit.map_or(NO_TIMEOUT_NS, |limit| limit.as_nanos() as Nanos), Ordering::Relaxed);
}
