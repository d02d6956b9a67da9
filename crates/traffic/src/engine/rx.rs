//! Receive buffers: messages from the kernel.

use crate::engine::header::ForeignFormat;
use crate::engine::mapped;
use crate::engine::socket::MessageSocket;
use crate::engine::stamps::StampClock;
use crate::sys::{self, Batch, Interest, Nanos, RECEIVE_TICK, Ready, RecvMeta};
use stacklab_model::{HEADER_BYTES, Io, Transport};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

const STREAM_BUFFER: usize = 256 * 1024;
const MAX_AT_ONCE: usize = 64;
/// The same with GRO.
const MAX_GRO_DATAGRAMS: usize = 16;
const MAX_GRO_BYTES: usize = 65_535;

/// Thresholds of little and much data for one receive of a stream, bytes. Any TCP window is larger.
const LITTLE: usize = 16 << 10;
const MUCH: usize = 32 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RxStatus {
    Data,
    /// No data within [`RECEIVE_TICK`].
    Timeout,
    Closed,
}

pub(crate) struct RxBatch<'a> {
    channels: &'a [MessageSocket],
    arrivals: Arrivals,
}

enum Arrivals {
    Streams(Streams),
    Datagrams(Datagrams),
}

/// TCP streams that share one buffer; it holds one stream at a time.
struct Streams {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    current: usize,
    /// Length of the partial message of each other stream, and a buffer for all. Pages never written to take no
    /// memory.
    rests: Box<[usize]>,
    rest_room: Box<[u8]>,
    open: usize,
    /// Bytes that have arrived behind lost segments so far.
    out_of_order: u64,
    ready: Option<Ready>,
    /// When the last receive returned, and how many bytes it received.
    received_ns: Nanos,
    received: usize,
    clock: StampClock,
    coalescer: Coalescer,
}

struct Datagrams {
    batch: Batch,
    /// How many messages the last receive returned, and which one is next, from which byte on.
    count: usize,
    place: usize,
    offset: usize,
    received_ns: Nanos,
    clock: StampClock,
    /// Whether arrival times are kernel timestamps.
    stamped: bool,
    coalesces: bool,
    coalescer: Coalescer,
    meta: RecvMeta,
    source: Option<SocketAddr>,
    /// Readiness of several sockets; a single one blocks in its receives.
    ready: Option<Ready>,
}

impl<'a> RxBatch<'a> {
    /// For the channels of one trial. The clock was read before anything could arrive.
    pub(crate) fn new(channels: &'a [MessageSocket], clock: StampClock) -> io::Result<Self> {
        let channel = &channels[0];
        let size = channel.message_bytes;
        let arrivals = match channel.transport {
            Transport::Tcp => Arrivals::Streams(Streams::new(channels, size, clock)?),
            Transport::Udp => {
                // One extra byte detects a datagram that is too long. What opens a flow is a whole header.
                let room = size.max(HEADER_BYTES as usize) + 1;
                let (count, each) = match (channel.gro, channel.io) {
                    (true, _) => (MAX_GRO_DATAGRAMS, MAX_GRO_BYTES),
                    (_, Io::Send) => (1, room),
                    _ => (MAX_AT_ONCE, room),
                };
                let batch = Batch::new(count, each);
                Arrivals::Datagrams(Datagrams {
                    batch,
                    count: 0,
                    place: 0,
                    offset: 0,
                    received_ns: 0,
                    clock,
                    stamped: channel.stamped,
                    coalesces: channel.coalesces,
                    coalescer: Coalescer::default(),
                    meta: RecvMeta::default(),
                    source: None,
                    ready: watch_channels(channels)?,
                })
            }
        };
        Ok(RxBatch { channels, arrivals })
    }

    pub(crate) fn fill(&mut self) -> io::Result<RxStatus> {
        let several = self.channels.len() > 1;
        let filled = match &mut self.arrivals {
            Arrivals::Streams(streams) => streams.fill(self.channels),
            Arrivals::Datagrams(datagrams) => datagrams.fill(self.channels),
        };
        match filled {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(RxStatus::Timeout),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(RxStatus::Timeout),
            // ICMP port unreachable: the peer has closed its port. Other flows may continue.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                Ok(if several { RxStatus::Timeout } else { RxStatus::Closed })
            }
            filled => filled,
        }
    }

    /// The next whole message (or datagram) and its arrival time; `None` when more must be received first.
    pub(crate) fn next(&mut self) -> Option<(&mut [u8], Nanos)> {
        match &mut self.arrivals {
            Arrivals::Streams(streams) => match self.channels[0].foreign {
                Some(format) if format.lacks_message_ends() => streams.rest(),
                _ => streams.next(self.channels[0].message_bytes),
            },
            Arrivals::Datagrams(datagrams) => datagrams.next(),
        }
    }

    /// The beginning of a stream's message that has not arrived whole, and the arrival time of its last byte.
    pub(crate) fn tail(&self) -> Option<(&[u8], Nanos)> {
        match &self.arrivals {
            Arrivals::Streams(streams) => {
                let tail = &streams.buffer[streams.start..streams.end];
                (!tail.is_empty()).then_some((tail, streams.received_ns))
            }
            Arrivals::Datagrams(_) => None,
        }
    }

    /// Bytes of streams that have arrived behind a lost segment since the last call.
    pub(crate) fn newly_held_back(&mut self) -> u64 {
        let Arrivals::Streams(streams) = &mut self.arrivals else { return 0 };
        let total = self.channels.iter().map(|channel| sys::out_of_order_bytes(&channel.socket)).sum();
        total - std::mem::replace(&mut streams.out_of_order, total).min(total)
    }

    pub(crate) fn is_stream(&self) -> bool {
        self.channels[0].transport == Transport::Tcp
    }

    pub(crate) fn foreign(&self) -> Option<ForeignFormat> {
        self.channels[0].foreign
    }

    /// Keeps where messages come from.
    pub(crate) fn keep_sources(&mut self) {
        if let Arrivals::Datagrams(datagrams) = &mut self.arrivals {
            datagrams.batch.keep_addresses();
        }
    }

    /// Where the last message came from. Of datagrams only if that is kept.
    pub(crate) fn source(&self) -> Option<SocketAddr> {
        match &self.arrivals {
            Arrivals::Streams(streams) => {
                mapped::from_socket(&self.channels[streams.current].socket.peer_addr().ok()?)
            }
            Arrivals::Datagrams(datagrams) => datagrams.source.map(mapped::unmap),
        }
    }

    /// Control messages of the last message; empty for streams.
    pub(crate) fn recv_meta(&self) -> RecvMeta {
        match &self.arrivals {
            Arrivals::Streams(_) => RecvMeta::default(),
            Arrivals::Datagrams(datagrams) => datagrams.meta,
        }
    }
}

impl Streams {
    fn new(channels: &[MessageSocket], size: usize, clock: StampClock) -> io::Result<Self> {
        let several = channels.len() > 1;
        Ok(Streams {
            buffer: vec![0; STREAM_BUFFER.max(2 * size)].into_boxed_slice(),
            start: 0,
            end: 0,
            current: 0,
            rests: vec![0; if several { channels.len() } else { 0 }].into_boxed_slice(),
            rest_room: vec![0; if several { channels.len() * size } else { 0 }].into_boxed_slice(),
            open: channels.len(),
            out_of_order: 0,
            ready: watch_channels(channels)?,
            received_ns: 0,
            received: 0,
            clock,
            coalescer: Coalescer::default(),
        })
    }

    fn fill(&mut self, channels: &[MessageSocket]) -> io::Result<RxStatus> {
        if let Some(ready) = &mut self.ready {
            let Some(next) = ready.next(RECEIVE_TICK)? else { return Ok(RxStatus::Timeout) };
            self.bring(next, channels[0].message_bytes);
        }
        let MessageSocket { socket, poll_ns, message_bytes, coalesces, stamped, .. } =
            &channels[self.current];
        if *coalesces && self.ready.is_none() {
            self.coalescer.rest(std::mem::take(&mut self.received), LITTLE, MUCH);
        }
        // Move a partial message to the front only if the rest would not fit after it.
        if self.buffer.len() - self.start < *message_bytes || self.start == self.end {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let room = &mut self.buffer[self.end..];
        let waits = self.ready.is_none();
        let mut stamp_ns = None;
        let received = match polling(*poll_ns, |wait| match (wait && waits, *stamped) {
            (wait, true) => {
                let (received, stamp) = sys::receive_with_timestamp(socket, room, wait)?;
                stamp_ns = stamp;
                Ok(received)
            }
            (false, false) => sys::receive_now(socket, room),
            (true, false) => sys::receive(socket, room),
        }) {
            // The sender has discarded what had not arrived when its time was over. If it fails, it says so itself.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => 0,
            received => received?,
        };
        (self.received_ns, self.received) = (sys::now_ns(), received);
        if let Some(stamp) = stamp_ns {
            self.clock.read(self.received_ns);
            self.received_ns = self.clock.arrival(stamp);
        }
        self.end += received;
        if received > 0 {
            return Ok(RxStatus::Data);
        }
        self.open -= 1;
        if let Some(ready) = &mut self.ready {
            ready.forget(socket)?;
        }
        Ok(if self.open == 0 { RxStatus::Closed } else { RxStatus::Data })
    }

    fn bring(&mut self, next: usize, size: usize) {
        if next == self.current {
            return;
        }
        // Whole messages were taken out, so less than one message remains.
        let left = &self.buffer[self.start..self.end];
        self.rest_room[self.current * size..][..left.len()].copy_from_slice(left);
        self.rests[self.current] = left.len();
        let rest = std::mem::take(&mut self.rests[next]);
        self.buffer[..rest].copy_from_slice(&self.rest_room[next * size..][..rest]);
        (self.start, self.end, self.current) = (0, rest, next);
    }

    fn rest(&mut self) -> Option<(&mut [u8], Nanos)> {
        let size = self.end - self.start;
        if size > 0 { self.next(size) } else { None }
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
    fn fill(&mut self, channels: &[MessageSocket]) -> io::Result<RxStatus> {
        let next = match &mut self.ready {
            Some(ready) => ready.next(RECEIVE_TICK)?,
            None => Some(0),
        };
        let Some(next) = next else { return Ok(RxStatus::Timeout) };
        let MessageSocket { socket, poll_ns, .. } = &channels[next];
        let waits = self.ready.is_none();
        if self.coalesces && waits {
            let most = self.batch.count();
            self.coalescer.rest(self.count, most / 4, most / 2);
        }
        (self.count, self.place, self.offset) = (0, 0, 0);
        let batch = &mut self.batch;
        self.count = polling(*poll_ns, |wait| batch.receive(socket, wait && waits))?;
        self.received_ns = sys::now_ns();
        if self.stamped {
            self.clock.read(self.received_ns);
        }
        Ok(RxStatus::Data)
    }

    fn next(&mut self) -> Option<(&mut [u8], Nanos)> {
        if self.place == self.count {
            return None;
        }
        let place = self.place;
        let start = self.offset;
        // Segments that GRO coalesced have one set of control messages.
        if start == 0 {
            self.meta = self.batch.recv_meta(place);
            self.source = self.batch.source(place);
        }
        let meta = self.meta;
        let length = self.batch.length(place);
        let end = meta.gro_segment_bytes.map_or(length, |each| length.min(start + each));
        (self.place, self.offset) = if end < length { (place, end) } else { (place + 1, 0) };
        let stamp = meta.software_rx_ns.filter(|_| self.stamped);
        let arrived = stamp.map_or(self.received_ns, |stamp| self.clock.arrival(stamp));
        let room = self.batch.slot(place);
        let end = end.min(room.len());
        Some((&mut room[start..end], arrived))
    }
}

fn watch_channels(channels: &[MessageSocket]) -> io::Result<Option<Ready>> {
    let sockets = channels.iter().map(|channel| &channel.socket);
    (channels.len() > 1).then(|| Ready::watch(sockets, Interest::Readable)).transpose()
}

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

const MIN_WAIT: Duration = Duration::from_micros(50);
const MAX_WAIT: Duration = Duration::from_millis(1);

/// Delays a receive until more data has arrived, since a wake-up per packet costs more than the packet: the next one
/// longer after little data, half as long after much, and not at all after none.
#[derive(Debug, Default)]
pub(crate) struct Coalescer {
    rest: Duration,
}

impl Coalescer {
    /// Sleeps before a receive; `brought` is what the previous one received, in the unit of `little` and `much`.
    pub(crate) fn rest(&mut self, brought: usize, little: usize, much: usize) {
        self.adapt(brought, little, much);
        if self.rest >= MIN_WAIT {
            sys::sleep(self.rest);
        }
    }

    fn adapt(&mut self, brought: usize, little: usize, much: usize) {
        self.rest = match brought {
            0 => Duration::ZERO,
            brought if brought <= little => (2 * self.rest + MIN_WAIT).min(MAX_WAIT),
            brought if brought >= much => self.rest / 2,
            _ => self.rest,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_grow_with_few_arrivals_and_shrink_with_many() {
        let mut coalescer = Coalescer::default();
        let few = [0, 1, 1, 16, 1, 1];
        assert_eq!(list_rests(&mut coalescer, &few), [0, 50, 150, 350, 750, 1000]);
        assert_eq!(list_rests(&mut coalescer, &[17, 31, 32, 64]), [1000, 1000, 500, 250]);
        let after_nothing = list_rests(&mut coalescer, &[0]);
        assert_eq!(after_nothing, [0], "what comes after nothing may be far away, and is waited for");
    }

    /// Microseconds of the rests after receives that brought this much.
    fn list_rests(coalescer: &mut Coalescer, brought: &[usize]) -> Vec<u128> {
        let mut rests = Vec::new();
        for brought in brought {
            coalescer.adapt(*brought, 16, 32);
            rests.push(coalescer.rest.as_micros());
        }
        rests
    }
}
