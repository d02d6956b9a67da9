//! What a stack's packets show: packets of each family and protocol, segments of each connection, datagrams of each
//! port. Counted at the end of the link, since the stack itself counts nothing.

use crate::sys::stack::frame::{Carried, Packet, Segment, read_frame};
use smoltcp::wire::TcpSeqNumber;
use stacklab_model::Family;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The packets of one family in one direction.
#[derive(Debug, Default, Clone, Copy)]
struct PacketCounts {
    packets: u64,
    segments: u64,
    datagrams: u64,
}

impl PacketCounts {
    fn add(&mut self, packet: &Packet) {
        self.packets += 1;
        match packet.carries {
            Carried::Tcp(_) => self.segments += 1,
            Carried::Udp { .. } => self.datagrams += 1,
            Carried::Other => {}
        }
    }
}

/// Segments with data that a connection has sent.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct SentSegments {
    pub segments: u64,
    pub bytes: u64,
    pub segments_again: u64,
    pub bytes_again: u64,
    /// The sequence number behind what was sent so far; `None` before the first data.
    next: Option<TcpSeqNumber>,
    /// The sequence number behind what the peer has room for; `None` if it is not known.
    window_end: Option<TcpSeqNumber>,
    window_shift: Option<u8>,
}

impl SentSegments {
    fn add(&mut self, segment: &Segment) {
        let end = segment.sequence + segment.payload;
        let again = match self.next {
            Some(next) if segment.sequence < next => (next - segment.sequence).min(segment.payload),
            _ => 0,
        };
        self.segments += 1;
        self.bytes += segment.payload as u64;
        self.bytes_again += again as u64;
        if again > 0 {
            self.segments_again += 1;
        }
        if self.next.is_none_or(|next| end > next) {
            self.next = Some(end);
        }
    }

    /// Takes what a segment of the peer says of its window.
    fn hear(&mut self, segment: &Segment) {
        if segment.window_shift.is_some() {
            self.window_shift = segment.window_shift;
        }
        // The window of a first segment is not shifted.
        let shift = if segment.window_shift.is_some() { Some(0) } else { self.window_shift };
        let Some(shift) = shift else { return };
        let end = segment.expected + (usize::from(segment.window) << shift);
        // A peer never takes back room that it has given.
        if self.window_end.is_none_or(|known| end > known) {
            self.window_end = Some(end);
        }
    }

    /// Whether the peer has room for this many bytes more.
    pub(super) fn has_window(&self, bytes: usize) -> bool {
        self.next.zip(self.window_end).is_none_or(|(next, end)| end >= next + bytes)
    }

    /// Bytes of data that have left at least once.
    pub(super) fn bytes_once(&self) -> u64 {
        self.bytes - self.bytes_again
    }
}

/// More than a trial has.
const MAX_CONNECTIONS: usize = 4096;

/// The two ends of a connection, the own one first.
pub(super) type ConnectionKey = (SocketAddr, SocketAddr);

#[derive(Debug, Default)]
pub(super) struct StackCounters {
    arrived: [PacketCounts; 2],
    left: [PacketCounts; 2],
    /// Frames that the link's end did not take, and those that it had no room for.
    pub refused: u64,
    pub dropped: u64,
    connections: Vec<(ConnectionKey, SentSegments)>,
    /// Addresses at which connections are accepted.
    listening: Vec<SocketAddr>,
    /// Datagrams that arrived for each open port.
    ports: Vec<(Family, u16, u64)>,
}

fn place(family: Family) -> usize {
    usize::from(family == Family::Ipv6)
}

impl StackCounters {
    pub(super) fn count_arrival(&mut self, frame: &[u8]) {
        let Some(packet) = read_frame(frame) else { return };
        self.arrived[place(packet.family)].add(&packet);
        match packet.carries {
            Carried::Udp { destination } => {
                if let Some((.., count)) = self.port(packet.family, destination) {
                    *count += 1;
                }
            }
            Carried::Tcp(segment) => {
                let own = SocketAddr::new(packet.destination, segment.destination);
                let peer = SocketAddr::new(packet.source, segment.source);
                // The peer's first segment says how it counts its windows.
                if segment.window_shift.is_some() && self.listening.contains(&own) {
                    self.open_connection((own, peer));
                }
                if let Some(sent) = self.connection((own, peer)) {
                    sent.hear(&segment);
                }
            }
            Carried::Other => {}
        }
    }

    pub(super) fn count_departure(&mut self, frame: &[u8]) {
        let Some(packet) = read_frame(frame) else { return };
        self.left[place(packet.family)].add(&packet);
        let Carried::Tcp(segment) = packet.carries else { return };
        if segment.payload == 0 {
            return;
        }
        let own = SocketAddr::new(packet.source, segment.source);
        let peer = SocketAddr::new(packet.destination, segment.destination);
        if let Some(sent) = self.connection((own, peer)) {
            sent.add(&segment);
        }
    }

    fn connection(&mut self, key: ConnectionKey) -> Option<&mut SentSegments> {
        self.connections.iter_mut().find(|(known, _)| *known == key).map(|(_, sent)| sent)
    }

    pub(super) fn listen(&mut self, address: SocketAddr) {
        self.listening.push(address);
    }

    pub(super) fn stop_listening(&mut self, address: Option<SocketAddr>) {
        self.listening.retain(|known| Some(*known) != address);
    }

    /// Counts a connection that was accepted, from its first segment on if that was seen.
    pub(super) fn accept_connection(&mut self, key: ConnectionKey) {
        if self.connection(key).is_none() {
            self.open_connection(key);
        }
    }

    pub(super) fn open_connection(&mut self, key: ConnectionKey) {
        self.close_connection(key);
        // The oldest is one that was never accepted.
        if self.connections.len() >= MAX_CONNECTIONS {
            self.connections.remove(0);
        }
        self.connections.push((key, SentSegments::default()));
    }

    pub(super) fn close_connection(&mut self, key: ConnectionKey) {
        self.connections.retain(|(known, _)| *known != key);
    }

    pub(super) fn sent_segments(&mut self, key: ConnectionKey) -> SentSegments {
        self.connection(key).map_or_else(Default::default, |sent| *sent)
    }

    pub(super) fn open_port(&mut self, family: Family, port: u16) {
        self.ports.push((family, port, 0));
    }

    pub(super) fn close_port(&mut self, family: Family, port: u16) {
        self.ports.retain(|(known, at, _)| (*known, *at) != (family, port));
    }

    pub(super) fn datagrams_for(&mut self, family: Family, port: u16) -> u64 {
        self.port(family, port).map_or(0, |(.., count)| *count)
    }

    fn port(&mut self, family: Family, port: u16) -> Option<&mut (Family, u16, u64)> {
        self.ports.iter_mut().find(|(known, at, _)| (*known, *at) == (family, port))
    }

    /// The counts by the names that Linux has for them.
    pub(super) fn write(&self, into: &mut BTreeMap<String, u64>) {
        for (family, ip, udp) in [(Family::Ipv4, "ip", "udp"), (Family::Ipv6, "ip6", "udp6")] {
            let arrived = self.arrived[place(family)];
            let left = self.left[place(family)];
            into.insert(format!("{ip}.InReceives"), arrived.packets);
            into.insert(format!("{ip}.OutRequests"), left.packets);
            into.insert(format!("{udp}.InDatagrams"), arrived.datagrams);
            into.insert(format!("{udp}.OutDatagrams"), left.datagrams);
        }
        let [segments_in, segments_out] =
            [self.arrived, self.left].map(|both| both.iter().map(|family| family.segments).sum());
        into.insert("tcp.InSegs".to_owned(), segments_in);
        into.insert("tcp.OutSegs".to_owned(), segments_out);
        *into.entry("interface.tx_dropped".to_owned()).or_default() += self.refused;
        *into.entry("interface.rx_dropped".to_owned()).or_default() += self.dropped;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(sequence: TcpSeqNumber, payload: usize) -> Segment {
        let expected = TcpSeqNumber(0);
        Segment { source: 1, destination: 2, sequence, payload, expected, window: 0, window_shift: None }
    }

    fn acknowledgement() -> Segment {
        Segment { window: 1000, ..segment(TcpSeqNumber(0), 0) }
    }

    #[test]
    fn window_ends_where_the_peer_has_no_more_room() {
        let start = TcpSeqNumber(i32::MAX - 10);
        let mut sent = SentSegments::default();
        assert!(sent.has_window(1 << 20), "nothing is known");
        sent.hear(&Segment { expected: start, window_shift: Some(2), ..acknowledgement() });
        sent.add(&segment(start, 100));
        assert!(sent.has_window(900) && !sent.has_window(901), "the first window is not shifted");
        sent.hear(&Segment { expected: start + 100, ..acknowledgement() });
        assert!(sent.has_window(4000) && !sent.has_window(4001));
        // A segment that was overtaken.
        sent.hear(&Segment { expected: start, ..acknowledgement() });
        assert!(sent.has_window(4000));
    }

    #[test]
    fn repeated_bytes_are_counted_once() {
        let start = TcpSeqNumber(i32::MAX - 150);
        let mut sent = SentSegments::default();
        for (after, payload, counts) in [
            (0, 100, [1, 100, 0, 0]),
            // Beyond the largest sequence number.
            (100, 100, [2, 200, 0, 0]),
            (100, 100, [3, 300, 1, 100]),
            // The second half is new.
            (150, 100, [4, 400, 2, 150]),
            (250, 10, [5, 410, 2, 150]),
        ] {
            sent.add(&segment(start + after, payload));
            assert_eq!([sent.segments, sent.bytes, sent.segments_again, sent.bytes_again], counts);
        }
        assert_eq!(sent.bytes_once(), 260);
    }
}
