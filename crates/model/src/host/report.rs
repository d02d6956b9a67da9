//! The report of one host on one trial. Validation and figures are based on it.

use crate::names::named;
use crate::wifi::ChannelUse;
use crate::{
    Buckets, Counters, CpuTime, DelayPoints, Family, HeldSockets, Io, Ipdv, SearchSlice, Slice,
    SocketOptions, TcpInfo, Transport, is_in_bounds,
};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

named! {
    pub enum Role("role") {
        /// Sends (and, in an echo, receives the answers).
        Sender = "sender",
        /// Receives (and, in an echo, sends it back).
        Receiver = "receiver",
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostReport {
    pub role: Role,
    /// The socket as the kernel reports it, not as planned.
    pub endpoint: Endpoint,
    /// How messages actually entered and left the kernel; `None` if no socket carried any.
    #[serde(default)]
    pub io: Option<Io>,
    pub sent: Sent,
    pub received: Received,
    /// One-way delays at the receiver of a stream, round trips at the sender of an echo, or times to connect.
    pub delays: Option<Delays>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_points: Option<DelayPoints>,
    /// Round trips from an echo message's departure at the interface to the arrival of its answer there, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface_delays: Option<Delays>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface_points: Option<DelayPoints>,
    /// By how much each message left after its scheduled time, if there was a schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing_error: Option<Delays>,
    /// Payload bytes of each flow in the measured window, if there were several flows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flow_bytes: Vec<u64>,
    /// Where the messages of each flow came from, if the flows are of several customers: usually one address each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flow_sources: Vec<Vec<SocketAddr>>,
    pub series: Vec<IntervalRow>,
    /// The slices of an arm of an interleaved trial, in order; empty otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slices: Vec<Slice>,
    /// The slices of a search, in order: the sender's report has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub search: Vec<SearchSlice>,
    /// The host's CPU over the measured window, if the host counts CPU time.
    pub cpu: Option<CpuTime>,
    pub tcp: Option<TcpInfo>,
    /// Increments of interface, IP, transport and socket counters over the whole trial, warm-up included.
    pub counters: Counters,
    /// Peak memory of all TCP and UDP sockets of this host's kernel in the measured window, KiB, if it was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket_memory_kib: Option<u64>,
    /// What sockets took that this host held for the probe `sockets`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_sockets: Option<HeldSockets>,
    pub peak_rss_kib: Option<u64>,
    /// The program that drove the traffic here, if not stacklab. The counts are then its own, and the endpoint is the
    /// plan's: port 0 is an unknown one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolReport>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub station: Option<StationReport>,
    /// On Wi-Fi: the use of the channel from the first measured arrival to the last, or the same of each slice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<ChannelUse>,
}

impl HostReport {
    /// The windows in which this host received, nanoseconds of its clock: the measured one, or its slices'.
    pub fn windows(&self) -> Vec<[u64; 2]> {
        if self.slices.is_empty() {
            return vec![[self.received.first_ns, self.received.last_ns]];
        }
        let slices = self.slices.iter().filter(|slice| slice.messages > 0);
        slices.map(|slice| [slice.first_ns, slice.last_ns]).collect()
    }

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
            flow_sources: Vec::new(),
            series: Vec::new(),
            slices: Vec::new(),
            search: Vec::new(),
            cpu: None,
            tcp: None,
            counters: Counters::default(),
            socket_memory_kib: None,
            held_sockets: None,
            peak_rss_kib: None,
            tool: None,
            station: None,
            channel: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    pub family: Family,
    pub transport: Transport,
    pub local: SocketAddr,
    /// Peer's address and port: the actual source of a receiver's messages.
    pub peer: SocketAddr,
    pub interface: String,
    pub interface_mtu: u32,
    pub path_mtu: Option<u32>,
    pub offloads: Offloads,
    pub congestion_control: Option<String>,
    #[serde(default)]
    pub options: SocketOptions,
}

/// Offloads of an interface that coalesce or split packets; `None` if the interface does not report them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offloads {
    pub tso: Option<bool>,
    pub gso: Option<bool>,
    pub gro: Option<bool>,
    pub lro: Option<bool>,
}

impl Offloads {
    pub fn on(&self) -> Vec<&'static str> {
        let all = [("tso", self.tso), ("gso", self.gso), ("gro", self.gro), ("lro", self.lro)];
        all.into_iter().filter(|(_, on)| *on == Some(true)).map(|(name, _)| name).collect()
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    pub warmup: u64,
    pub measured: u64,
    pub markers: u64,
    pub bytes: u64,
    /// Messages not counted in the window, since they were still in the sender's buffer when the trial ended.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub discarded: u64,
    /// Calls that the kernel rejected for lack of buffer space, or refused connections; all were retried.
    pub refused: u64,
    pub first_ns: u64,
    pub last_ns: u64,
    /// Largest delay behind the schedule, nanoseconds, if there was a schedule.
    pub max_late_ns: Option<u64>,
    /// Whether the thread had the realtime priority that the trial asks for.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub at_realtime_priority: bool,
}

impl Sent {
    /// Takes out a flow's last bytes, which did not arrive in time and were discarded with its connection.
    pub fn discard(&mut self, bytes: u64, message_bytes: u64) {
        let messages = bytes.div_ceil(message_bytes.max(1)).min(self.measured);
        self.measured -= messages;
        self.bytes = self.bytes.saturating_sub(bytes);
        self.discarded += messages;
    }

    /// Measured messages that the kernel took, with those that were discarded afterwards.
    pub fn of_window(&self) -> u64 {
        self.measured.saturating_add(self.discarded)
    }

    /// Messages of the whole trial, with warm-up and end markers.
    pub fn of_trial(&self) -> u64 {
        self.warmup.saturating_add(self.measured).saturating_add(self.markers)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Received {
    pub warmup: u64,
    /// Measured messages received, without duplicates.
    pub measured: u64,
    /// Payload bytes of these messages, without duplicates.
    pub bytes: u64,
    /// Payload bytes of the window that its first receive returned. A rate counts from that receive on.
    #[serde(default)]
    pub bytes_at_first: u64,
    /// Payload bytes of a TCP stream's last measured messages, which did not arrive whole.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub cut_bytes: u64,
    pub duplicates: u64,
    /// Reordered messages: first copies with a sequence number below the next expected one (RFC 4737).
    pub reordered: u64,
    /// Messages that arrived after the window of sequence numbers had passed them; not counted elsewhere.
    pub beyond_window: u64,
    /// Messages of another trial, or truncated messages.
    pub strays: u64,
    pub first_ns: u64,
    pub last_ns: u64,
    /// Messages of a search's slice that arrived after the last one was sent and the least delay had passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<u64>,
    /// The number of the last measured message that was lost, from 0, where the load changes within a trial of one
    /// flow. `None` as well if it is one of those long before the last arrival that are forgotten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_missing: Option<u64>,
    /// The variation of delays in the order of sending, if it was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipdv: Option<Ipdv>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_round_trip: Option<Exchange>,
    /// The minimum delay in each interval of the series, kept until the drift of clocks is known: nanoseconds after the
    /// series' start, and delay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub least_delays: Vec<(u64, u64)>,
}

impl Received {
    /// Payload bytes of all measured messages, with those that did not arrive whole.
    pub fn all_bytes(&self) -> u64 {
        self.bytes.saturating_add(self.cut_bytes)
    }
}

/// A round trip, with timestamps of both hosts' clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    pub sent_ns: u64,
    /// Time of the answer, nanoseconds of the other clock.
    pub reflected_ns: u64,
    pub returned_ns: u64,
}

impl Exchange {
    pub fn round_trip_ns(&self) -> u64 {
        self.returned_ns.saturating_sub(self.sent_ns)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Delays {
    pub buckets: Buckets,
    pub mean_ns: f64,
    /// Mean absolute difference of consecutive delays, nanoseconds; `None` with fewer than two.
    pub jitter_ns: Option<f64>,
    pub jitter_rfc3550_ns: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IntervalRow {
    /// Start of the row, nanoseconds after the first measured arrival.
    pub start_ns: u64,
    /// Messages that arrived in the row, without duplicates.
    pub messages: u64,
    /// Payload bytes, those of messages under way included. Data behind a lost TCP segment counts when it arrived if
    /// the kernel counts such segments (Linux), otherwise when the gap is filled.
    pub bytes: u64,
    pub delay_mean_ns: Option<f64>,
}

impl HostReport {
    /// The first figure that is below zero, or no number within bounds: a host's own times and their means are neither.
    pub fn impossible_figure(&self) -> Option<f64> {
        let HostReport { delays, interface_delays, pacing_error, series, slices, tcp, .. } = self;
        let of_delays = [delays, interface_delays, pacing_error]
            .into_iter()
            .flatten()
            .flat_map(|delays| [Some(delays.mean_ns), delays.jitter_ns, delays.jitter_rfc3550_ns]);
        let of_series = series.iter().map(|row| row.delay_mean_ns);
        let of_slices = slices.iter().map(|slice| slice.jitter_ns);
        let of_tcp = tcp.iter().map(|tcp| tcp.srtt_mean_us);
        let mut all = of_delays.chain(of_series).chain(of_slices).chain(of_tcp).flatten();
        all.find(|figure| *figure < 0.0 || !is_in_bounds(*figure))
    }
}

/// A program of others at one end of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolReport {
    pub version: String,
    pub command: String,
    /// What it printed, at most [`ToolReport::MAX_OUTPUT_BYTES`], without control characters.
    pub output: String,
}

/// The intervals of a test of another program, as one end reported them.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSeries {
    pub role: Role,
    /// The intervals. Those without a number of messages have 0.
    pub rows: Vec<IntervalRow>,
}

impl ToolReport {
    pub const MAX_OUTPUT_BYTES: usize = 64 << 10;
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StationReport {
    /// The seed that the medium drew from; `None` for a real adapter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    pub before: Station,
    pub after: Station,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Station {
    pub ssid: String,
    pub bssid: String,
    /// The cipher of unicast frames: `CCMP`, or `NONE`; `unknown` if a real adapter's daemon does not say.
    pub cipher: String,
    /// How keys are agreed on: `WPA2-PSK`, `SAE`, or `NONE`; `unknown` as for the cipher.
    pub key_management: String,
    /// The cipher of group management frames (`BIP`), where management frames are protected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub management_cipher: Option<String>,
    /// Whether it sleeps while it is idle, as its kernel says; `None` if it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_save: Option<bool>,
    /// Centre frequency of the primary channel, MHz.
    pub frequency: u32,
    pub width: u32,
    /// Centre frequency of the whole channel, MHz.
    pub center: u32,
    /// Signal of the last frame from the access point, dBm, as a real adapter reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal_dbm: Option<i32>,
    /// The bit rate of the last frame to the access point, as a real adapter reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tx_bitrate: Option<String>,
    /// The frame of a packet of each family between this station and the access point, of a simulated one.
    pub frames: Vec<StationFrame>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StationFrame {
    pub family: Family,
    /// The packet's length with its IP header, bytes.
    pub packet: u64,
    /// The frame's length without the frame check sequence, bytes.
    pub bytes: u64,
    pub protected: bool,
}
