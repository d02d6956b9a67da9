//! The protocol of iperf3, versions 3.9 to 3.21 (esnet/iperf: src/iperf_api.h, src/iperf_api.c, src/iperf_udp.c).
//!
//! A test has a control connection over TCP. The client opens it and sends a cookie. Then each side says what it
//! does by a [`State`] of one byte; parameters and results are JSON texts behind their length ([`text_bytes`]). Each
//! TCP stream begins with the cookie again, each UDP stream with a greeting.
//!
//! [`client`] and [`server`] have the sockets; streams run by the engine's loops (`stacklab_traffic::foreign`).

pub mod client;
mod control;
pub mod figures;
mod json;
mod parameters;
pub mod server;
mod streams;

pub use json::Results;
pub use parameters::Parameters;

use json::StreamResult;
use stacklab_traffic::foreign::ForeignHeader;

/// What streams of a test are known by: 36 letters and a zero.
pub(crate) type Cookie = [u8; 37];

/// The server's default port, of TCP and UDP.
pub const PORT: u16 = 5201;
/// Largest parameters, bytes of JSON (MAX_PARAMS_JSON_STRING).
pub const MAX_PARAMETER_BYTES: usize = 8 << 10;
/// Largest results, bytes of JSON: those of 256 streams, with the output of a server.
pub(crate) const MAX_RESULT_BYTES: usize = 1 << 20;
/// Most streams of one direction of a test (MAX_STREAMS).
pub const MAX_STREAMS: u32 = 128;
/// Largest block, bytes (MAX_BLOCKSIZE).
pub const MAX_BLOCK_BYTES: u32 = 1 << 20;
/// Largest datagram, bytes of payload (MAX_UDP_BLOCKSIZE).
pub(crate) const MAX_DATAGRAM_BYTES: u32 = 65_507;
/// Longest test and longest omitted part, seconds (MAX_TIME, MAX_OMIT_TIME).
pub(crate) const MAX_SECONDS: u32 = 86_400;
pub(crate) const MAX_OMIT_SECONDS: u32 = 600;

/// The number of a stream in results, by its place among a test's streams: 1, 3, 4, 5 and so on, since iperf3 counts
/// the second one twice.
pub(crate) fn stream_id(place: usize) -> u64 {
    if place == 0 { 1 } else { place as u64 + 2 }
}

/// The length of a JSON text, from the four bytes before it. Nothing is allocated for one that is longer than `most`.
pub fn text_bytes(prefix: [u8; 4], most: usize) -> Result<usize, String> {
    let length = u32::from_be_bytes(prefix) as usize;
    if length > most {
        return Err(format!("a text of {length} bytes was announced, the maximum is {most}"));
    }
    Ok(length)
}

/// A JSON text behind its length.
pub fn frame_text(text: &str) -> Vec<u8> {
    let mut bytes = (text.len() as u32).to_be_bytes().to_vec();
    bytes.extend(text.as_bytes());
    bytes
}

/// What a side says that it does, or asks the other side to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Streams are open, and the test is about to begin.
    TestStart,
    /// The test has begun.
    TestRunning,
    /// The client has ended the test.
    TestEnd,
    /// The server asks for the parameters.
    ParamExchange,
    /// The server asks for the streams.
    CreateStreams,
    /// The server has ended.
    ServerTerminate,
    /// The client has ended.
    ClientTerminate,
    /// The server asks for the client's results, and then gives its own.
    ExchangeResults,
    /// The server has given its results.
    DisplayResults,
    /// The client has them.
    IperfDone,
    /// The server has another client.
    AccessDenied,
    /// The server cannot do it: two numbers of 32 bits follow, its reason ([`Refusal`]) and the system's.
    ServerError,
}

/// Each state and its byte.
const STATES: [(State, i8); 12] = [
    (State::TestStart, 1),
    (State::TestRunning, 2),
    (State::TestEnd, 4),
    (State::ParamExchange, 9),
    (State::CreateStreams, 10),
    (State::ServerTerminate, 11),
    (State::ClientTerminate, 12),
    (State::ExchangeResults, 13),
    (State::DisplayResults, 14),
    (State::IperfDone, 16),
    (State::AccessDenied, -1),
    (State::ServerError, -2),
];

impl State {
    /// The state of a byte; `None` for one that iperf3 does not use.
    pub fn of(byte: u8) -> Option<Self> {
        STATES.iter().find(|(_, number)| *number as u8 == byte).map(|(state, _)| *state)
    }

    /// The byte that is sent.
    pub fn byte(self) -> u8 {
        STATES.iter().find(|(state, _)| *state == self).map_or(0, |(_, number)| *number as u8)
    }
}

/// Why a server refuses a test: numbers that iperf3's client turns into sentences (src/iperf_api.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The test is too long (IEDURATION).
    Duration = 5,
    /// Too many streams (IENUMSTREAMS).
    Streams = 6,
    /// The block is too long (IEBLOCKSIZE).
    Block = 7,
    /// The socket buffer is too large (IEBUFSIZE).
    Buffer = 8,
    /// A segment size that TCP cannot have (IEMSS).
    Mss = 10,
    /// A transport that this server does not speak (IEUNIMP).
    Unsupported = 13,
    /// All streams together are faster than the server allows (IETOTALRATE).
    Rate = 27,
    /// The parameters cannot be read (IERECVPARAMS).
    Parameters = 114,
    /// A stream cannot be made (IECREATESTREAM).
    Stream = 200,
}

impl Refusal {
    /// The state, the number and no reason of the system's, as sent.
    pub(crate) fn bytes(self) -> [u8; 9] {
        let mut bytes = [0; 9];
        bytes[0] = State::ServerError.byte();
        bytes[1..5].copy_from_slice(&(self as u32).to_be_bytes());
        bytes
    }

    /// A server's reason, from the eight bytes behind [`State::ServerError`].
    pub(crate) fn explain(bytes: [u8; 8]) -> String {
        let numbers = i64::from_be_bytes(bytes);
        let reason = (numbers >> 32) as i32;
        let system = numbers as i32;
        let words = match reason {
            5 => "the test is too long for it",
            6 => "too many streams for it",
            7 | 20 => "the block is too long for it",
            8 => "the socket buffer is too large for it",
            10 => "it cannot have this segment size",
            13 => "it does not speak this",
            27 => "faster than it allows",
            22 | 23 => "it requires a user name and password (--rsa-private-key-path of iperf3)",
            _ => "see iperf_api.h of its version",
        };
        let system = if system == 0 { String::new() } else { format!("; its system's error {system}") };
        format!("iperf3's error {reason}: {words}{system}")
    }
}

/// Bytes of a greeting and its answer.
pub(crate) const GREETING_BYTES: usize = 4;
/// Each greeting of a client and the server's answer. Versions before 3.12 send the numbers 123456789 and 987654321, in
/// the byte order of their processor.
const GREETINGS: [[[u8; 4]; 2]; 3] = [
    [*b"9876", *b"6789"],
    [123_456_789_u32.to_le_bytes(), 987_654_321_u32.to_le_bytes()],
    [123_456_789_u32.to_be_bytes(), 987_654_321_u32.to_be_bytes()],
];
/// Bytes of the longer header.
pub(crate) const MAX_HEADER_BYTES: u32 = 16;

/// The greeting, as a client sends it.
pub(crate) fn greeting() -> [u8; 4] {
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

/// Writes the header of a message, with a number of 4 or 8 bytes, to the front of a message that has room for it:
///
/// | bytes | field, big-endian |
/// |---|---|
/// | 0-3, 4-7 | send time: seconds, microseconds of the sender's clock |
/// | 8-11 or 8-15 | number of the message, from 1 |
pub fn write_header(own: ForeignHeader, number_bytes: usize, message: &mut [u8]) {
    let micros = own.sent_ns / 1000;
    let mut header = [0; MAX_HEADER_BYTES as usize];
    header[..4].copy_from_slice(&((micros / 1_000_000) as u32).to_be_bytes());
    header[4..8].copy_from_slice(&((micros % 1_000_000) as u32).to_be_bytes());
    header[8..8 + number_bytes].copy_from_slice(&(own.sequence + 1).to_be_bytes()[8 - number_bytes..]);
    if let Some(room) = message.get_mut(..8 + number_bytes) {
        room.copy_from_slice(&header[..8 + number_bytes]);
    }
}

/// Reads a header; `None` if the message is too short or its number is 0.
pub fn read_header(number_bytes: usize, message: &[u8]) -> Option<ForeignHeader> {
    let header = message.get(..8 + number_bytes)?;
    let seconds = read_number(&header[..4]);
    let micros = read_number(&header[4..8]);
    let number = read_number(&header[8..]);
    Some(ForeignHeader { sequence: number.checked_sub(1)?, sent_ns: (seconds * 1_000_000 + micros) * 1000 })
}

fn read_number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_no_longer_than_it_may_be() {
        let framed = frame_text("{}");
        assert_eq!(framed, [0, 0, 0, 2, b'{', b'}']);
        assert_eq!(text_bytes([0, 0, 32, 0], MAX_PARAMETER_BYTES), Ok(8192));
        assert!(text_bytes([255; 4], MAX_RESULT_BYTES).unwrap_err().contains("4294967295"));
    }

    #[test]
    fn no_stream_has_number_two() {
        assert_eq!([0, 1, 2, 3].map(stream_id), [1, 3, 4, 5]);
    }

    #[test]
    fn each_state_reads_back_and_no_other_byte_is_one() {
        let known: Vec<u8> = (0..=255).filter(|byte| State::of(*byte).is_some()).collect();
        assert_eq!(known, [1, 2, 4, 9, 10, 11, 12, 13, 14, 16, 254, 255]);
        for byte in known {
            assert_eq!(State::of(byte).unwrap().byte(), byte);
        }
    }

    #[test]
    fn a_refusal_is_a_state_and_two_numbers() {
        let bytes = Refusal::Rate.bytes();
        assert_eq!(bytes, [254, 0, 0, 0, 27, 0, 0, 0, 0]);
        assert!(Refusal::explain(bytes[1..].try_into().unwrap()).contains("faster"));
        assert!(Refusal::explain([255; 8]).contains("error -1"));
    }

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
        let header = ForeignHeader { sent_ns: 3_000_004_000, sequence: 257 };
        let mut message = [0xff; 20];
        write_header(header, 8, &mut message);
        assert_eq!(message[..16], [0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 1, 2]);
        assert_eq!(read_header(8, &message), Some(header));
        write_header(header, 4, &mut message);
        assert_eq!(message[8..12], [0, 0, 1, 2]);
        assert_eq!(read_header(4, &message), Some(header));
        assert_eq!(read_header(4, &message[..11]), None);
        assert_eq!(read_header(8, &[0; 16]), None);
    }
}
