//! Socket options beyond those that a trial needs.

use crate::names::named;
use serde::{Deserialize, Serialize};

named! {
    /// The direction of a stream between the testbed's two hosts.
    pub enum Direction("direction") {
        /// From the sender to the receiver.
        Forward = "forward",
        /// From the receiver to the sender.
        Reverse = "reverse",
        /// Both at once.
        Both = "both",
    }
}

impl Direction {
    /// Which of the two hosts sends in each stream, the measured one first: 0 is the testbed's sender, 1 its receiver.
    pub fn senders(self) -> &'static [usize] {
        match self {
            Direction::Forward => &[0],
            Direction::Reverse => &[1],
            Direction::Both => &[0, 1],
        }
    }
}

named! {
    /// The processors of the two hosts of a trial.
    pub enum Pinning("pinning") {
        /// Each host has half of the cores.
        Halves = "halves",
        /// Each host has half of the cores, and these cores also do its receive processing.
        Steered = "steered",
        /// Any processor.
        None = "none",
    }
}

/// Socket options of a trial, the same on both hosts. `None` keeps the system's default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Tuning {
    /// SO_SNDBUF, bytes as requested (Linux doubles them).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_buffer: Option<u32>,
    /// SO_RCVBUF, bytes as requested (Linux doubles them).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_buffer: Option<u32>,
    /// TCP_MAXSEG, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mss: Option<u32>,
    /// TCP_NODELAY; on by default, but a flood with `size_of = write` then coalesces its messages.
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
    /// Whether the kernel paces a TCP stream's schedule (SO_MAX_PACING_RATE), instead of the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_pacing: Option<bool>,
}

impl Tuning {
    /// Whether no option is set.
    pub fn is_default(&self) -> bool {
        *self == Tuning::default()
    }
}

/// Socket options as the kernel reports them, whether they were set or not; `None` if the kernel does not report
/// them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SocketOptions {
    /// SO_SNDBUF, bytes as reported: twice the request, or the size that TCP's autotuning chose.
    pub send_buffer: Option<u32>,
    /// SO_RCVBUF, bytes as reported: twice the request, or the size that TCP's autotuning chose.
    pub receive_buffer: Option<u32>,
    /// Maximum payload bytes of a TCP segment to the peer (without a peer: TCP_MAXSEG as requested).
    pub mss: Option<u32>,
    /// TCP_NODELAY.
    pub nodelay: Option<bool>,
    /// Differentiated services code point.
    pub dscp: Option<u8>,
    /// IPv6 flow label, 0 is none; `None` if the kernel chooses one.
    pub flow_label: Option<u32>,
    /// SO_MAX_PACING_RATE, bytes of payload per second; `None` if there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_pacing_rate: Option<u64>,
    /// SO_BUSY_POLL, microseconds.
    pub busy_poll_us: Option<u32>,
}
