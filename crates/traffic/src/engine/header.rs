//! The probe's own header, the first 32 bytes of every message, big-endian.
//!
//! | bytes | field |
//! |---|---|
//! | 0-3 | token of the trial |
//! | 4 | phase: 0 warm-up, 1 measured, 2 end, 3 opening |
//! | 5 | in an end marker: markers still to come; in a measured message of an interleaved trial: slice modulo 256 |
//! | 6-7 | flow, from 0 |
//! | 8-15 | sequence number within the phase and flow, from 0; in an end marker, number of measured messages sent |
//! | 16-23 | send time, nanoseconds of the sender's clock (the intended one on an open-loop schedule) |
//! | 24-31 | when a reflector received it, nanoseconds of the reflector's clock; 0 before |
//!
//! Datagrams that are too small for it and need no answer have 18 bytes, which an Ethernet frame of 64 bytes over IPv4
//! and one of 84 bytes over IPv6 have room for (RFC 8219): bytes 0-7 as above, then
//!
//! | bytes | field |
//! |---|---|
//! | 8-12 | the sequence number's lowest 40 bits: a trial has fewer messages |
//! | 13-17 | the send time's lowest 40 bits: the receiver knows the rest, since no message takes nine minutes |

use crate::sys::Nanos;
use stacklab_model::{HEADER_BYTES, SHORT_HEADER_BYTES, Transport};

const LEN: usize = HEADER_BYTES as usize;
const SHORT_LEN: usize = SHORT_HEADER_BYTES as usize;

/// How many nanoseconds the send time of a short header distinguishes: 18 minutes.
const SHORT_SPAN_NS: Nanos = 1 << 40;

/// Number of end markers on a lossy transport.
const UDP_MARKERS: u8 = 3;

/// What a message belongs to, in the order of the numbers on the wire.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Phase {
    /// Traffic before the measured window; counted apart.
    #[default]
    Warmup,
    /// The measured window.
    Measured,
    /// Marks the end of the measured window.
    End,
    /// Opens a flow from the receiver's side, and answers that. Such a message is a header alone.
    Open,
}

/// A message's header.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Header {
    /// Token of the trial.
    pub token: u32,
    /// The phase of the message.
    pub phase: Phase,
    /// End markers still to come.
    pub markers_left: u8,
    /// The slice modulo 256; 0 in a trial that is not interleaved.
    pub slice: u8,
    /// Flow, from 0.
    pub flow: u16,
    /// Sequence number within the flow, or the number of messages it sent in an end marker.
    pub sequence: u64,
    /// Send time, nanoseconds.
    pub sent_ns: u64,
    /// Whether that is only its lowest 40 bits.
    pub is_send_time_cut: bool,
}

impl Header {
    /// Writes the header to the front of a message of at least [`HEADER_BYTES`], or as much of it as a short one has to
    /// a message of at least [`SHORT_HEADER_BYTES`].
    pub fn write(&self, message: &mut [u8]) {
        message[0..4].copy_from_slice(&self.token.to_be_bytes());
        message[4] = self.phase as u8;
        message[5] = if self.phase == Phase::End { self.markers_left } else { self.slice };
        message[6..8].copy_from_slice(&self.flow.to_be_bytes());
        if message.len() < LEN {
            message[8..13].copy_from_slice(&self.sequence.to_be_bytes()[3..]);
            message[13..18].copy_from_slice(&self.sent_ns.to_be_bytes()[3..]);
            return;
        }
        message[8..16].copy_from_slice(&self.sequence.to_be_bytes());
        message[16..24].copy_from_slice(&self.sent_ns.to_be_bytes());
        message[24..32].fill(0);
    }

    /// Reads a header; `None` where the message is too short or not of the trial with this token.
    pub fn read(message: &[u8], token: u32) -> Option<Self> {
        let header = Self::read_names(message.get(..LEN)?, token)?;
        let [sequence, sent_ns] = [&message[8..16], &message[16..24]].map(read_number);
        Some(Header { sequence, sent_ns, ..header })
    }

    /// Reads the header of a trial whose messages have `size` bytes, from the front of one of them, or of an opening
    /// message. A short one has the lowest bits of its send time ([`Header::complete_send_time`]).
    pub fn read_front(front: &[u8], size: usize, token: u32) -> Option<Self> {
        if front.len() != size || !(SHORT_LEN..LEN).contains(&size) {
            return Self::read(front, token);
        }
        let header = Self::read_names(front, token)?;
        let [sequence, sent_ns] = [&front[8..13], &front[13..18]].map(read_number);
        Some(Header { sequence, sent_ns, is_send_time_cut: true, ..header })
    }

    /// What both headers have in their first eight bytes.
    fn read_names(message: &[u8], token: u32) -> Option<Self> {
        if message[0..4] != token.to_be_bytes() {
            return None;
        }
        let phases = [Phase::Warmup, Phase::Measured, Phase::End, Phase::Open];
        let phase = *phases.get(usize::from(message[4]))?;
        let flow = u16::from_be_bytes([message[6], message[7]]);
        let (markers_left, slice) = if phase == Phase::End { (message[5], 0) } else { (0, message[5]) };
        Some(Header { token, phase, markers_left, slice, flow, ..Header::default() })
    }

    /// The same with the whole send time, of which a short header has the lowest bits: the one that is nearest to the
    /// arrival by the sender's clock. Where nobody compared the clocks, all send times of a trial are wrong by the same
    /// multiple of 18 minutes.
    #[inline]
    pub fn complete_send_time(self, arrived_ns: Nanos) -> Self {
        if !self.is_send_time_cut {
            return self;
        }
        let ago_ns = arrived_ns.wrapping_sub(self.sent_ns) % SHORT_SPAN_NS;
        // Clocks that were compared may still put a message a little before it was sent.
        let is_earlier = ago_ns < SHORT_SPAN_NS / 2 && ago_ns <= arrived_ns;
        let sent_ns = if is_earlier { arrived_ns - ago_ns } else { arrived_ns + (SHORT_SPAN_NS - ago_ns) };
        Header { sent_ns, is_send_time_cut: false, ..self }
    }

    /// The reflector's receive time in a message that [`Header::read`] could read, nanoseconds of the reflector's
    /// clock.
    pub fn reflected_ns(message: &[u8]) -> u64 {
        message.get(24..32).map_or(0, |bytes| u64::from_be_bytes(bytes.try_into().expect("eight bytes")))
    }

    /// Writes the reflector's receive time into a message.
    pub fn write_reflection_time(message: &mut [u8], received_ns: u64) {
        message[24..32].copy_from_slice(&received_ns.to_be_bytes());
    }
}

/// A number of up to eight bytes.
#[inline]
fn read_number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// What a datagram of another program says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForeignHeader {
    /// Sequence number, from 0.
    pub sequence: u64,
    /// Send time, nanoseconds of the sender's clock.
    pub sent_ns: Nanos,
}

/// The format of another program's messages.
#[derive(Debug, Clone, Copy)]
pub enum ForeignFormat {
    /// A stream of bytes: messages have no header, and where one ends does not matter.
    Bytes,
    /// Datagrams with a header.
    Datagrams {
        /// Writes the header to the front of a message.
        write: fn(ForeignHeader, &mut [u8]),
        /// Reads the header; `None` for a message that has none.
        read: fn(&[u8]) -> Option<ForeignHeader>,
    },
}

impl ForeignFormat {
    /// Writes what the format holds of a header.
    pub fn write(self, header: &Header, message: &mut [u8]) {
        if let ForeignFormat::Datagrams { write, .. } = self {
            write(ForeignHeader { sequence: header.sequence, sent_ns: header.sent_ns }, message);
        }
    }

    /// What the format holds, as a header; `None` for a stray.
    pub fn read(self, message: &[u8], token: u32) -> Option<Header> {
        let numbered = match self {
            ForeignFormat::Bytes => ForeignHeader { sequence: 0, sent_ns: 0 },
            ForeignFormat::Datagrams { read, .. } => read(message)?,
        };
        let ForeignHeader { sequence, sent_ns } = numbered;
        Some(Header { token, phase: Phase::Measured, sequence, sent_ns, ..Header::default() })
    }

    /// Whether messages have no ends.
    pub fn lacks_message_ends(self) -> bool {
        matches!(self, ForeignFormat::Bytes)
    }
}

/// Number of end markers on each flow.
pub(crate) fn end_markers(transport: Transport) -> u8 {
    if transport == Transport::Udp { UDP_MARKERS } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_reads_back_and_a_stray_does_not() {
        let header = Header {
            token: 7,
            phase: Phase::End,
            markers_left: 2,
            slice: 0,
            flow: 9_999,
            sequence: 1 << 40,
            sent_ns: 5,
            is_send_time_cut: false,
        };
        let mut message = [0xff; 64];
        header.write(&mut message);
        assert_eq!(Header::reflected_ns(&message), 0);
        Header::write_reflection_time(&mut message, 5);
        assert_eq!(Header::reflected_ns(&message), 5);
        assert_eq!(Header::read(&message, 7), Some(header));
        let measured = Header { phase: Phase::Measured, markers_left: 0, slice: 255, ..header };
        measured.write(&mut message);
        assert_eq!(Header::read(&message, 7), Some(measured));
        assert_eq!(Header::read(&message, 8), None);
        assert_eq!(Header::read(&message[..31], 7), None);
        message[4] = 4;
        assert_eq!(Header::read(&message, 7), None);
    }

    fn short(sequence: u64, sent_ns: Nanos) -> Header {
        Header {
            token: 7,
            phase: Phase::Measured,
            slice: 255,
            flow: 9_999,
            sequence,
            sent_ns,
            ..Header::default()
        }
    }

    #[test]
    fn a_short_header_reads_back() {
        let header = short((1 << 40) - 1, 3 * SHORT_SPAN_NS + 5);
        for size in [18, 31] {
            let mut message = vec![0xff; size];
            header.write(&mut message);
            let read = Header::read_front(&message, size, 7).unwrap();
            assert_eq!(read.complete_send_time(header.sent_ns + 1_000_000), header);
            assert_eq!(Header::read_front(&message, size, 8), None);
            assert_eq!(Header::read_front(&message, 64, 7), None, "a stray of a trial with longer messages");
            assert_eq!(Header::read_front(&message[..17], size, 7), None);
            assert_eq!(Header::read(&message, 7), None);
        }
        // Flows of short messages are opened by whole headers.
        let mut opening = [0; LEN];
        Header { phase: Phase::Open, ..header }.write(&mut opening);
        assert_eq!(Header::read_front(&opening, 18, 7).unwrap().phase, Phase::Open);
        assert_eq!(Header::read_front(&[], 0, 7), None);
    }

    #[test]
    fn the_send_time_is_the_nearest_to_the_arrival() {
        const HOUR_NS: Nanos = 3_600_000_000_000;
        let mut message = [0; 18];
        for sent_ns in [0, 1, SHORT_SPAN_NS - 1, SHORT_SPAN_NS, HOUR_NS, 1000 * HOUR_NS + 12_345] {
            short(5, sent_ns).write(&mut message);
            let read = Header::read_front(&message, 18, 7).unwrap();
            // Up to nine minutes later, and a little earlier.
            for late_ns in [0, 1, 1_000_000, SHORT_SPAN_NS / 2 - 1] {
                assert_eq!(read.complete_send_time(sent_ns + late_ns).sent_ns, sent_ns);
            }
            let early = sent_ns.saturating_sub(20_000);
            assert_eq!(read.complete_send_time(early).sent_ns, sent_ns);
        }
    }
}
