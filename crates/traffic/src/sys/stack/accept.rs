//! Listening. A listening socket of smoltcp becomes the connection, so some more than those in use listen.

use crate::sys::stack::connection::make_stream;
use crate::sys::stack::datagram::socket_addr;
use crate::sys::stack::packets::StackState;
use crate::sys::stack::slot::{Slot, SlotSettings, SlotState};
use crate::sys::stack::would_block;
use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp::{Socket, State as Tcp};
use smoltcp::wire::IpListenEndpoint;
use std::io;
use std::net::SocketAddr;

impl StackState {
    pub(super) fn listen(&mut self, key: usize, backlog: usize) -> io::Result<()> {
        let slot = self.slot(key);
        let local = slot.local.ok_or(io::ErrorKind::InvalidInput)?;
        let settings = slot.settings.clone();
        let first = self.add_listener(local, &settings)?;
        self.slot(key).state = SlotState::Listening { handles: vec![first], backlog };
        self.end.counters.listen(local);
        Ok(())
    }

    fn add_listener(&mut self, local: SocketAddr, settings: &SlotSettings) -> io::Result<SocketHandle> {
        let mut socket = make_stream(settings);
        let at = IpListenEndpoint { addr: Some(local.ip().into()), port: local.port() };
        socket.listen(at).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error.to_string()))?;
        Ok(self.sockets.add(socket))
    }

    /// Has as many sockets listen for each listening one as are to be spare.
    pub(super) fn refill_listeners(&mut self, spare: usize) {
        for key in 0..self.slots.len() {
            while let Some((local, settings)) = self.lacks_listener(key, spare) {
                let Ok(added) = self.add_listener(local, &settings) else { break };
                if let SlotState::Listening { handles, .. } = &mut self.slot(key).state {
                    handles.push(added);
                }
            }
        }
    }

    /// Address and settings of a listening socket for which fewer listen than are to be spare.
    fn lacks_listener(&self, key: usize, spare: usize) -> Option<(SocketAddr, SlotSettings)> {
        let Slot { local, settings, state, .. } = self.slots[key].as_ref()?;
        let SlotState::Listening { handles, backlog } = state else { return None };
        let listening = handles.iter().filter(|handle| self.sockets.get::<Socket>(**handle).is_listening());
        if listening.count() >= spare || handles.len() > *backlog {
            return None;
        }
        Some(((*local)?, settings.clone()))
    }

    pub(super) fn has_connection(&mut self, key: usize) -> bool {
        self.find_connection(key).is_some()
    }

    /// The place of a connection that was opened, among the sockets of a listening one.
    fn find_connection(&mut self, key: usize) -> Option<usize> {
        let Self { slots, sockets, .. } = self;
        let SlotState::Listening { handles, .. } = &mut slots[key].as_mut()?.state else { return None };
        // Those that their openers reset are gone.
        handles.retain(|handle| {
            let is_closed = sockets.get::<Socket>(*handle).state() == Tcp::Closed;
            if is_closed {
                sockets.remove(*handle);
            }
            !is_closed
        });
        handles.iter().position(|handle| {
            !matches!(sockets.get::<Socket>(*handle).state(), Tcp::Listen | Tcp::SynReceived)
        })
    }

    /// A connection that was opened to a listening socket, as the slot of a new one, and its peer.
    pub(super) fn accept(&mut self, key: usize) -> io::Result<(Slot, SocketAddr)> {
        let Some(place) = self.find_connection(key) else {
            return would_block();
        };
        let SlotState::Listening { handles, .. } = &mut self.slot(key).state else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let handle = handles.remove(place);
        let peer = self.sockets.get::<Socket>(handle).remote_endpoint().map(socket_addr);
        let peer = peer.ok_or(io::ErrorKind::ConnectionAborted)?;
        let listening = self.slot(key);
        let slot = Slot {
            family: listening.family,
            transport: listening.transport,
            settings: listening.settings.clone(),
            local: listening.local,
            peer: Some(peer),
            state: SlotState::Connection { handle, queued: 0 },
        };
        if let Some(local) = slot.local {
            self.end.counters.accept_connection((local, peer));
        }
        Ok((slot, peer))
    }
}
