//! The end of a link as the stack's device: a packet socket, at an interface that the kernel's stack does not use.
//!
//! The kernel limits what waits in the queue of a link with a rate, as it does for its own sockets: then there is no
//! room, and the stack waits.

use crate::sys::linux::calls::{is_out_of_buffers, receive_now};
use crate::sys::stack::StackConfig;
use crate::sys::stack::counters::StackCounters;
use crate::sys::stack::packet_socket::{open_packet_socket, outgoing_bytes, take_drops};
use smoltcp::phy::{Checksum, Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;
use socket2::Socket;
use std::collections::VecDeque;
use std::io;

const ETHERNET_HEADER: usize = 14;
/// Receive buffer of the packet socket, bytes: a stack that was briefly not scheduled loses nothing of a flood.
const WAITING_ROOM: usize = 8 << 20;
/// Answers that may wait until the link has room.
const MAX_WAITING_FRAMES: usize = 1024;

pub(super) struct LinkEnd {
    pub socket: Socket,
    pub counters: StackCounters,
    /// Frames that the stack hears before those of the link.
    pub announced: Vec<Vec<u8>>,
    frame_bytes: usize,
    arrived: Box<[u8]>,
    outbox: Outbox,
}

impl LinkEnd {
    /// Opens the interface, which is there and up.
    pub(super) fn open(config: &StackConfig) -> io::Result<Self> {
        let socket = open_packet_socket(&config.interface, WAITING_ROOM).map_err(|error| {
            io::Error::new(error.kind(), format!("open a packet socket at {}: {error}", config.interface))
        })?;
        let frame_bytes = config.mtu as usize + ETHERNET_HEADER;
        Ok(LinkEnd {
            socket,
            counters: StackCounters::default(),
            announced: Vec::new(),
            frame_bytes,
            arrived: vec![0; frame_bytes].into_boxed_slice(),
            outbox: Outbox { room: vec![0; frame_bytes].into_boxed_slice(), waiting: VecDeque::new() },
        })
    }

    /// Bytes of memory of frames that have not left, as those that wait in the queue of a link with a rate.
    pub(super) fn unsent_bytes(&self) -> usize {
        let waiting: usize = self.outbox.waiting.iter().map(Vec::len).sum();
        outgoing_bytes(&self.socket).unwrap_or(0) + waiting
    }

    /// Counts what the link's end had no room for since the last call.
    pub(super) fn count_drops(&mut self) {
        self.counters.dropped += take_drops(&self.socket).unwrap_or(0);
    }

    /// Whether frames wait until the link has room for them.
    pub(super) fn is_full(&self) -> bool {
        !self.outbox.waiting.is_empty()
    }

    /// Tries to be rid of the frames that wait. Returns whether there is room for another one.
    pub(super) fn make_room(&mut self) -> bool {
        while let Some(frame) = self.outbox.waiting.front() {
            if !send_frame(frame, &self.socket, &mut self.counters) {
                return false;
            }
            self.outbox.waiting.pop_front();
        }
        true
    }
}

/// Where frames are written, and those that wait until the link has room for them.
struct Outbox {
    room: Box<[u8]>,
    waiting: VecDeque<Vec<u8>>,
}

impl Outbox {
    /// Gives a frame to the link, or keeps it until there is room: what arrives is answered all the same.
    fn send(&mut self, length: usize, socket: &Socket, counters: &mut StackCounters) {
        let frame = &self.room[..length];
        if !self.waiting.is_empty() || !send_frame(frame, socket, counters) {
            if self.waiting.len() < MAX_WAITING_FRAMES {
                self.waiting.push_back(frame.to_vec());
            } else {
                counters.refused += 1;
            }
        }
    }
}

/// Returns whether the link had room for a frame. One that it refuses is lost on the way, and counted.
fn send_frame(frame: &[u8], socket: &Socket, counters: &mut StackCounters) -> bool {
    match socket.send(frame) {
        Ok(_) => counters.count_departure(frame),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock || is_out_of_buffers(&error) => return false,
        Err(_) => counters.refused += 1,
    }
    true
}

pub(super) struct ArrivedFrame<'a>(&'a [u8]);

impl RxToken for ArrivedFrame<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(self.0)
    }
}

pub(super) struct Leaving<'a> {
    socket: &'a Socket,
    counters: &'a mut StackCounters,
    outbox: &'a mut Outbox,
}

impl TxToken for Leaving<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, write: F) -> R {
        let written = write(&mut self.outbox.room[..length]);
        self.outbox.send(length, self.socket, self.counters);
        written
    }
}

impl Device for LinkEnd {
    type RxToken<'a> = ArrivedFrame<'a>;
    type TxToken<'a> = Leaving<'a>;

    fn receive(&mut self, _: Instant) -> Option<(ArrivedFrame<'_>, Leaving<'_>)> {
        let length = match self.announced.pop() {
            Some(announced) => {
                self.arrived[..announced.len()].copy_from_slice(&announced);
                announced.len()
            }
            None => {
                let length = receive_now(&self.socket, &mut self.arrived).ok()?;
                self.counters.count_arrival(&self.arrived[..length]);
                length
            }
        };
        let leaving =
            Leaving { socket: &self.socket, counters: &mut self.counters, outbox: &mut self.outbox };
        Some((ArrivedFrame(&self.arrived[..length]), leaving))
    }

    fn transmit(&mut self, _: Instant) -> Option<Leaving<'_>> {
        if self.is_full() {
            return None;
        }
        Some(Leaving { socket: &self.socket, counters: &mut self.counters, outbox: &mut self.outbox })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = self.frame_bytes;
        // A veth pair passes memory, and a kernel at its other end leaves checksums out.
        capabilities.checksum.ipv4 = Checksum::Tx;
        capabilities.checksum.tcp = Checksum::Tx;
        capabilities.checksum.udp = Checksum::Tx;
        capabilities
    }
}
