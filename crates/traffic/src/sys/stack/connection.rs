//! Connections of a stack's sockets.

use crate::sys::stack::packets::StackState;
use crate::sys::stack::slot::{SlotSettings, SlotState};
use crate::sys::stack::socket::StackSocket;
use crate::sys::stack::would_block;
use crate::sys::{Interest, now_ns};
use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp::{RecvError, Socket, SocketBuffer, State as Tcp};
use smoltcp::socket::udp;
use smoltcp::wire::{IpEndpoint, IpListenEndpoint};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// A socket of TCP with these settings, as Linux has them by default: timestamps, window scaling, SACK.
pub(super) fn make_stream(settings: &SlotSettings) -> Socket<'static> {
    let received = SocketBuffer::new(vec![0; settings.receive_buffer]);
    let mut socket = Socket::new(received, SocketBuffer::new(vec![0; settings.send_buffer]));
    socket.set_congestion_control(settings.congestion_control);
    socket.set_nagle_enabled(!settings.nodelay);
    socket.set_tsval_generator(Some(|| (now_ns() / 1_000_000) as u32));
    socket
}

impl StackSocket {
    pub(super) fn connect_stream(&self, to: SocketAddr, limit: Duration) -> io::Result<()> {
        let handle = self.stack.lock().begin_connection(self.key, to)?;
        let connected = self.stack.wait(&[(self.key, Interest::Writable)], limit, |state| {
            match state.sockets.get::<Socket>(handle).state() {
                Tcp::SynSent | Tcp::SynReceived => would_block(),
                Tcp::Closed => Err(io::ErrorKind::ConnectionRefused.into()),
                _ => Ok(()),
            }
        });
        connected.map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
            _ => error,
        })
    }
}

impl StackState {
    fn begin_connection(&mut self, key: usize, to: SocketAddr) -> io::Result<SocketHandle> {
        let slot = self.slot(key);
        let local = slot.local.ok_or(io::ErrorKind::AddrNotAvailable)?;
        let mut socket = make_stream(&slot.settings);
        let from = IpListenEndpoint { addr: Some(local.ip().into()), port: local.port() };
        socket
            .connect(self.interface.context(), IpEndpoint::from(to), from)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error.to_string()))?;
        let handle = self.sockets.add(socket);
        let slot = self.slot(key);
        slot.peer = Some(to);
        slot.state = SlotState::Connection { handle, queued: 0 };
        self.end.counters.open_connection((local, to));
        self.send_packets();
        Ok(handle)
    }

    pub(super) fn connection(&mut self, key: usize) -> Option<SocketHandle> {
        match self.slot(key).state {
            SlotState::Connection { handle, .. } => Some(handle),
            _ => None,
        }
    }

    /// Whether a message would leave at once and whole: all before it has left, and the peer has room for it.
    fn leaves_whole(&mut self, key: usize, bytes: usize) -> bool {
        let slot = self.slot(key);
        let SlotState::Connection { handle, queued } = slot.state else { return false };
        let Some(ends) = slot.local.zip(slot.peer) else { return false };
        let socket = self.sockets.get::<Socket>(handle);
        let sent = self.end.counters.sent_segments(ends);
        // Nothing opens a window that is too small but what is sent into it.
        let has_window = sent.has_window(bytes) || socket.send_queue() == 0;
        let has_room = socket.send_capacity() - socket.send_queue() >= bytes.min(socket.send_capacity());
        queued <= sent.bytes_once() && has_window && has_room
    }

    /// Gives bytes to a connection. A whole message shares no segment: it is taken only where it leaves at once.
    /// Congestion control may split it all the same, since nobody can ask smoltcp for its window.
    pub(super) fn send_stream(&mut self, key: usize, message: &[u8], is_whole: bool) -> io::Result<usize> {
        let handle = self.connection(key).ok_or(io::ErrorKind::NotConnected)?;
        let has_place = !is_whole || self.leaves_whole(key, message.len());
        let socket = self.sockets.get_mut::<Socket>(handle);
        if !socket.may_send() {
            let reset = socket.state() == Tcp::Closed;
            return Err(if reset { io::ErrorKind::ConnectionReset } else { io::ErrorKind::BrokenPipe }.into());
        }
        if !has_place || socket.send_queue() == socket.send_capacity() {
            return would_block();
        }
        let Ok(taken) = socket.send_slice(message) else { return Err(io::ErrorKind::BrokenPipe.into()) };
        if let SlotState::Connection { queued, .. } = &mut self.slot(key).state {
            *queued += taken as u64;
        }
        self.send_packets();
        Ok(taken)
    }

    /// What a connection gives to a read, or to a peek; `WouldBlock` if nothing has arrived, 0 at its end.
    pub(super) fn read_stream(
        &mut self,
        key: usize,
        read: impl FnOnce(&mut Socket<'static>) -> Result<usize, RecvError>,
    ) -> io::Result<usize> {
        let handle = self.connection(key).ok_or(io::ErrorKind::NotConnected)?;
        let socket = self.sockets.get_mut::<Socket>(handle);
        if !socket.can_recv() && socket.may_recv() {
            return would_block();
        }
        match read(socket) {
            // The peer has closed its direction.
            Err(RecvError::Finished) => Ok(0),
            read => read.map_err(|_| io::ErrorKind::ConnectionReset.into()),
        }
    }

    pub(super) fn is_ready(&mut self, key: usize, what: Interest) -> bool {
        let slot = self.slot(key);
        match &slot.state {
            SlotState::Opened => false,
            SlotState::Listening { .. } => self.has_connection(key),
            SlotState::Datagrams { handle, .. } => {
                let handle = *handle;
                match what {
                    Interest::Readable => self.first_datagram(key).is_ok(),
                    Interest::Writable => {
                        self.make_room() && self.sockets.get::<udp::Socket>(handle).can_send()
                    }
                }
            }
            SlotState::Connection { handle, .. } => {
                let handle = *handle;
                let whole_message = slot.settings.whole_message;
                let is_sent = what == Interest::Readable || self.leaves_whole(key, whole_message);
                let socket = self.sockets.get::<Socket>(handle);
                match what {
                    Interest::Readable => socket.can_recv() || !socket.may_recv(),
                    Interest::Writable => !socket.may_send() || is_sent && socket.can_send(),
                }
            }
        }
    }
}
