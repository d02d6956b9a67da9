//! The report of one host on one trial. Validation and figures are based on it.

use crate::factors::family::{Family, Transport};
use crate::host::counters::{Counters, CpuTime, TcpInfo};
use crate::host::delay_points::DelayPoints;
use crate::host::slice::Slice;
use crate::host::station::StationReport;
use crate::host::tool::ToolReport;
use crate::metrics::histogram::Buckets;
use crate::names::named;
use crate::trial::io::Io;
use crate::trial::tuning::SocketOptions;
use crate::wifi::ChannelUse;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

named! {
    /// A host's role in a trial.
    pub enum Role("role") {
        /// Sends (and, in an echo, receives the answers).
        Sender = "sender",
        /// Receives (and, in an echo, sends it back).
        Receiver = "receiver",
    }
}

/// The report of one host on one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostReport {
    /// Its role.
    pub role: Role,
    /// The socket as the kernel reports it, not as planned.
    pub endpoint: Endpoint,
    /// How messages actually entered and left the kernel; `None` if no socket carried any.
    #[serde(default)]
    pub io: Option<Io>,
    /// Messages sent (or sent back).
    pub sent: Sent,
    /// Messages received.
    pub received: Received,
    /// One-way delays at the receiver of a stream, round trips at the sender of an echo, or times to connect.
    pub delays: Option<Delays>,
    /// The points of the two timestamps; `None` if there are no delays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_points: Option<DelayPoints>,
    /// Round trips at the sender of an echo, from the message's departure at the interface to the arrival of its
    /// answer there, if they were requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface_delays: Option<Delays>,
    /// The points of these two timestamps: the kernel's software, or the interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface_points: Option<DelayPoints>,
    /// By how much each message left after its scheduled time, if there was a schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing_error: Option<Delays>,
    /// Payload bytes of each flow in the measured window, if there were several flows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flow_bytes: Vec<u64>,
    /// Interval series, if this host received.
    pub series: Vec<IntervalRow>,
    /// The slices of an arm of an interleaved trial, in order; empty otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slices: Vec<Slice>,
    /// The host's CPU over the measured window, if the host counts CPU time.
    pub cpu: Option<CpuTime>,
    /// TCP_INFO at the end of the trial, if the socket is TCP.
    pub tcp: Option<TcpInfo>,
    /// Increments of interface, IP, transport and socket counters over the whole trial, warm-up included.
    pub counters: Counters,
    /// Peak memory of all TCP and UDP sockets of this host's kernel in the measured window, KiB, if it was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket_memory_kib: Option<u64>,
    /// Peak resident set of the agent so far, KiB.
    pub peak_rss_kib: Option<u64>,
    /// The program that drove the traffic here, if it was not stacklab. The report's counts are then its own, and the
    /// endpoint is the plan's: port 0 is an unknown one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolReport>,
    /// The host's station, if its network is Wi-Fi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub station: Option<StationReport>,
    /// The use of the radio channel while this host received, if its network is Wi-Fi: from the first measured arrival
    /// to the last, or the same of each slice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<ChannelUse>,
}

impl HostReport {
    /// The windows in which this host received, nanoseconds of its clock: the measured one, or its slices'.
    pub fn windows(&self) -> Vec<[u64; 2]> {
        let slices = self.slices.iter().filter(|slice| slice.messages > 0);
        match &self.received {
            received if self.slices.is_empty() => vec![[received.first_ns, received.last_ns]],
            _ => slices.map(|slice| [slice.first_ns, slice.last_ns]).collect(),
        }
    }

    /// The report of a host without any traffic yet.
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
            pacing_error: None,
            flow_bytes: Vec::new(),
            series: Vec::new(),
            slices: Vec::new(),
            cpu: None,
            tcp: None,
            counters: Counters::default(),
            socket_memory_kib: None,
            peak_rss_kib: None,
            tool: None,
            station: None,
            channel: None,
        }
    }
}

/// A socket and its path, as the kernel reports them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    /// Family of the socket (SO_DOMAIN).
    pub family: Family,
    /// Protocol of the socket (SO_PROTOCOL).
    pub transport: Transport,
    /// Own address and port.
    pub local: SocketAddr,
    /// Peer's address and port: the actual source of a receiver's messages.
    pub peer: SocketAddr,
    /// The interface with the own address.
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

/// Offloads of an interface that coalesce or split packets; `None` if the interface does not report them.
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
    /// The names of the enabled offloads.
    pub fn on(&self) -> Vec<&'static str> {
        let all = [("tso", self.tso), ("gso", self.gso), ("gro", self.gro), ("lro", self.lro)];
        all.into_iter().filter(|(_, on)| *on == Some(true)).map(|(name, _)| name).collect()
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
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
    /// Messages not counted in the window, since they were still in the sender's buffer when the trial ended.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub discarded: u64,
    /// Calls that the kernel rejected for lack of buffer space, or refused connections; all were retried.
    pub refused: u64,
    /// Nanoseconds of the host's clock at the first measured send.
    pub first_ns: u64,
    /// Nanoseconds of the host's clock after the last measured send.
    pub last_ns: u64,
    /// Largest delay behind the schedule, nanoseconds, if there was a schedule.
    pub max_late_ns: Option<u64>,
}

impl Sent {
    /// Takes out the last bytes of a flow, which did not arrive in time and were discarded with its connection.
    pub fn discard(&mut self, bytes: u64, message_bytes: u64) {
        let messages = bytes.div_ceil(message_bytes.max(1)).min(self.measured);
        self.measured -= messages;
        self.bytes = self.bytes.saturating_sub(bytes);
        self.discarded += messages;
    }

    /// Messages of the whole trial, with warm-up and end markers.
    pub fn of_trial(&self) -> u64 {
        self.warmup.saturating_add(self.measured).saturating_add(self.markers)
    }
}

/// Messages received by a socket.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Received {
    /// Warm-up messages received, without duplicates.
    pub warmup: u64,
    /// Measured messages received, without duplicates.
    pub measured: u64,
    /// Payload bytes of these messages, without duplicates.
    pub bytes: u64,
    /// Payload bytes of the window that its first receive returned. A rate counts from that receive on.
    #[serde(default)]
    pub bytes_at_first: u64,
    /// Payload bytes of a TCP stream's last measured messages, which did not arrive whole.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cut_bytes: u64,
    /// Duplicates of measured messages.
    pub duplicates: u64,
    /// Reordered messages: first copies with a sequence number below the next expected one (RFC 4737).
    pub reordered: u64,
    /// Messages that arrived after the window of sequence numbers had passed them; not counted elsewhere.
    pub beyond_window: u64,
    /// Messages of another trial, or truncated messages.
    pub strays: u64,
    /// Nanoseconds of the host's clock at the first measured arrival.
    pub first_ns: u64,
    /// Nanoseconds of the host's clock at the last measured arrival.
    pub last_ns: u64,
    /// The echo message with the minimum round trip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_round_trip: Option<Exchange>,
    /// The minimum delay in each interval of the series, nanoseconds after its start: time and delay. If clocks are
    /// compared, kept until their drift is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub least_delays: Vec<(u64, u64)>,
}

/// A round trip, with timestamps of both hosts' clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// Send time, nanoseconds of the sender's clock.
    pub sent_ns: u64,
    /// Time of the answer, nanoseconds of the other clock.
    pub reflected_ns: u64,
    /// Arrival of the answer, nanoseconds of the sender's clock.
    pub returned_ns: u64,
}

impl Exchange {
    /// The round-trip time, nanoseconds.
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
    /// Final RFC 3550 jitter, nanoseconds; `None` with fewer than two.
    pub jitter_rfc3550_ns: Option<f64>,
}

/// One row of the interval series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IntervalRow {
    /// Start of the row, nanoseconds after the first measured arrival.
    pub start_ns: u64,
    /// Messages that arrived in the row, without duplicates.
    pub messages: u64,
    /// Payload bytes that arrived in the row, those of messages under way included. Data behind a lost TCP segment
    /// counts when it arrived if the kernel counts such segments (Linux), otherwise when the gap is filled.
    pub bytes: u64,
    /// Their mean delay, nanoseconds.
    pub delay_mean_ns: Option<f64>,
}
