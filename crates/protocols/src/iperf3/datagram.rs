//! Datagrams of a UDP stream: the greeting that opens it, and the header of each message.
//!
//! | bytes | field, big-endian |
//! |---|---|
//! | 0-3, 4-7 | send time: seconds, microseconds of the sender's clock |
//! | 8-11 or 8-15 | number of the message from 1, of 32 or 64 bits |

/// Bytes of a greeting and its answer.
pub const GREETING_BYTES: usize = 4;
/// Each greeting of a client and the server's answer. Versions before 3.12 send the numbers 123456789 and 987654321, in
/// the byte order of their processor.
const GREETINGS: [[[u8; 4]; 2]; 3] = [
    [*b"9876", *b"6789"],
    [123_456_789_u32.to_le_bytes(), 987_654_321_u32.to_le_bytes()],
    [123_456_789_u32.to_be_bytes(), 987_654_321_u32.to_be_bytes()],
];
/// Bytes of the longer header.
pub const LONGEST_HEADER_BYTES: u32 = 16;

/// The greeting, as a client sends it.
pub fn greeting() -> [u8; 4] {
    GREETINGS[0][0]
}

/// The answer to a greeting of either kind; `None` if it is none.
pub fn answer_to(greeting: &[u8]) -> Option<[u8; 4]> {
    GREETINGS.iter().find(|[own, _]| own == greeting).map(|[_, answer]| *answer)
}

/// Whether a datagram is the answer to a greeting, of any version.
pub fn is_answer(datagram: &[u8]) -> bool {
    GREETINGS.iter().any(|[_, answer]| answer == datagram)
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
    /// Writes the header with a number of 4 or 8 bytes to the front of a message that has room for it.
    pub fn write(self, number_bytes: usize, message: &mut [u8]) {
        let micros = self.sent_ns / 1000;
        let mut header = [0; LONGEST_HEADER_BYTES as usize];
        header[..4].copy_from_slice(&((micros / 1_000_000) as u32).to_be_bytes());
        header[4..8].copy_from_slice(&((micros % 1_000_000) as u32).to_be_bytes());
        header[8..8 + number_bytes].copy_from_slice(&self.number.to_be_bytes()[8 - number_bytes..]);
        if let Some(room) = message.get_mut(..8 + number_bytes) {
            room.copy_from_slice(&header[..8 + number_bytes]);
        }
    }

    /// Reads a header with a number of 4 or 8 bytes; `None` if the message is too short or its number is 0.
    pub fn read(number_bytes: usize, message: &[u8]) -> Option<Self> {
        let header = message.get(..8 + number_bytes)?;
        let of = |bytes: &[u8]| bytes.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        let (seconds, micros, number) = (of(&header[..4]), of(&header[4..8]), of(&header[8..]));
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
        for old in [123_456_789_u32.to_le_bytes(), 123_456_789_u32.to_be_bytes()] {
            assert!(is_answer(&answer_to(&old).unwrap()));
        }
        assert_eq!(answer_to(b"6789"), None);
        assert!(!is_answer(b"9876"));
    }

    #[test]
    fn a_header_is_in_the_order_of_the_network() {
        let header = Header { sent_ns: 3_000_004_000, number: 258 };
        let mut message = [0xff; 20];
        header.write(8, &mut message);
        assert_eq!(message[..16], [0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 1, 2]);
        assert_eq!(Header::read(8, &message), Some(header));
        header.write(4, &mut message);
        assert_eq!(message[8..12], [0, 0, 1, 2]);
        assert_eq!(Header::read(4, &message), Some(header));
        assert_eq!(Header::read(4, &message[..11]), None);
        assert_eq!(Header::read(8, &[0; 16]), None);
    }
}
