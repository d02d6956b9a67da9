//! Exchanges with peers that speak another protocol: two-way measurements with four times, as of STAMP and TWAMP. What
//! is on the wire is the caller's ([`PacketFormat`]); sending, receiving, times and counts are the engine's.

mod count;
mod exchange;
#[cfg(target_os = "linux")]
mod service;

pub use exchange::{Exchange, ExchangeSpec, PeerError, exchange};
#[cfg(target_os = "linux")]
pub use service::{Datagram, Service, clock_error_ns};

/// The test packets of a protocol.
pub trait PacketFormat: Sync {
    /// Bytes of a packet.
    fn bytes(&self) -> usize;
    /// Writes packet number `sequence`, which is sent at this time, nanoseconds since 1970.
    fn write(&self, sequence: u32, sent_unix_ns: u64, message: &mut [u8]);
    /// Reads an answer that arrived at about this time, nanoseconds since 1970; `None` if it is none of this session.
    fn read(&self, message: &[u8], now_unix_ns: u64) -> Option<PeerAnswer>;
}

/// What an answer says. Times are nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerAnswer {
    /// The number of the packet that it answers.
    pub sequence: u32,
    /// The peer's own number.
    pub peer_sequence: u32,
    /// T1: when the packet was sent, as the peer repeats it.
    pub sent_unix_ns: u64,
    /// T2: when the peer received it.
    pub received_unix_ns: u64,
    /// T3: when the peer answered.
    pub answered_unix_ns: u64,
    /// TTL, or hop limit, with which it reached the peer; 0 if the peer does not know.
    pub ttl: u8,
    /// The largest error of the peer's clock, nanoseconds, if the peer says that it is synchronised.
    pub clock_error_ns: Option<u64>,
}
