//! The states of a test: one signed byte on the control connection.

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

    /// As sent.
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
    pub fn bytes(self) -> [u8; 9] {
        let mut bytes = [0; 9];
        bytes[0] = State::ServerError.byte();
        bytes[1..5].copy_from_slice(&(self as u32).to_be_bytes());
        bytes
    }

    /// A server's reason, from the eight bytes behind [`State::ServerError`].
    pub fn explained(bytes: [u8; 8]) -> String {
        let number = |at: usize| i32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let (reason, system) = (number(0), number(4));
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
        if system == 0 {
            format!("iperf3's error {reason}: {words}")
        } else {
            format!("iperf3's error {reason}: {words}; its system's error {system}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(Refusal::explained(bytes[1..].try_into().unwrap()).contains("faster"));
        assert!(Refusal::explained([255; 8]).contains("error -1"));
    }
}
