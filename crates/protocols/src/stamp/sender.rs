//! A session-sender: the packets of one session.

use crate::stamp::packet::{Codec, Probe};
use crate::stamp::time::{ErrorEstimate, TimeFormat};
use crate::stamp::tlv::Extensions;
use stacklab_traffic::peer::{PacketFormat, PeerAnswer};
use std::io;
use std::sync::{Mutex, PoisonError};

/// The packets of one session.
pub struct StampSession {
    codec: Codec,
    extensions: Extensions,
    number: u16,
    error: ErrorEstimate,
    said: Mutex<Option<Extensions>>,
}

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// Packets cannot have this size.
    #[error("{0}")]
    Size(String),
    /// There is no random number.
    #[error("could not get a random number: {0}")]
    Random(io::Error),
}

impl StampSession {
    /// A session with these extensions, in packets of this many octets if a size is given. Without a number it has a
    /// random one.
    pub fn new(
        codec: Codec,
        extensions: Extensions,
        octets: Option<usize>,
        number: Option<u16>,
        error: ErrorEstimate,
    ) -> Result<Self, SessionError> {
        let least = codec.probe_bytes(&extensions);
        let octets = octets.unwrap_or(least);
        let extensions = codec.padded(extensions, octets).ok_or_else(|| {
            let padded = codec.least_padded(&extensions);
            let text = format!("{octets} is not a size of these packets: use {least}, or at least {padded}");
            SessionError::Size(text)
        })?;
        let number = number.map_or_else(random_session, Ok)?;
        Ok(StampSession { codec, extensions, number, error, said: Mutex::new(None) })
    }

    /// Its number.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// What the last answer's TLVs said.
    pub fn said(&self) -> Option<Extensions> {
        *self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A random number of a session, which is never 0.
fn random_session() -> Result<u16, SessionError> {
    let mut bytes = [0; 2];
    getrandom::fill(&mut bytes).map_err(|error| SessionError::Random(io::Error::other(error.to_string())))?;
    Ok(u16::from_be_bytes(bytes).max(1))
}

impl PacketFormat for StampSession {
    fn bytes(&self) -> usize {
        self.codec.probe_bytes(&self.extensions)
    }

    fn write(&self, sequence: u32, sent_unix_ns: u64, message: &mut [u8]) {
        let timestamp = self.error.format.bits(sent_unix_ns);
        let probe = Probe { sequence, timestamp, error: self.error, session: self.number };
        self.codec.write_probe(&probe, &self.extensions, message);
    }

    fn read(&self, message: &[u8], now_unix_ns: u64) -> Option<PeerAnswer> {
        let answer = self.codec.read_answer(message)?;
        // Reflectors of RFC 8762 and TWAMP-Light have zeros there.
        if ![0, self.number].contains(&answer.session) {
            return None;
        }
        let time = |format: TimeFormat, bits| format.unix_ns(bits, now_unix_ns);
        let said = self.codec.read_extensions(message);
        if said.is_some() {
            *self.said.lock().unwrap_or_else(PoisonError::into_inner) = said;
        }
        Some(PeerAnswer {
            sequence: answer.sender_sequence,
            peer_sequence: answer.sequence,
            sent_unix_ns: time(self.error.format, answer.sender_timestamp)?,
            received_unix_ns: time(answer.error.format, answer.received)?,
            answered_unix_ns: time(answer.error.format, answer.timestamp)?,
            ttl: answer.sender_ttl,
            clock_error_ns: answer.error.synchronised.then(|| answer.error.error_ns()),
        })
    }
}
