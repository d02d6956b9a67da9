//! Datagrams of a stack's sockets.

use crate::sys::stack::packets::StackState;
use crate::sys::stack::slot::SlotState;
use crate::sys::stack::would_block;
use smoltcp::socket::udp::{PacketBuffer, PacketMetadata, SendError, Socket};
use smoltcp::wire::{IpEndpoint, IpListenEndpoint};
use stacklab_model::Transport;
use std::io;
use std::net::SocketAddr;

/// Bytes of datagrams for each place of a buffer: smaller ones fill the places first.
const SMALL: usize = 1024;

fn buffer(bytes: usize) -> PacketBuffer<'static> {
    PacketBuffer::new(vec![PacketMetadata::EMPTY; (bytes / SMALL).max(16)], vec![0; bytes])
}

pub(super) fn socket_addr(endpoint: IpEndpoint) -> SocketAddr {
    SocketAddr::new(endpoint.addr.into(), endpoint.port)
}

impl StackState {
    pub(super) fn open_datagrams(&mut self, key: usize, local: SocketAddr) -> io::Result<()> {
        let settings = &self.slot(key).settings;
        let mut socket = Socket::new(buffer(settings.receive_buffer), buffer(settings.send_buffer));
        let at = IpListenEndpoint { addr: Some(local.ip().into()), port: local.port() };
        socket.bind(at).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error.to_string()))?;
        let handle = self.sockets.add(socket);
        let slot = self.slot(key);
        slot.state = SlotState::Datagrams { handle, taken: 0 };
        let family = slot.family;
        self.end.counters.open_port(family, local.port());
        Ok(())
    }

    pub(super) fn send_datagram(&mut self, key: usize, message: &[u8], mtu: u32) -> io::Result<usize> {
        let slot = self.slot(key);
        let headers = slot.family.header_bytes() + Transport::Udp.header_bytes();
        let SlotState::Datagrams { handle, .. } = slot.state else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let peer = slot.peer.ok_or(io::ErrorKind::NotConnected)?;
        let most = mtu.saturating_sub(headers) as usize;
        if message.len() > most {
            let length = message.len();
            let text = format!(
                "smoltcp does not fragment: a datagram holds at most {most} bytes here, and this one has {length}"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        // The stack gives the link to the first of its sockets that has something: none has, and who calls takes turns.
        if !self.make_room() {
            return would_block();
        }
        let sent = self.sockets.get_mut::<Socket>(handle).send_slice(message, IpEndpoint::from(peer));
        match sent {
            Ok(()) => {
                self.send_packets();
                Ok(message.len())
            }
            Err(SendError::BufferFull) => would_block(),
            Err(error @ SendError::Unaddressable) => {
                Err(io::Error::new(io::ErrorKind::InvalidInput, error.to_string()))
            }
        }
    }

    /// The next datagram of the socket's peer, or of anybody if it has none, and its sender. Others are dropped.
    pub(super) fn first_datagram(&mut self, key: usize) -> io::Result<(&[u8], SocketAddr)> {
        let slot = self.slots[key].as_mut().expect("a socket's slot lasts as long as the socket");
        let SlotState::Datagrams { handle, taken } = &mut slot.state else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let socket = self.sockets.get_mut::<Socket>(*handle);
        loop {
            let Ok((_, from)) = socket.peek() else { return would_block() };
            let from = socket_addr(from.endpoint);
            if slot.peer.is_none_or(|peer| peer == from) {
                break;
            }
            let _ = socket.recv();
            *taken += 1;
        }
        match socket.peek() {
            Ok((datagram, from)) => Ok((datagram, socket_addr(from.endpoint))),
            Err(_) => would_block(),
        }
    }

    pub(super) fn receive_datagram(&mut self, key: usize, room: &mut [u8]) -> io::Result<usize> {
        let (datagram, _) = self.first_datagram(key)?;
        let length = datagram.len();
        let count = length.min(room.len());
        room[..count].copy_from_slice(&datagram[..count]);
        if let SlotState::Datagrams { handle, taken } = &mut self.slot(key).state {
            *taken += 1;
            let handle = *handle;
            let _ = self.sockets.get_mut::<Socket>(handle).recv();
        }
        Ok(length)
    }
}
