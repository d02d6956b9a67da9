//! How messages enter and leave the kernel, and the socket options beyond those that a trial needs.

use crate::UnknownName;
use crate::names::named;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

named! {
    pub enum Direction("direction") {
        Forward = "forward",
        Reverse = "reverse",
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
    pub enum Pinning("pinning") {
        /// Each host has half of the cores.
        Halves = "halves",
        /// Each host has half of the cores, and these cores also do its receive processing.
        Steered = "steered",
        None = "none",
    }
}

named! {
    #[derive(Default)]
    pub enum SocketKind("socket") {
        /// Of the family of the traffic.
        #[default]
        Native = "native",
        /// An IPv6 socket for both families (IPV6_V6ONLY off), as most servers have: to it an IPv4 address is a mapped
        /// one, `::ffff:192.0.2.1` (RFC 4291, section 2.5.5.2). For IPv4 only.
        Ipv4Mapped = "ipv4-mapped",
    }
}

/// Socket options of a trial, the same on both hosts. `None` keeps the system's default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Tuning {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket: Option<SocketKind>,
    /// SO_SNDBUF and SO_RCVBUF, bytes as requested (Linux doubles them).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_buffer: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_buffer: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mss: Option<u32>,
    /// TCP_NODELAY; on by default, but a flood with `size_of = write` then coalesces its messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodelay: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion_control: Option<String>,
    /// Differentiated services code point, 0 to 63, in the upper six bits of IP_TOS and IPV6_TCLASS (RFC 2474).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dscp: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow_label: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy_poll_us: Option<u32>,
    /// Whether the kernel paces a TCP stream's schedule (SO_MAX_PACING_RATE), instead of the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_pacing: Option<bool>,
}

/// Socket options as the kernel reports them, set or not; `None` if it does not report them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SocketOptions {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket: Option<SocketKind>,
    /// SO_SNDBUF and SO_RCVBUF, bytes as reported: twice the request, or the size that TCP's autotuning chose.
    pub send_buffer: Option<u32>,
    pub receive_buffer: Option<u32>,
    /// Maximum payload bytes of a TCP segment to the peer (without a peer: TCP_MAXSEG as requested).
    pub mss: Option<u32>,
    pub nodelay: Option<bool>,
    pub dscp: Option<u8>,
    /// 0 is none; `None` if the kernel chooses one.
    pub flow_label: Option<u32>,
    /// SO_MAX_PACING_RATE, bytes of payload per second; `None` if there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_pacing_rate: Option<u64>,
    pub busy_poll_us: Option<u32>,
}

impl Tuning {
    /// Whether the hosts have IPv6 sockets for IPv4.
    pub fn maps_ipv4(&self) -> bool {
        self.socket == Some(SocketKind::Ipv4Mapped)
    }
}

named! {
    pub enum Io("I/O path") {
        Send = "send",
        /// Several messages per system call (sendmmsg, recvmmsg); each passes through the stack alone.
        /// A TCP flood with `size_of = write` sets MSG_MORE to fill segments.
        Sendmmsg = "sendmmsg",
        /// One system call per GSO batch: datagrams that are segmented below the IP layer (UDP_SEGMENT); UDP only.
        Gso = "gso",
        /// The kernel sends from the program's memory (MSG_ZEROCOPY); TCP only.
        Zerocopy = "zerocopy",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IoChoice {
    /// `auto`: the program chooses, as if the study had no choice.
    Auto,
    Path(Io),
}

impl fmt::Display for IoChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IoChoice::Auto => f.write_str("auto"),
            IoChoice::Path(io) => io.fmt(f),
        }
    }
}

impl FromStr for IoChoice {
    type Err = UnknownName;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "auto" { Ok(IoChoice::Auto) } else { text.parse().map(IoChoice::Path) }
    }
}
