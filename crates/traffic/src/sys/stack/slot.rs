//! What a stack knows of one of its sockets.

use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp::CongestionControl;
use stacklab_model::{Family, Transport};
use std::net::SocketAddr;

pub(super) struct Slot {
    pub family: Family,
    pub transport: Transport,
    pub settings: SlotSettings,
    pub local: Option<SocketAddr>,
    pub peer: Option<SocketAddr>,
    pub state: SlotState,
}

pub(super) enum SlotState {
    /// Perhaps bound, and neither connected nor listening.
    Opened,
    Datagrams {
        handle: SocketHandle,
        /// Datagrams that were read, or were another peer's.
        taken: u64,
    },
    Listening {
        handles: Vec<SocketHandle>,
        backlog: usize,
    },
    Connection {
        handle: SocketHandle,
        /// Bytes that were given to the connection.
        queued: u64,
    },
}

#[derive(Clone)]
pub(super) struct SlotSettings {
    /// Whether closing resets the connection, and drops what was not sent.
    pub resets_on_close: bool,
    pub nodelay: bool,
    /// Bytes of each message that shares no segment.
    pub whole_message: usize,
    /// Bytes.
    pub send_buffer: usize,
    pub receive_buffer: usize,
    pub congestion_control: CongestionControl,
}

/// Send buffer of a connection, bytes: more than is on the way on a link of a testbed, and less than its queue holds,
/// since smoltcp by itself has no congestion control.
const TCP_SEND_BUFFER: usize = 32 << 10;
/// Largest receive buffer of a connection, bytes.
const MAX_TCP_RECEIVE_BUFFER: usize = 256 << 10;
/// Bytes of memory that the kernel takes for each byte of the smallest segments.
const MEMORY_OF_SMALL: usize = 14;
/// Receive buffer of datagrams, bytes: as the engine asks of every system.
const UDP_RECEIVE_BUFFER: usize = 8 << 20;
/// Send buffer of datagrams, bytes: they leave at once, unless the neighbour is not known yet.
const UDP_SEND_BUFFER: usize = 64 << 10;

impl Slot {
    /// A new socket's; `waiting_room` is the memory for frames that wait for the stack, bytes.
    pub(super) fn new(family: Family, transport: Transport, waiting_room: usize) -> Self {
        let window = (waiting_room / MEMORY_OF_SMALL).min(MAX_TCP_RECEIVE_BUFFER);
        let (send_buffer, receive_buffer) = match transport {
            Transport::Tcp => (TCP_SEND_BUFFER, window),
            Transport::Udp => (UDP_SEND_BUFFER, UDP_RECEIVE_BUFFER),
        };
        let settings = SlotSettings {
            resets_on_close: false,
            nodelay: false,
            whole_message: 1,
            send_buffer,
            receive_buffer,
            congestion_control: CongestionControl::None,
        };
        Slot { family, transport, settings, local: None, peer: None, state: SlotState::Opened }
    }

    pub(super) fn has_port(&self, port: u16) -> bool {
        self.local.is_some_and(|local| local.port() == port)
    }

    /// Whether no other socket may be bound to an address. Those of connections may be those of a listening socket.
    pub(super) fn takes(&self, transport: Transport, address: SocketAddr) -> bool {
        let is_connection = matches!(self.state, SlotState::Connection { .. });
        self.transport == transport && self.local == Some(address) && !is_connection
    }
}
