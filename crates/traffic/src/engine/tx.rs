//! Send buffers: messages to the kernel, over one or several flows.

use crate::engine::allowance::{Allowance, Burst};
use crate::engine::destinations::Destinations;
use crate::engine::header::Header;
use crate::engine::socket::{MessageSocket, Taken};
use crate::engine::zerocopy::Zerocopy;
use crate::sys::{self, Batch, Interest, Nanos, RECEIVE_TICK, Ready};
use stacklab_model::{Io, Pacing};
use std::io;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Buffers used in turn with MSG_ZEROCOPY until the kernel completes each one.
const ZEROCOPY_ROOMS: usize = 8;

/// A shorter wait for room is not worth a call.
const MIN_WAIT_NS: Nanos = 1_000_000;

pub(crate) struct TxBatch<'a> {
    flows: Vec<TxFlow<'a>>,
    first: u16,
    rooms: Vec<Batch>,
    room: usize,
    /// Writability of several flows; a single one blocks in its sends.
    ready: Option<Ready>,
    zerocopy: Option<Zerocopy>,
    writer: Option<HeaderWriter<'a>>,
    /// Where each datagram goes, if not all go to the receiver's own address.
    destinations: Option<Destinations>,
    /// What all senders of the agent together may send, if that has a limit.
    allowance: Option<&'a Allowance>,
    until_ns: Nanos,
    /// Whether a flow may have the rest of a message.
    has_rests: bool,
    /// Ready flows that are not used while others send their rests.
    held: Vec<usize>,
}

/// Writes the header of another protocol than the probe's own.
pub(crate) type HeaderWriter<'a> = &'a dyn Fn(&Header, &mut [u8]);

struct TxFlow<'a> {
    channel: &'a MessageSocket,
    messages: u64,
    /// A partly sent message: its header and how many bytes remain.
    rest: Option<(Header, usize)>,
    /// Bytes of the end marker that the kernel has taken.
    marker_bytes: usize,
}

/// How a flow ended, bytes: what the kernel has not taken of its last message, and what it has of the end marker.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FlowEnd {
    pub rest: usize,
    pub marker: usize,
}

impl<'a> TxBatch<'a> {
    /// Buffers for the channels of one trial, from flow `first` on. Several flows share one and cannot use
    /// MSG_ZEROCOPY.
    pub(crate) fn new(channels: &'a [MessageSocket], first: u16) -> io::Result<Self> {
        let channel = &channels[0];
        let count = if channel.io == Io::Zerocopy { ZEROCOPY_ROOMS } else { 1 };
        let rooms = (0..count).map(|_| room(channel.at_once, channel.message_bytes)).collect();
        let sockets = channels.iter().map(|channel| &channel.socket);
        Ok(TxBatch {
            flows: channels
                .iter()
                .map(|channel| TxFlow { channel, messages: 0, rest: None, marker_bytes: 0 })
                .collect(),
            first,
            rooms,
            room: 0,
            ready: (channels.len() > 1).then(|| Ready::watch(sockets, Interest::Writable)).transpose()?,
            zerocopy: (channel.io == Io::Zerocopy).then(|| Zerocopy::new(count)),
            writer: None,
            destinations: None,
            allowance: None,
            until_ns: Nanos::MAX,
            has_rests: false,
            held: Vec::with_capacity(channels.len()),
        })
    }

    /// The same for whole datagrams with another protocol's header, without end markers.
    pub(crate) fn with_header(self, writer: HeaderWriter<'a>) -> Self {
        TxBatch { writer: Some(writer), ..self }
    }

    /// The same for datagrams of one flow to these destinations. End markers go to the receiver's own address.
    pub(crate) fn spread_over(mut self, destinations: Option<Destinations>) -> Self {
        if destinations.is_some() {
            self.rooms.iter_mut().for_each(Batch::keep_addresses);
        }
        TxBatch { destinations, ..self }
    }

    /// The same, which sends no more than this allows.
    pub(crate) fn allowed_by(self, allowance: Option<&'a Allowance>) -> Self {
        TxBatch { allowance, ..self }
    }

    /// Waits until a message may be sent, or until this time, or until it is stopped.
    pub(crate) fn await_allowance(&self, pacing: Pacing, until_ns: Nanos, stop: Option<&AtomicBool>) {
        if let Some(allowance) = self.allowance {
            allowance.wait(Burst::of(pacing), until_ns, stop);
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.rooms[self.room].count()
    }

    /// Sets until when sends wait for room; what was not taken then is a rest, which is sent first by the next send.
    pub(crate) fn wait_until(&mut self, until_ns: Nanos) {
        self.until_ns = until_ns;
    }

    pub(crate) fn begin_phase(&mut self) {
        self.flows.iter_mut().for_each(|flow| flow.messages = 0);
    }

    /// A flow that can send; `None` on a timeout. A single flow is always returned: its sends block.
    pub(crate) fn ready(&mut self) -> io::Result<Option<usize>> {
        match &mut self.ready {
            Some(ready) => ready.next(RECEIVE_TICK),
            None => Ok(Some(0)),
        }
    }

    /// Returns a ready flow unused.
    pub(crate) fn keep(&mut self, flow: Option<usize>) {
        if let (Some(ready), Some(flow)) = (&mut self.ready, flow) {
            ready.again(flow);
        }
    }

    /// Waits until a buffer can be written to. Waits only if the kernel still uses all of them.
    pub(crate) fn await_room(&mut self) -> io::Result<()> {
        match &mut self.zerocopy {
            Some(zerocopy) => zerocopy.await_room(&self.flows[0].channel.socket, self.room),
            None => Ok(()),
        }
    }

    /// Writes the header of message number `place` after a flow's next message into its buffer.
    pub(crate) fn write(&mut self, flow: usize, place: usize, header: Header) {
        let header = self.number_header(flow, place, header);
        if let Some(destinations) = &mut self.destinations {
            self.rooms[self.room].set_destination(place, destinations.draw());
        }
        let message = self.rooms[self.room].slot(place);
        match self.writer {
            Some(write) => write(&header, message),
            None => self.flows[flow].channel.write(&header, message),
        }
    }

    fn number_header(&self, flow: usize, place: usize, header: Header) -> Header {
        let sequence = self.flows[flow].messages + place as u64;
        Header { flow: self.first + flow as u16, sequence, ..header }
    }

    /// Sends the first `count` messages on a flow; with several flows, as far as the socket buffer has room.
    pub(crate) fn send(&mut self, flow: usize, count: usize, header: Header) -> io::Result<Taken> {
        let header = self.number_header(flow, 0, header);
        let taken = match &mut self.ready {
            Some(ready) => {
                let room = &mut self.rooms[0];
                let (taken, has_room) = self.flows[flow].send_now(room, count, header)?;
                self.has_rests |= self.flows[flow].rest.is_some();
                if has_room {
                    ready.again(flow);
                }
                taken
            }
            None => {
                if self.flows[0].rest.is_some() {
                    if !self.send_rest(0)? {
                        return Ok(Taken::default());
                    }
                    // The first buffer held the rest.
                    self.flows[0].channel.write(&header, self.rooms[self.room].slot(0));
                }
                let room = &mut self.rooms[self.room];
                let taken = self.flows[0].channel.send_all(room, count, self.until_ns)?;
                if let Some(zerocopy) = &mut self.zerocopy {
                    zerocopy.note_sends(self.room, taken.calls);
                    self.room = (self.room + 1) % self.rooms.len();
                }
                if taken.left > 0 {
                    let sequence = header.sequence + taken.messages as u64 - 1;
                    self.flows[0].rest = Some((Header { sequence, ..header }, taken.left));
                }
                taken
            }
        };
        let TxFlow { channel, messages, .. } = &mut self.flows[flow];
        *messages += taken.messages as u64;
        if let Some(allowance) = self.allowance {
            allowance.spend((taken.messages * channel.message_bytes) as u64);
        }
        Ok(taken)
    }

    /// Sends the rest of a flow's message as far as there is room in time, by copying. Returns whether all was sent.
    fn send_rest(&mut self, flow: usize) -> io::Result<bool> {
        let TxFlow { channel, rest, .. } = &mut self.flows[flow];
        let Some((header, bytes)) = *rest else { return Ok(true) };
        let message = self.rooms[self.room].slot(0);
        channel.write(&header, message);
        let flags = if channel.io == Io::Zerocopy { sys::SEND_PLAIN } else { channel.flags };
        let taken = channel.send_until(&message[message.len() - bytes..], flags, self.until_ns)?;
        let left = if taken.messages > 0 { taken.left } else { bytes };
        *rest = (left > 0).then_some((header, left));
        Ok(left == 0)
    }

    /// Sends rests as they find room, until this time: a schedule would keep them until the flow's next message.
    pub(crate) fn send_rests(&mut self, until_ns: Nanos) -> io::Result<()> {
        let Some(ready) = &mut self.ready else { return Ok(()) };
        while self.has_rests {
            self.has_rests = self.flows.iter().any(|flow| flow.rest.is_some());
            let left_ns = until_ns.saturating_sub(sys::now_ns());
            if !self.has_rests || left_ns < MIN_WAIT_NS {
                break;
            }
            let Some(place) = ready.next(RECEIVE_TICK.min(Duration::from_nanos(left_ns)))? else { continue };
            let flow = &mut self.flows[place];
            if flow.send_rest_now(&mut self.rooms[0])? {
                self.held.push(place);
            }
        }
        for place in self.held.drain(..) {
            ready.again(place);
        }
        Ok(())
    }

    /// Sends the rests of partly sent messages and what is held back of whole ones, as far as there is room in time.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        for place in 0..self.flows.len() {
            if self.flows[place].rest.is_some() {
                self.await_room()?;
                self.send_rest(place)?;
            }
            self.flows[place].channel.push()?;
        }
        Ok(())
    }

    /// Sends an end marker on every flow without a rest whose receiver is there, if there is room. Returns how many.
    pub(crate) fn mark_end(&mut self, header: Header) -> io::Result<u64> {
        let mut sent = 0;
        self.await_room()?;
        self.flush()?;
        for (place, flow) in self.flows.iter_mut().enumerate() {
            if flow.rest.is_some() {
                continue;
            }
            let message = self.rooms[self.room].slot(0);
            if let Some(allowance) = self.allowance {
                if !allowance.wait(Burst::Allowed, self.until_ns, None) {
                    break;
                }
                allowance.spend(message.len() as u64);
            }
            let marker = Header { flow: self.first + place as u16, sequence: flow.messages, ..header };
            flow.channel.write(&marker, message);
            let taken = match flow.channel.send_last(message, self.until_ns) {
                // The receiver got an earlier marker and has closed.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => continue,
                taken => taken?,
            };
            flow.marker_bytes = if taken.messages > 0 { message.len() - taken.left } else { 0 };
            sent += u64::from(flow.marker_bytes == message.len());
            if let Some(zerocopy) = &mut self.zerocopy {
                zerocopy.note_sends(self.room, taken.calls);
                self.room = (self.room + 1) % self.rooms.len();
            }
        }
        Ok(sent)
    }

    pub(crate) fn ends(&self) -> Vec<FlowEnd> {
        let ends = self
            .flows
            .iter()
            .map(|flow| FlowEnd { rest: flow.rest.map_or(0, |(_, bytes)| bytes), marker: flow.marker_bytes });
        ends.collect()
    }

    /// Zero-copy sends, and how many of them were copied anyway. Waits for completions until this time.
    pub(crate) fn finish(self, until_ns: Nanos) -> io::Result<Option<(u64, u64)>> {
        let socket = &self.flows[0].channel.socket;
        self.zerocopy.map(|zerocopy| zerocopy.finish(socket, until_ns)).transpose()
    }
}

/// Buffers with a payload that is not all zeros, in case something on the path compresses.
fn room(count: usize, bytes: usize) -> Batch {
    let mut batch = Batch::new(count, bytes);
    for place in 0..count {
        for (at, byte) in batch.slot(place).iter_mut().enumerate() {
            *byte = (at * 167 % 251) as u8;
        }
    }
    batch
}

impl TxFlow<'_> {
    /// Sends what fits of the rest of a message, from the first buffer. Returns whether nothing of it is left.
    fn send_rest_now(&mut self, room: &mut Batch) -> io::Result<bool> {
        let Some((header, bytes)) = self.rest else { return Ok(true) };
        let message = room.slot(0);
        self.channel.write(&header, message);
        let rest = &message[message.len() - bytes..];
        let sent = sys::send_now(&self.channel.socket, rest, self.channel.flags)?.unwrap_or(0);
        self.rest = (sent < bytes).then_some((header, bytes - sent));
        Ok(self.rest.is_none())
    }

    /// Sends what fits in the socket buffer. Returns what was sent, and whether there is still room.
    fn send_now(&mut self, room: &mut Batch, count: usize, header: Header) -> io::Result<(Taken, bool)> {
        let MessageSocket { socket, message_bytes, flags, .. } = self.channel;
        let mut taken = Taken::default();
        if self.rest.is_some() {
            if !self.send_rest_now(room)? {
                return Ok((taken, false));
            }
            // The first buffer held the rest of the previous message.
            self.channel.write(&header, room.slot(0));
        }
        let (messages, bytes) = if self.channel.is_gso_batch(count) {
            // It is taken as a whole.
            let sent = sys::send_now(socket, room.slots(0, count), *flags)?;
            sent.map_or((0, 0), |_| (count, *message_bytes))
        } else {
            match self.channel.send_some(room, 0, count, flags | sys::DONTWAIT) {
                Err(error) if sys::is_out_of_buffers(&error) => {
                    taken.refused += 1;
                    return Ok((taken, true));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => (0, 0),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok((taken, true)),
                sent => sent?,
            }
        };
        taken.messages = messages;
        if messages > 0 && bytes < *message_bytes {
            let sequence = header.sequence + messages as u64 - 1;
            self.rest = Some((Header { sequence, ..header }, message_bytes - bytes));
        }
        Ok((taken, messages == count && self.rest.is_none()))
    }
}
