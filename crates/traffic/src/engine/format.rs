//! Messages in the formats of other programs.

use crate::engine::header::{Header, Phase};
use crate::sys::Nanos;

/// What a datagram of another program says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbered {
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
        write: fn(Numbered, &mut [u8]),
        /// Reads the header; `None` for a message that has none.
        read: fn(&[u8]) -> Option<Numbered>,
    },
}

impl ForeignFormat {
    /// Writes what the format holds of a header.
    pub fn write(self, header: &Header, message: &mut [u8]) {
        if let ForeignFormat::Datagrams { write, .. } = self {
            write(Numbered { sequence: header.sequence, sent_ns: header.sent_ns }, message);
        }
    }

    /// What the format holds, as a header; `None` for a stray.
    pub fn read(self, message: &[u8], token: u32) -> Option<Header> {
        let numbered = match self {
            ForeignFormat::Bytes => Numbered { sequence: 0, sent_ns: 0 },
            ForeignFormat::Datagrams { read, .. } => read(message)?,
        };
        let Numbered { sequence, sent_ns } = numbered;
        Some(Header { token, phase: Phase::Measured, sequence, sent_ns, ..Header::default() })
    }

    /// Whether messages have no ends.
    pub fn is_unframed(self) -> bool {
        matches!(self, ForeignFormat::Bytes)
    }
}
