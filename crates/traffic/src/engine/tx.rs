//! Send buffers: messages to the kernel, over one or several flows.

use crate::engine::header::Header;
use crate::engine::socket::Channel;
use crate::engine::zerocopy::Zerocopy;
use crate::sys::{self, Batch, Interest, RECEIVE_TICK, Ready};
use stacklab_model::Io;
use std::io;

/// Buffers used in turn with MSG_ZEROCOPY until the kernel completes each one.
const ZEROCOPY_ROOMS: usize = 8;

/// The flows of one thread, with buffers for the messages of one call.
pub(crate) struct TxBatch<'a> {
    flows: Vec<Flow<'a>>,
    /// The number of the first flow.
    first: u16,
    rooms: Vec<Batch>,
    room: usize,
    /// Writability of several flows; a single one blocks in its sends.
    ready: Option<Ready>,
    zerocopy: Option<Zerocopy>,
    writer: Option<HeaderWriter<'a>>,
}

/// Writes the header of another protocol than the probe's own.
pub(crate) type HeaderWriter<'a> = &'a dyn Fn(&Header, &mut [u8]);

struct Flow<'a> {
    channel: &'a Channel,
    /// Messages of the phase.
    messages: u64,
    /// A partly sent message: its header and how many bytes remain.
    rest: Option<(Header, usize)>,
}

/// Result of one send.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TxResult {
    /// Messages sent, including a partly sent last one.
    pub messages: usize,
    /// Calls repeated after ENOBUFS.
    pub refused: u64,
}

impl<'a> TxBatch<'a> {
    /// Buffers for as many messages as the channels send per call, all with the same payload. The channels belong to
    /// one trial; `first` is the number of the first flow. Several flows have one buffer, and cannot use MSG_ZEROCOPY.
    pub(crate) fn new(channels: &'a [Channel], first: u16) -> io::Result<Self> {
        let channel = &channels[0];
        let count = if channel.io == Io::Zerocopy { ZEROCOPY_ROOMS } else { 1 };
        let rooms = (0..count).map(|_| room(channel.at_once, channel.message_bytes)).collect();
        let sockets = channels.iter().map(|channel| &channel.socket);
        Ok(TxBatch {
            flows: channels.iter().map(|channel| Flow { channel, messages: 0, rest: None }).collect(),
            first,
            rooms,
            room: 0,
            ready: if channels.len() > 1 { Some(Ready::watch(sockets, Interest::Writable)?) } else { None },
            zerocopy: (channel.io == Io::Zerocopy).then(|| Zerocopy::new(count)),
            writer: None,
        })
    }

    /// The same for whole datagrams with another protocol's header, without end markers.
    pub(crate) fn with_header(self, writer: HeaderWriter<'a>) -> Self {
        TxBatch { writer: Some(writer), ..self }
    }

    /// How many messages there is room for.
    pub(crate) fn count(&self) -> usize {
        self.rooms[self.room].count()
    }

    /// Resets the message counter.
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
        let header = self.numbered(flow, place, header);
        let message = self.rooms[self.room].slot(place);
        match self.writer {
            Some(write) => write(&header, message),
            None => self.flows[flow].channel.write(&header, message),
        }
    }

    fn numbered(&self, flow: usize, place: usize, header: Header) -> Header {
        let sequence = self.flows[flow].messages + place as u64;
        Header { flow: self.first + flow as u16, sequence, ..header }
    }

    /// Sends the first `count` messages, written with this header, on a flow. With several flows, sends only what
    /// fits in the socket buffer.
    pub(crate) fn send(&mut self, flow: usize, count: usize, header: Header) -> io::Result<TxResult> {
        let header = self.numbered(flow, 0, header);
        let taken = match &mut self.ready {
            Some(ready) => {
                let room = &mut self.rooms[0];
                let (taken, has_room) = self.flows[flow].send_now(room, count, header)?;
                if has_room {
                    ready.again(flow);
                }
                taken
            }
            None => {
                let room = &mut self.rooms[self.room];
                let refused = self.flows[0].channel.send_all(room, count)?;
                if let Some(zerocopy) = &mut self.zerocopy {
                    zerocopy.sent(self.room, count);
                    self.room = (self.room + 1) % self.rooms.len();
                }
                TxResult { messages: count, refused }
            }
        };
        self.flows[flow].messages += taken.messages as u64;
        Ok(taken)
    }

    /// Sends the rests of partly sent messages and what is held back of whole ones. Blocks until they are sent.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        for flow in &mut self.flows {
            if let Some((header, bytes)) = flow.rest.take() {
                let message = self.rooms[self.room].slot(0);
                flow.channel.write(&header, message);
                flow.channel.send(&message[message.len() - bytes..])?;
            }
            flow.channel.push()?;
        }
        Ok(())
    }

    /// Sends an end marker on every flow, after what remains of its last message, and blocks until it is sent. Skips
    /// flows whose receiver has closed. Returns the number of markers sent.
    pub(crate) fn mark_end(&mut self, header: Header) -> io::Result<u64> {
        let mut sent = 0;
        self.await_room()?;
        self.flush()?;
        for (place, flow) in self.flows.iter_mut().enumerate() {
            let message = self.rooms[self.room].slot(0);
            let marker = Header { flow: self.first + place as u16, sequence: flow.messages, ..header };
            flow.channel.write(&marker, message);
            match flow.channel.send_last(message) {
                // The receiver got an earlier marker and has closed.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => continue,
                taken => taken?,
            };
            sent += 1;
            if let Some(zerocopy) = &mut self.zerocopy {
                zerocopy.sent(self.room, 1);
                self.room = (self.room + 1) % self.rooms.len();
            }
        }
        Ok(sent)
    }

    /// Zero-copy sends, and how many of them the kernel copied anyway. Waits for the last completion. `None` without
    /// MSG_ZEROCOPY.
    pub(crate) fn finish(self) -> io::Result<Option<(u64, u64)>> {
        let socket = &self.flows[0].channel.socket;
        self.zerocopy.map(|zerocopy| zerocopy.finish(socket)).transpose()
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

impl Flow<'_> {
    /// Sends what fits in the socket buffer. Returns what was sent, and whether there is still room.
    fn send_now(&mut self, room: &mut Batch, count: usize, header: Header) -> io::Result<(TxResult, bool)> {
        let Channel { socket, message_bytes, flags, .. } = self.channel;
        let mut taken = TxResult::default();
        if let Some((rest, bytes)) = self.rest {
            // The first buffer holds the rest of the previous message.
            self.channel.write(&rest, room.slot(0));
            match sys::send_now(socket, &room.slots(0, 1)[message_bytes - bytes..], *flags)? {
                None => return Ok((taken, false)),
                Some(sent) if sent < bytes => {
                    self.rest = Some((rest, bytes - sent));
                    return Ok((taken, false));
                }
                Some(_) => self.rest = None,
            }
            self.channel.write(&header, room.slot(0));
        }
        let gso_batch = self.channel.is_gso_batch(count);
        let (messages, bytes) = if gso_batch {
            match sys::send_now(socket, room.slots(0, count), *flags)? {
                Some(_) => (count, *message_bytes),
                None => (0, 0),
            }
        } else {
            match room.send(socket, 0, count, flags | sys::DONTWAIT) {
                Err(error) if sys::is_out_of_buffers(&error) => {
                    taken.refused += 1;
                    return Ok((taken, true));
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock) => (0, 0),
                Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted) => return Ok((taken, true)),
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
