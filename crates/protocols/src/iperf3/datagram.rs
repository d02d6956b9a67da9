//! Datagrams of a UDP stream: the greeting that opens it, and the header of each message.
//!
//! | bytes | field, big-endian |
//! |---|---|
//! | 0-3, 4-7 | send time: seconds, microseconds of the sender's clock |
//! | 8-11 or 8-15 | number of the message from 1, of 32 or 64 bits |

/// Bytes of a greeting and its answer.
pub const GREETING_BYTES: usize = 4;
/// The greeting of a client; versions before 3.12 send the number 123456789, in the byte order of their processor.
const GREETING: [u8; 4] = [0x39, 0x38, 0x37, 0x36];
const OLD_GREETING: u32 = 123_456_789;
/// The server's answer; versions before 3.12 send 987654321.
const ANSWER: [u8; 4] = [0x36, 0x37, 0x38, 0x39];
const OLD_ANSWER: u32 = 987_654_321;
/// Bytes of the longer header.
pub const LONGEST_HEADER_BYTES: u32 = 16;

/// The greeting, as a client sends it.
pub fn greeting() -> [u8; 4] {
    GREETING
}

/// The answer to a greeting of either kind; `None` if it is none.
pub fn answer_to(greeting: &[u8]) -> Option<[u8; 4]> {
    if greeting == GREETING {
        Some(ANSWER)
    } else if greeting == OLD_GREETING.to_le_bytes() {
        Some(OLD_ANSWER.to_le_bytes())
    } else if greeting == OLD_GREETING.to_be_bytes() {
        Some(OLD_ANSWER.to_be_bytes())
    } else {
        None
    }
}

/// Whether a datagram is the answer to a greeting, of any version.
pub fn is_answer(datagram: &[u8]) -> bool {
    datagram == ANSWER || datagram == OLD_ANSWER.to_le_bytes() || datagram == OLD_ANSWER.to_be_bytes()
}

/// The header of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Send time, nanoseconds of the sender's clock; microseconds are sent.
    pub sent_ns: u64,
    /// Number, from 1.
    pub number: u64,
}

impl Header {
    /// Writes the header with a number of 64 bits.
    pub fn write_long(self, message: &mut [u8]) {
        self.write_time(message);
        if let Some(room) = message.get_mut(8..16) {
            room.copy_from_slice(&self.number.to_be_bytes());
        }
    }

    /// Writes the header with a number of 32 bits.
    pub fn write_short(self, message: &mut [u8]) {
        self.write_time(message);
        if let Some(room) = message.get_mut(8..12) {
            room.copy_from_slice(&(self.number as u32).to_be_bytes());
        }
    }

    /// Reads a header with a number of 64 bits; `None` if the message is too short or its number is 0.
    pub fn read_long(message: &[u8]) -> Option<Self> {
        let number = u64::from_be_bytes(message.get(8..16)?.try_into().ok()?);
        Self::read(message, number)
    }

    /// Reads a header with a number of 32 bits.
    pub fn read_short(message: &[u8]) -> Option<Self> {
        let number = u32::from_be_bytes(message.get(8..12)?.try_into().ok()?);
        Self::read(message, number.into())
    }

    fn write_time(self, message: &mut [u8]) {
        let micros = self.sent_ns / 1000;
        if let Some(room) = message.get_mut(..8) {
            room[..4].copy_from_slice(&((micros / 1_000_000) as u32).to_be_bytes());
            room[4..].copy_from_slice(&((micros % 1_000_000) as u32).to_be_bytes());
        }
    }

    fn read(message: &[u8], number: u64) -> Option<Self> {
        let word = |at: usize| Some(u32::from_be_bytes(message.get(at..at + 4)?.try_into().ok()?));
        let (seconds, micros) = (u64::from(word(0)?), u64::from(word(4)?));
        (number > 0).then_some(Header { sent_ns: (seconds * 1_000_000 + micros) * 1000, number })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_of_either_kind_has_its_answer() {
        assert_eq!(greeting(), *b"9876");
        assert_eq!(answer_to(b"9876"), Some(*b"6789"));
        assert!(is_answer(b"6789"));
        for old in [OLD_GREETING.to_le_bytes(), OLD_GREETING.to_be_bytes()] {
            assert!(is_answer(&answer_to(&old).unwrap()));
        }
        assert_eq!(answer_to(b"6789"), None);
        assert!(!is_answer(b"9876"));
    }

    #[test]
    fn a_header_is_in_the_order_of_the_network() {
        let header = Header { sent_ns: 3_000_004_000, number: 258 };
        let mut message = [0xff; 20];
        header.write_long(&mut message);
        assert_eq!(message[..16], [0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 1, 2]);
        assert_eq!(Header::read_long(&message), Some(header));
        header.write_short(&mut message);
        assert_eq!(message[8..12], [0, 0, 1, 2]);
        assert_eq!(Header::read_short(&message), Some(header));
        assert_eq!(Header::read_short(&message[..11]), None);
        assert_eq!(Header::read_long(&[0; 16]), None);
    }
}
