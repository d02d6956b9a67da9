//! Control messages (cmsg) of a packet.

use crate::sys::types::Nanos;

/// The control messages (cmsg) of a received datagram.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RecvMeta {
    /// Software receive timestamp, nanoseconds of the realtime clock, where enabled.
    pub software_rx_ns: Option<Nanos>,
    /// Hardware receive timestamp, nanoseconds of the interface's own clock, where the interface takes it.
    pub hardware_rx_ns: Option<Nanos>,
    /// Segment size of datagrams that GRO coalesced, bytes.
    pub gro_segment_bytes: Option<usize>,
    /// TTL, or hop limit, with which it arrived, where enabled.
    pub ttl: Option<u8>,
}

/// A transmit timestamp.
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "other systems give none"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TxTimestamp {
    /// Software timestamp: handed to the driver, nanoseconds of the realtime clock.
    Software(Nanos),
    /// Hardware timestamp, nanoseconds of the interface's own clock.
    Hardware(Nanos),
}
