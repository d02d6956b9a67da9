//! Messages on their way out of the kernel.

use crate::channel::Channel;
use crate::gather::Gather;
use crate::sys::{self, Batch, Beside, For, Nanos, RECEIVE_TICK, Ready};
use socket2::Socket;
use stacklab_model::{Io, Transport};
use std::io;

/// Bytes read at once from a stream.
const STREAM_BUFFER: usize = 256 * 1024;
/// Datagrams received at once, where several may come.
const MOST_AT_ONCE: usize = 64;
/// The same where each may hold many.
const MOST_JOINED: usize = 16;
/// The longest that joined datagrams can be, bytes.
const LONGEST_JOINED: usize = 65_535;

/// Bytes of a stream that are little and much for one receive: no window is so small that it is full by then.
const LITTLE: usize = 16 << 10;
const MUCH: usize = 32 << 10;

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
    channels: &'a [Channel],
    arrivals: Arrivals,
}

enum Arrivals {
    Streams(Streams),
    Datagrams(Datagrams),
}

/// Byte streams that share a buffer: one of them is in it at a time.
struct Streams {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// Which stream is in the buffer.
    current: usize,
    /// The first part of a message of each of the others: how long it is, and room for all of them side by side. What
    /// was never written to takes no memory.
    rests: Box<[usize]>,
    rest_room: Box<[u8]>,
    open: usize,
    /// Which streams have something, where there are several; a single one waits in its receives.
    ready: Option<Ready>,
    /// When the last receive returned, and how many bytes it brought.
    received_ns: Nanos,
    received: usize,
    gather: Gather,
}

struct Datagrams {
    batch: Batch,
    /// How many the last receive brought, and which of them is next, from which byte on.
    count: usize,
    place: usize,
    offset: usize,
    /// When the last receive returned, and how far the realtime clock was ahead then.
    received_ns: Nanos,
    realtime_offset_ns: i64,
    /// Whether messages arrive when the kernel says.
    stamped: bool,
    /// Whether receives are put off until several have come.
    gathers: bool,
    gather: Gather,
    /// What the kernel said beside the message looked at last.
    beside: Beside,
}

impl<'a> Inbox<'a> {
    /// An empty inbox for one channel, or for several streams of one trial.
    pub fn new(channels: &'a [Channel]) -> io::Result<Self> {
        let channel = &channels[0];
        let size = channel.message_bytes;
        let arrivals = match channel.transport {
            Transport::Tcp => Arrivals::Streams(Streams::new(channels, size)?),
            Transport::Udp => {
                // One byte more than a datagram of the right size shows one that is too long.
                let (count, each) = match (channel.joined, channel.io) {
                    (true, _) => (MOST_JOINED, LONGEST_JOINED),
                    (_, Io::Plain) => (1, size + 1),
                    _ => (MOST_AT_ONCE, size + 1),
                };
                let batch = Batch::new(count, each);
                let (received_ns, realtime_offset_ns) = (0, 0);
                Arrivals::Datagrams(Datagrams {
                    batch,
                    count: 0,
                    place: 0,
                    offset: 0,
                    received_ns,
                    realtime_offset_ns,
                    stamped: channel.stamped,
                    gathers: channel.gathers,
                    gather: Gather::default(),
                    beside: Beside::default(),
                })
            }
        };
        Ok(Inbox { channels, arrivals })
    }

    /// Receives once.
    pub fn fill(&mut self) -> io::Result<Filled> {
        let Channel { socket, poll_ns, .. } = &self.channels[0];
        let filled = match &mut self.arrivals {
            Arrivals::Streams(streams) => streams.fill(self.channels),
            Arrivals::Datagrams(datagrams) => datagrams.fill(socket, *poll_ns),
        };
        match filled {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Filled::Nothing),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Filled::Nothing),
            // A datagram's port that nobody holds any more.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(Filled::Closed),
            filled => filled,
        }
    }

    /// The next whole message (of a datagram, whatever its length) and when it arrived, or `None` when more must be
    /// received first.
    pub fn next(&mut self) -> Option<(&mut [u8], Nanos)> {
        match &mut self.arrivals {
            Arrivals::Streams(streams) => streams.next(self.channels[0].message_bytes),
            Arrivals::Datagrams(datagrams) => datagrams.next(),
        }
    }

    /// What the kernel said beside the message looked at last; of streams nothing.
    pub fn beside(&self) -> Beside {
        match &self.arrivals {
            Arrivals::Streams(_) => Beside::default(),
            Arrivals::Datagrams(datagrams) => datagrams.beside,
        }
    }
}

impl Streams {
    fn new(channels: &[Channel], size: usize) -> io::Result<Self> {
        let several = channels.len() > 1;
        let sockets = channels.iter().map(|channel| &channel.socket);
        Ok(Streams {
            buffer: vec![0; STREAM_BUFFER.max(2 * size)].into_boxed_slice(),
            start: 0,
            end: 0,
            current: 0,
            rests: vec![0; if several { channels.len() } else { 0 }].into_boxed_slice(),
            rest_room: vec![0; if several { channels.len() * size } else { 0 }].into_boxed_slice(),
            open: channels.len(),
            ready: if several { Some(Ready::watch(sockets, For::Reading)?) } else { None },
            received_ns: 0,
            received: 0,
            gather: Gather::default(),
        })
    }

    fn fill(&mut self, channels: &[Channel]) -> io::Result<Filled> {
        if let Some(ready) = &mut self.ready {
            let Some(next) = ready.next(RECEIVE_TICK)? else { return Ok(Filled::Nothing) };
            self.bring(next, channels[0].message_bytes);
        }
        let Channel { socket, poll_ns, message_bytes, gathers, stamped, .. } = &channels[self.current];
        if *gathers && self.ready.is_none() {
            self.gather.rest(std::mem::take(&mut self.received), LITTLE, MUCH);
        }
        // Move a message's first part to the front only when its rest would not fit behind it.
        if self.buffer.len() - self.start < *message_bytes || self.start == self.end {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let room = &mut self.buffer[self.end..];
        let waits = self.ready.is_none();
        let mut stamp_ns = None;
        let received = polling(*poll_ns, |wait| match (wait && waits, *stamped) {
            (wait, true) => {
                let (received, stamp) = sys::receive_stamped(socket, room, wait)?;
                stamp_ns = stamp;
                Ok(received)
            }
            (false, false) => sys::receive_now(socket, room),
            (true, false) => sys::receive(socket, room),
        })?;
        (self.received_ns, self.received) = (sys::now_ns(), received);
        if let Some(stamp) = stamp_ns {
            self.received_ns = arrived(stamp, sys::realtime_offset_ns(), self.received_ns);
        }
        self.end += received;
        if received > 0 {
            return Ok(Filled::Bytes);
        }
        self.open -= 1;
        if let Some(ready) = &mut self.ready {
            ready.forget(socket)?;
        }
        Ok(if self.open == 0 { Filled::Closed } else { Filled::Bytes })
    }

    /// Has the buffer hold what was received of another stream.
    fn bring(&mut self, next: usize, size: usize) {
        if next == self.current {
            return;
        }
        // Whole messages were taken out: what is left is less than one.
        let left = &self.buffer[self.start..self.end];
        self.rest_room[self.current * size..][..left.len()].copy_from_slice(left);
        self.rests[self.current] = left.len();
        let rest = std::mem::take(&mut self.rests[next]);
        self.buffer[..rest].copy_from_slice(&self.rest_room[next * size..][..rest]);
        (self.start, self.end, self.current) = (0, rest, next);
    }

    fn next(&mut self, size: usize) -> Option<(&mut [u8], Nanos)> {
        if self.end - self.start < size {
            return None;
        }
        let start = self.start;
        self.start += size;
        Some((&mut self.buffer[start..start + size], self.received_ns))
    }
}

impl Datagrams {
    fn fill(&mut self, socket: &Socket, poll_ns: Nanos) -> io::Result<Filled> {
        if self.gathers {
            let most = self.batch.count();
            self.gather.rest(self.count, most / 4, most / 2);
        }
        (self.count, self.place, self.offset) = (0, 0, 0);
        let batch = &mut self.batch;
        self.count = polling(poll_ns, |wait| batch.receive(socket, wait))?;
        self.received_ns = sys::now_ns();
        if self.stamped {
            self.realtime_offset_ns = sys::realtime_offset_ns();
        }
        Ok(Filled::Bytes)
    }

    fn next(&mut self) -> Option<(&mut [u8], Nanos)> {
        if self.place == self.count {
            return None;
        }
        let (place, start) = (self.place, self.offset);
        let beside = self.batch.beside(place);
        let length = self.batch.length(place);
        let end = beside.segment_bytes.map_or(length, |each| length.min(start + each));
        (self.place, self.offset) = if end < length { (place, end) } else { (place + 1, 0) };
        self.beside = beside;
        let stamp = beside.arrived_realtime_ns.filter(|_| self.stamped);
        let arrived =
            stamp.map_or(self.received_ns, |stamp| arrived(stamp, self.realtime_offset_ns, self.received_ns));
        let room = self.batch.slot(place);
        let end = end.min(room.len());
        Some((&mut room[start..end], arrived))
    }
}

/// The kernel's time of a packet as this clock's. A clock that was set between a packet and its receive must not make it
/// arrive after it.
fn arrived(stamp_ns: Nanos, realtime_offset_ns: i64, received_ns: Nanos) -> Nanos {
    received_ns.min((stamp_ns as i64 - realtime_offset_ns).max(0) as Nanos)
}

/// Receives without waiting until the time is over, and then waiting.
fn polling<T>(poll_ns: Nanos, mut receive: impl FnMut(bool) -> io::Result<T>) -> io::Result<T> {
    if poll_ns > 0 {
        let start = sys::now_ns();
        while sys::now_ns() - start < poll_ns {
            match receive(false) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::hint::spin_loop(),
                received => return received,
            }
        }
    }
    receive(true)
}
