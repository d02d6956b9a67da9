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

use crate::sys::Nanos;
use stacklab_model::{HEADER_BYTES, Transport};

const LEN: usize = HEADER_BYTES as usize;

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
}

impl Header {
    /// Writes the header to the front of a message of at least [`HEADER_BYTES`].
    pub fn write(&self, message: &mut [u8]) {
        message[0..4].copy_from_slice(&self.token.to_be_bytes());
        message[4] = self.phase as u8;
        message[5] = if self.phase == Phase::End { self.markers_left } else { self.slice };
        message[6..8].copy_from_slice(&self.flow.to_be_bytes());
        message[8..16].copy_from_slice(&self.sequence.to_be_bytes());
        message[16..24].copy_from_slice(&self.sent_ns.to_be_bytes());
        message[24..32].fill(0);
    }

    /// Reads a header; `None` where the message is too short or not of the trial with this token.
    pub fn read(message: &[u8], token: u32) -> Option<Self> {
        let header: &[u8; LEN] = message.get(..LEN)?.try_into().ok()?;
        let long = |at: usize| u64::from_be_bytes(header[at..at + 8].try_into().expect("eight bytes"));
        if header[0..4] != token.to_be_bytes() {
            return None;
        }
        let phases = [Phase::Warmup, Phase::Measured, Phase::End, Phase::Open];
        let phase = *phases.get(usize::from(header[4]))?;
        let flow = u16::from_be_bytes([header[6], header[7]]);
        let (markers_left, slice) = if phase == Phase::End { (header[5], 0) } else { (0, header[5]) };
        Some(Header { token, phase, markers_left, slice, flow, sequence: long(8), sent_ns: long(16) })
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
}
