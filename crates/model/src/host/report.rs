//! The report of one host on one trial, from which the run is validated and its figures are made.

use crate::factors::family::{Family, Transport};
use crate::host::counters::{Counters, CpuTime, TcpInfo};
use crate::host::delay_points::DelayPoints;
use crate::metrics::histogram::Buckets;
use crate::names::named;
use crate::trial::io::Io;
use crate::trial::tuning::SocketOptions;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

named! {
    /// A host's role in a trial.
    pub enum Role("role") {
        /// Sends (and, in an echo, receives what comes back).
        Sender = "sender",
        /// Receives (and, in an echo, sends it back).
        Receiver = "receiver",
    }
}

/// The report of one host on one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostReport {
    /// Its part.
    pub role: Role,
    /// The socket as the kernel has it, not as it was planned.
    pub endpoint: Endpoint,
    /// How messages really got into and out of the kernel; `None` where no socket carried any.
    #[serde(default)]
    pub io: Option<Io>,
    /// Messages sent (or sent back).
    pub sent: Sent,
    /// Messages received.
    pub received: Received,
    /// One-way delays at the receiver of a stream, round trips at the sender of an echo, times to connect.
    pub delays: Option<Delays>,
    /// Where their two times were taken; `None` where there are no delays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_points: Option<DelayPoints>,
    /// Round trips at the sender of an echo from the message's leaving by the interface to its answer's arriving there, where
    /// they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface_delays: Option<Delays>,
    /// Where these two times were taken: by the kernel's software, or by the interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface_points: Option<DelayPoints>,
    /// How long after its schedule each message left, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness: Option<Delays>,
    /// Payload bytes of each flow in the measured window, where there were several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flow_bytes: Vec<u64>,
    /// Interval series, where this host received.
    pub series: Vec<IntervalRow>,
    /// The host's CPU over the measured window, where it counts one.
    pub cpu: Option<CpuTime>,
    /// TCP_INFO at the end of the trial, where the socket is TCP.
    pub tcp: Option<TcpInfo>,
    /// Increments of interface, IP, transport and socket counters over the whole trial, warm-up included.
    pub counters: Counters,
    /// Most memory of all TCP and UDP sockets of this host's kernel in the measured window, KiB, where it was asked
    /// for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket_memory_kib: Option<u64>,
    /// Largest resident set of the agent so far, KiB.
    pub peak_rss_kib: Option<u64>,
}

impl HostReport {
    /// A host that saw nothing yet.
    pub fn new(role: Role, endpoint: Endpoint) -> Self {
        HostReport {
            role,
            endpoint,
            io: None,
            sent: Sent::default(),
            received: Received::default(),
            delays: None,
            delay_points: None,
            interface_delays: None,
            interface_points: None,
            lateness: None,
            flow_bytes: Vec::new(),
            series: Vec::new(),
            cpu: None,
            tcp: None,
            counters: Counters::default(),
            socket_memory_kib: None,
            peak_rss_kib: None,
        }
    }
}

/// A socket and its path as the kernel has them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    /// Family of the socket (SO_DOMAIN).
    pub family: Family,
    /// Protocol of the socket (SO_PROTOCOL).
    pub transport: Transport,
    /// Own address and port.
    pub local: SocketAddr,
    /// Peer's address and port: where a receiver's messages really came from.
    pub peer: SocketAddr,
    /// The interface that holds the own address.
    pub interface: String,
    /// MTU of that interface, bytes.
    pub interface_mtu: u32,
    /// Path MTU of the connected socket, bytes.
    pub path_mtu: Option<u32>,
    /// Offloads of the interface.
    pub offloads: Offloads,
    /// TCP congestion control.
    pub congestion_control: Option<String>,
    /// Options of the socket.
    #[serde(default)]
    pub options: SocketOptions,
}

/// Offloads of an interface that join or split packets; `None` where it does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offloads {
    /// TCP segmentation (TSO, either family).
    pub tso: Option<bool>,
    /// Generic segmentation.
    pub gso: Option<bool>,
    /// Generic receive.
    pub gro: Option<bool>,
    /// Large receive.
    pub lro: Option<bool>,
}

impl Offloads {
    /// The names of those that are on.
    pub fn on(&self) -> Vec<&'static str> {
        let all = [("tso", self.tso), ("gso", self.gso), ("gro", self.gro), ("lro", self.lro)];
        all.into_iter().filter(|(_, on)| *on == Some(true)).map(|(name, _)| name).collect()
    }
}

/// Messages sent by a socket.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// In the warm-up.
    pub warmup: u64,
    /// In the measured window.
    pub measured: u64,
    /// End markers, sent after the window.
    pub markers: u64,
    /// Payload bytes in the measured window.
    pub bytes: u64,
    /// Calls that the kernel refused for want of a buffer, or connections that were refused; made again.
    pub refused: u64,
    /// Nanoseconds of the host's clock at the first measured send.
    pub first_ns: u64,
    /// Nanoseconds of the host's clock after the last measured send.
    pub last_ns: u64,
    /// Largest time behind the schedule, nanoseconds, where there was one.
    pub max_late_ns: Option<u64>,
}

/// Messages received by a socket.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Received {
    /// First copies of warm-up messages.
    pub warmup: u64,
    /// First copies of measured messages.
    pub measured: u64,
    /// Those of them that the first receive of the window brought; a rate counts from there on.
    pub at_first: u64,
    /// Payload bytes of the first copies.
    pub bytes: u64,
    /// Arrivals of measured messages that had arrived before.
    pub duplicates: u64,
    /// First copies with a sequence number below the next expected one (RFC 4737).
    pub reordered: u64,
    /// Arrivals so late that the window of sequence numbers had passed them; counted nowhere else.
    pub beyond_window: u64,
    /// Arrivals that were not of this trial, or truncated.
    pub strays: u64,
    /// Nanoseconds of the host's clock at the first measured arrival.
    pub first_ns: u64,
    /// Nanoseconds of the host's clock at the last measured arrival.
    pub last_ns: u64,
    /// The answered message of an echo with the least round trip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_round_trip: Option<Exchange>,
    /// The least delay in each interval of the series, nanoseconds after its start: time and delay. Where clocks are
    /// compared, until their drift is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub least_delays: Vec<(u64, u64)>,
}

/// A round trip in the clocks of both hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// When it was sent, nanoseconds of the sender's clock.
    pub sent_ns: u64,
    /// When it was sent back, nanoseconds of the other clock.
    pub reflected_ns: u64,
    /// When it came back, nanoseconds of the sender's clock.
    pub returned_ns: u64,
}

impl Exchange {
    /// From sending to return, nanoseconds.
    pub fn round_trip_ns(&self) -> u64 {
        self.returned_ns.saturating_sub(self.sent_ns)
    }
}

/// Delays of the measured window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Delays {
    /// The histogram, nanoseconds.
    pub buckets: Buckets,
    /// Exact mean, nanoseconds.
    pub mean_ns: f64,
    /// Mean absolute difference of consecutive delays, nanoseconds; `None` with fewer than two.
    pub jitter_ns: Option<f64>,
    /// RFC 3550 jitter at the end, nanoseconds; `None` with fewer than two.
    pub jitter_rfc3550_ns: Option<f64>,
}

/// One row of the interval series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IntervalRow {
    /// Start of the row, nanoseconds after the first measured arrival.
    pub start_ns: u64,
    /// First copies that arrived in it.
    pub messages: u64,
    /// Their payload bytes.
    pub bytes: u64,
    /// Their mean delay, nanoseconds.
    pub delay_mean_ns: Option<f64>,
}
