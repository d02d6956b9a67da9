//! What a socket is told beyond what a trial needs.

use crate::names::named;
use serde::{Deserialize, Serialize};

named! {
    /// Which way a stream flows between the testbed's two hosts.
    pub enum Direction("direction") {
        /// From the sender to the receiver.
        Forward = "forward",
        /// From the receiver to the sender.
        Reverse = "reverse",
        /// Both at once.
        Both = "both",
    }
}

named! {
    /// Which processors the two hosts of a trial run on.
    pub enum Pinning("pinning") {
        /// Each host has half of the cores.
        Halves = "halves",
        /// They also do its receive work.
        Steered = "steered",
        /// Any.
        None = "none",
    }
}

/// Socket options of a trial, the same on both hosts. What is `None` stays as the system has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tuning {
    /// SO_SNDBUF, bytes as asked (Linux doubles them).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_buffer: Option<u32>,
    /// SO_RCVBUF, bytes as asked (Linux doubles them).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_buffer: Option<u32>,
    /// TCP_MAXSEG, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mss: Option<u32>,
    /// TCP_NODELAY; on where it is not said, though a flood in `message` framing then joins its messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodelay: Option<bool>,
    /// TCP_CONGESTION.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion_control: Option<String>,
    /// Differentiated services code point, 0 to 63, in the upper six bits of IP_TOS and IPV6_TCLASS (RFC 2474).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dscp: Option<u8>,
    /// IPv6 flow label, 20 bits (RFC 6437).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow_label: Option<u32>,
    /// SO_BUSY_POLL, microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy_poll_us: Option<u32>,
    /// Whether the kernel spaces a TCP stream's schedule (SO_MAX_PACING_RATE), in place of the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_pacing: Option<bool>,
}

impl Tuning {
    /// Whether nothing is told.
    pub fn is_default(&self) -> bool {
        *self == Tuning::default()
    }
}

/// Socket options as the kernel says that they are, whether they were told or not; `None` where it does not say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SocketOptions {
    /// SO_SNDBUF, bytes as kept: twice what was asked, or what TCP makes of it as it goes.
    pub send_buffer: Option<u32>,
    /// SO_RCVBUF, bytes as kept: twice what was asked, or what TCP makes of it as it goes.
    pub receive_buffer: Option<u32>,
    /// Bytes of payload that a TCP segment to the peer may hold (before there is a peer: TCP_MAXSEG as asked).
    pub mss: Option<u32>,
    /// TCP_NODELAY.
    pub nodelay: Option<bool>,
    /// Differentiated services code point.
    pub dscp: Option<u8>,
    /// IPv6 flow label, 0 is none; `None` where the kernel chooses one.
    pub flow_label: Option<u32>,
    /// SO_MAX_PACING_RATE, bytes of payload per second; `None` where there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_pacing_rate: Option<u64>,
    /// SO_BUSY_POLL, microseconds.
    pub busy_poll_us: Option<u32>,
}
