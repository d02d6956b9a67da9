//! Every figure that stacklab prints, by name: its unit, its better direction, its probe and its definition.

use crate::names::named;
use crate::{Probe, Transport};
use serde::{Deserialize, Serialize};

/// Unit of a metric's figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Megabits (10^6) of application payload per second.
    #[serde(rename = "Mbit/s")]
    MegabitPerSecond,
    /// Messages per second.
    #[serde(rename = "packet/s")]
    PacketPerSecond,
    /// A share of all packets, 0 to 1.
    #[serde(rename = "ratio")]
    Ratio,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Millisecond,
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanosecond,
    /// Per cent of one core: two busy cores are 200.
    #[serde(rename = "% of a core")]
    CorePercent,
    /// A count of events.
    #[serde(rename = "count")]
    Count,
    /// Connections per second.
    #[serde(rename = "connection/s")]
    ConnectionPerSecond,
}

impl Unit {
    /// The unit as printed behind a figure.
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::MegabitPerSecond => "Mbit/s",
            Unit::PacketPerSecond => "packet/s",
            Unit::Ratio => "ratio",
            Unit::Millisecond => "ms",
            Unit::Nanosecond => "ns",
            Unit::CorePercent => "% of a core",
            Unit::Count => "count",
            Unit::ConnectionPerSecond => "connection/s",
        }
    }
}

/// Which direction of a metric is the better one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
}

/// How two arms are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// By the ratio of their figures: rates and times, which are never zero.
    Ratio,
    /// By the difference of their figures: shares and counts, which may well be zero.
    Difference,
}

named! {
    /// A metric. Its definition is [`Metric::definition`]; `docs/method.md` gives the sources.
    pub enum Metric("metric") {
        /// Payload received per second.
        Throughput = "throughput",
        /// Messages received per second.
        PacketRate = "packet_rate",
        /// Share sent and never received.
        Loss = "loss",
        /// Share of arrivals that had arrived before.
        Duplicate = "duplicate",
        /// Share of first copies that arrived after a later one.
        Reorder = "reorder",
        /// Median one-way delay.
        OneWayDelay = "one_way_delay",
        /// Mean one-way delay.
        OneWayDelayMean = "one_way_delay_mean",
        /// Mean absolute difference of consecutive one-way delays.
        Jitter = "jitter",
        /// Smoothed jitter of RTP.
        JitterRfc3550 = "jitter_rfc3550",
        /// Packet delay variation, 99.9th percentile.
        Pdv = "pdv",
        /// Mean of the kernel's smoothed round-trip time during a TCP stream.
        TcpSrtt = "tcp_srtt",
        /// Busy time of the sending host.
        CpuSender = "cpu_sender",
        /// Busy time of the receiving host.
        CpuReceiver = "cpu_receiver",
        /// Kernel time of the sending host.
        CpuSystem = "cpu_system",
        /// Busy time of the receiving host per packet.
        CpuPerPacket = "cpu_per_packet",
        /// TCP segments sent again.
        Retransmits = "retransmits",
        /// IP fragments made by the sending host.
        Fragments = "fragments",
        /// Median round trip, closed loop.
        Rtt = "rtt",
        /// Mean round trip, closed loop.
        RttMean = "rtt_mean",
        /// 99th percentile of the round trip, closed loop.
        RttP99 = "rtt_p99",
        /// 99.9th percentile of the round trip, closed loop.
        RttP999 = "rtt_p999",
        /// Median round trip, open loop.
        RttOpen = "rtt_open",
        /// Mean round trip, open loop.
        RttOpenMean = "rtt_open_mean",
        /// 99th percentile of the round trip, open loop.
        RttOpenP99 = "rtt_open_p99",
        /// 99.9th percentile of the round trip, open loop.
        RttOpenP999 = "rtt_open_p999",
        /// Median time to open a TCP connection.
        ConnectTime = "connect_time",
        /// TCP connections opened per second.
        ConnectRate = "connect_rate",
    }
}

impl Metric {
    /// The probe that takes it.
    pub fn probe(self) -> Probe {
        use Metric::*;
        match self {
            Rtt | RttMean | RttP99 | RttP999 => Probe::Echo,
            RttOpen | RttOpenMean | RttOpenP99 | RttOpenP999 => Probe::EchoOpen,
            ConnectTime | ConnectRate => Probe::Connect,
            _ => Probe::Stream,
        }
    }

    /// Whether it means anything over a transport: TCP repairs losses and shows retransmissions instead.
    pub fn applies_to(self, transport: Transport) -> bool {
        match self {
            Metric::Loss | Metric::Duplicate | Metric::Reorder => transport == Transport::Udp,
            Metric::TcpSrtt | Metric::Retransmits => transport == Transport::Tcp,
            _ => self.probe().supports(transport),
        }
    }

    /// The unit of its figures.
    pub fn unit(self) -> Unit {
        use Metric::*;
        match self {
            Throughput => Unit::MegabitPerSecond,
            PacketRate => Unit::PacketPerSecond,
            Loss | Duplicate | Reorder => Unit::Ratio,
            CpuSender | CpuReceiver | CpuSystem => Unit::CorePercent,
            CpuPerPacket => Unit::Nanosecond,
            Retransmits | Fragments => Unit::Count,
            ConnectRate => Unit::ConnectionPerSecond,
            OneWayDelay | OneWayDelayMean | Jitter | JitterRfc3550 | Pdv | TcpSrtt | Rtt | RttMean
            | RttP99 | RttP999 | RttOpen | RttOpenMean | RttOpenP99 | RttOpenP999 | ConnectTime => {
                Unit::Millisecond
            }
        }
    }

    /// Its better direction.
    pub fn better(self) -> Better {
        match self {
            Metric::Throughput | Metric::PacketRate | Metric::ConnectRate => Better::Higher,
            _ => Better::Lower,
        }
    }

    /// How two arms are compared by it.
    pub fn scale(self) -> Scale {
        match self.unit() {
            Unit::Ratio | Unit::Count => Scale::Difference,
            _ => Scale::Ratio,
        }
    }

    /// The largest difference, in its unit, that counts as none, for metrics on the difference scale: a tenth of a
    /// percentage point for shares, half an event for counts. Metrics on the ratio scale use the study's margin.
    pub fn difference_margin(self) -> f64 {
        match self.unit() {
            Unit::Ratio => 0.001,
            _ => 0.5,
        }
    }

    /// What it is, in one sentence.
    pub fn definition(self) -> &'static str {
        use Metric::*;
        match self {
            Throughput => {
                "application payload received over first to last arrival in the measured window, at the receiver"
            }
            PacketRate => {
                "messages received over first to last arrival in the measured window, at the receiver"
            }
            Loss => "messages sent in the measured window and never received, tail included, over those sent",
            Duplicate => "arrivals of messages that had arrived before, over messages received",
            Reorder => "first copies that arrived after a later message (RFC 4737), over messages received",
            OneWayDelay => "median delay from the send call to the arrival of the whole message (RFC 7679)",
            OneWayDelayMean => "mean delay from the send call to the arrival of the whole message (RFC 7679)",
            Jitter => "mean absolute difference of the one-way delays of consecutive arrivals",
            JitterRfc3550 => {
                "interarrival jitter J += (|D| - J) / 16 in order of arrival (RFC 3550), at the end of the run"
            }
            Pdv => "99.9th percentile minus minimum of the one-way delay (RFC 5481, RFC 8219)",
            TcpSrtt => "mean of TCP_INFO's smoothed round-trip time, sampled every 10 ms during the stream",
            CpuSender => {
                "busy time (user, system, irq, softirq) of the sending host over the measured window"
            }
            CpuReceiver => {
                "busy time (user, system, irq, softirq) of the receiving host over the measured window"
            }
            CpuSystem => "kernel time (system, irq, softirq) of the sending host over the measured window",
            CpuPerPacket => "busy time of the receiving host over messages received",
            Retransmits => "TCP segments sent again, from the first byte to the last (TCP_INFO)",
            Fragments => "IP fragments made by the sending host (FragCreates)",
            Rtt => "median round trip of a message out and back, one outstanding",
            RttMean => "mean round trip of a message out and back, one outstanding",
            RttP99 => "99th percentile of the round trip, one outstanding",
            RttP999 => "99.9th percentile of the round trip, one outstanding",
            RttOpen => "median round trip on a fixed schedule, from the intended send time",
            RttOpenMean => "mean round trip on a fixed schedule, from the intended send time",
            RttOpenP99 => {
                "99th percentile of the round trip on a fixed schedule, from the intended send time"
            }
            RttOpenP999 => {
                "99.9th percentile of the round trip on a fixed schedule, from the intended send time"
            }
            ConnectTime => "median time from connect() to the connection being established",
            ConnectRate => "TCP connections opened one after another, over the measured window",
        }
    }
}
