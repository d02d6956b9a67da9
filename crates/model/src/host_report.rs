//! What one host of a trial saw: its part of the proof and of the figures.

use crate::names::named;
use crate::{Buckets, CpuScope, Family, Io, SocketOptions, Transport};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;

named! {
    /// A host's part in a trial.
    pub enum Role("role") {
        /// Sends (and, in an echo, receives what comes back).
        Sender = "sender",
        /// Receives (and, in an echo, sends it back).
        Receiver = "receiver",
    }
}

named! {
    /// A point on a message's way at which its time is taken.
    pub enum Point("point") {
        /// The time at which it should have been sent.
        Schedule = "schedule",
        /// The program's call: just before a send or a connect, just after a receive or a connect.
        Call = "call",
        /// The kernel, by software, when the interface's driver hands the packet over (SO_TIMESTAMPNS).
        Kernel = "kernel",
        /// The interface itself, where it stamps packets (SO_TIMESTAMPING, raw hardware).
        Interface = "interface",
    }
}

named! {
    /// A clock of a host.
    pub enum Clock("clock") {
        /// CLOCK_MONOTONIC.
        Monotonic = "monotonic",
        /// CLOCK_REALTIME, turned into the monotonic clock's time by the difference of both at the receive.
        Realtime = "realtime",
        /// The interface's own.
        Interface = "interface",
    }
}

/// From where to where a side's delays are, and by which clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelayPoints {
    /// Where a delay begins.
    pub sent: Point,
    /// The clock that told the time there.
    pub sent_clock: Clock,
    /// Where it ends.
    pub received: Point,
    /// The clock that told the time there.
    pub received_clock: Clock,
    /// How the two hosts' clocks were compared; `None` where they are one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared: Option<Compared>,
}

/// How delays between two clocks were taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compared {
    /// How far the receiver's clock is ahead of the sender's before the trial, nanoseconds.
    pub offset_ns: i64,
    /// How wrong a delay may be for it, nanoseconds; 0 until both comparisons are known.
    pub bound_ns: u64,
    /// Nanoseconds that the receiver's clock gained a second, as they were taken out.
    pub skew_ns_per_s: i64,
}

impl DelayPoints {
    /// Between a point where a message leaves and one where it arrives.
    pub fn between(sent: Point, received: Point) -> Self {
        let clock = |point| match point {
            Point::Kernel => Clock::Realtime,
            Point::Interface => Clock::Interface,
            Point::Schedule | Point::Call => Clock::Monotonic,
        };
        DelayPoints {
            sent,
            sent_clock: clock(sent),
            received,
            received_clock: clock(received),
            compared: None,
        }
    }
}

/// All that one host reports of one trial.
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
    /// How far counters of interface, IP, transport and socket moved over the whole trial, warm-up included.
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

/// Messages that left through a socket.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// In the warm-up.
    pub warmup: u64,
    /// In the measured window.
    pub measured: u64,
    /// After it, to say that it is over.
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

/// Messages that arrived at a socket.
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
    /// Arrivals that were not of this trial, or not whole.
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

/// A message that was sent back, by the clocks of two hosts.
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

/// CPU time of a host over its measured window, system-wide (/proc/stat), nanoseconds; of one whose kernel does not count it
/// ([`CpuScope::Outside`]), of the processes that it is, over a whole trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTime {
    /// Whose CPU it is.
    pub scope: CpuScope,
    /// The window.
    pub window_ns: u64,
    /// User and nice.
    pub user_ns: u64,
    /// System.
    pub system_ns: u64,
    /// Hardware interrupts.
    pub irq_ns: u64,
    /// Software interrupts.
    pub softirq_ns: u64,
    /// Idle and waiting for I/O.
    pub idle_ns: u64,
    /// Taken by the hypervisor.
    pub steal_ns: u64,
    /// Whether the host tells only user, system and idle time apart, as Windows does: interrupts are then part of
    /// `system_ns`, and `irq_ns`, `softirq_ns` and `steal_ns` are unknown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undivided: bool,
    /// The agent's own user time in it (rusage).
    pub own_user_ns: u64,
    /// The agent's own system time in it (rusage).
    pub own_system_ns: u64,
}

impl CpuTime {
    /// User, system, irq and softirq.
    pub fn busy_ns(&self) -> u64 {
        self.user_ns.saturating_add(self.kernel_ns())
    }

    /// System, irq and softirq.
    pub fn kernel_ns(&self) -> u64 {
        self.system_ns.saturating_add(self.irq_ns).saturating_add(self.softirq_ns)
    }
}

/// The part of TCP_INFO that is used; `None` where the stack does not fill it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TcpInfo {
    /// Sending maximum segment size, bytes.
    pub snd_mss: Option<u64>,
    /// Smoothed round-trip time, microseconds.
    pub rtt_us: Option<u64>,
    /// Congestion window, segments.
    pub snd_cwnd: Option<u64>,
    /// Segments sent again.
    pub total_retrans: Option<u64>,
    /// Segments with data sent, those sent again included.
    pub data_segs_out: Option<u64>,
    /// Segments with data received.
    pub data_segs_in: Option<u64>,
    /// Payload bytes sent, those sent again included.
    pub bytes_sent: Option<u64>,
    /// Payload bytes sent again.
    pub bytes_retrans: Option<u64>,
    /// Least round-trip time of the last five minutes, microseconds.
    #[serde(default)]
    pub min_rtt_us: Option<u64>,
    /// Mean of the smoothed round-trip time sampled every 10 ms, microseconds.
    pub srtt_mean_us: Option<f64>,
}

impl TcpInfo {
    /// Payload bytes and data segments sent; `None` where the stack does not count them.
    pub fn sent_segments(&self) -> Option<(u64, u64)> {
        Some((self.bytes_sent?, self.data_segs_out.filter(|segments| *segments > 0)?))
    }
}

/// How far counters moved over a trial, by name: `interface.*` (bytes, packets, drops of /proc/net/dev), `ip.*`,
/// `ip6.*`, `udp.*`, `udp6.*`, `tcp.*` (/proc/net/snmp, snmp6), `socket.drops`; of services `services.NAME.asked` and
/// `services.NAME.answered` at the host that asks. Counters that did not move are absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Counters(pub BTreeMap<String, u64>);

impl Counters {
    /// How far a counter moved; 0 where it did not, or is not kept.
    pub fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }
}

/// Where the messages of a stream were lost, warm-up included. The parts are what the counters show; `network` is the rest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drops {
    /// Refused by the sender's socket or queue.
    pub sender_queue: u64,
    /// Dropped at an interface of either host.
    pub interface: u64,
    /// Dropped for a full socket buffer at the receiver.
    pub socket_buffer: u64,
    /// Neither of these.
    pub network: u64,
}
