//! Every metric: its name, probe, unit, better direction and scale.

use crate::factors::family::{Probe, Transport};
use crate::metrics::unit::{Better, Scale, Unit};
use crate::names::named;

named! {
    /// A metric. Its definition is [`Metric::definition`]; `docs/method.md` gives the sources.
    pub enum Metric("metric") {
        /// Payload received per second.
        Throughput = "throughput",
        /// Messages received per second.
        MessageRate = "message_rate",
        /// Payload received per second by the stream of the opposite direction.
        ThroughputReverse = "throughput_reverse",
        /// Share of sent messages that were never received.
        Loss = "loss",
        /// Share of arrivals that were duplicates.
        Duplicate = "duplicate",
        /// Share of messages that arrived after a later one, without duplicates.
        Reorder = "reorder",
        /// Median one-way delay.
        OneWayDelay = "one_way_delay",
        /// Mean one-way delay.
        OneWayDelayMean = "one_way_delay_mean",
        /// Mean absolute difference of consecutive one-way delays.
        Jitter = "jitter",
        /// Smoothed jitter, as in RTP (RFC 3550).
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
        SenderCpuSystem = "sender_cpu_system",
        /// User time of the sending host.
        CpuSenderUser = "cpu_sender_user",
        /// Software interrupts' part of the kernel time of the sending host.
        CpuSenderSoftirq = "cpu_sender_softirq",
        /// User time of the receiving host.
        CpuReceiverUser = "cpu_receiver_user",
        /// Kernel time of the receiving host.
        ReceiverCpuSystem = "receiver_cpu_system",
        /// Software interrupts' part of the kernel time of the receiving host.
        CpuReceiverSoftirq = "cpu_receiver_softirq",
        /// User time of the sending agent alone.
        CpuGeneratorSender = "cpu_generator_sender",
        /// User time of the receiving agent alone.
        CpuGeneratorReceiver = "cpu_generator_receiver",
        /// Busy time of the receiving host per packet.
        ReceiverCpuPerMessage = "receiver_cpu_per_message",
        /// Busy time of the sending host per packet.
        SenderCpuPerMessage = "sender_cpu_per_message",
        /// Busy time of the sending host per rate of payload.
        CpuPerGbitSender = "cpu_per_gbit_sender",
        /// Busy time of the receiving host per rate of payload.
        CpuPerGbitReceiver = "cpu_per_gbit_receiver",
        /// Peak memory of a host's sockets.
        MemorySockets = "memory_sockets",
        /// Actual divided by ideal transfer time.
        TransferTimeRatio = "transfer_time_ratio",
        /// Share of the sent bytes that were not retransmitted.
        TcpEfficiency = "tcp_efficiency",
        /// Increase of the round-trip time during the transfer.
        BufferDelay = "buffer_delay",
        /// Fairness among several flows.
        Fairness = "fairness",
        /// Slices of an interleaved stream with less than half of their arm's median rate.
        Stalls = "stalls",
        /// Median pacing error of messages on a schedule.
        PacingError = "pacing_error",
        /// 99th percentile of it.
        PacingErrorP99 = "pacing_error_p99",
        /// Retransmitted TCP segments per message.
        Retransmits = "retransmits",
        /// IP fragments created by the sending host per message.
        IpFragCreates = "ip_frag_creates",
        /// IP datagrams reassembled by the receiving host per message.
        IpReasmOks = "ip_reasm_oks",
        /// Path MTU found by the sending host.
        PathMtu = "path_mtu",
        /// Busy time of the router next to the sender.
        CpuRouter1 = "cpu_router1",
        /// Busy time of the router next to the receiver.
        CpuRouter2 = "cpu_router2",
        /// IP fragments created by the routers per message.
        IpFragCreatesRouters = "ip_frag_creates_routers",
        /// IP datagrams reassembled by the routers per message.
        IpReasmOksRouters = "ip_reasm_oks_routers",
        /// IP bytes per message on the link between the routers.
        LinkBytes = "link_bytes",
        /// IP bytes per message beyond the header model's value.
        LinkBytesBeyond = "link_bytes_beyond",
        /// Share of a radio channel's time that exchanges took.
        Airtime = "airtime",
        /// Share of a radio channel's time that group frames took.
        GroupAirtime = "group_airtime",
        /// Mean frames of a PPDU.
        AggregateSize = "aggregate_size",
        /// Share of the frames on air that had to be sent again.
        FrameRetries = "frame_retries",
        /// Share of the PPDUs that collided.
        Collisions = "collisions",
        /// Share of the sender's frames that its radio's queue dropped.
        QueueDropsSender = "queue_drops_sender",
        /// Share of the access point's frames that its radio's queue dropped.
        QueueDropsAccessPoint = "queue_drops_access_point",
        /// Share of the receiver's frames that its radio's queue dropped.
        QueueDropsReceiver = "queue_drops_receiver",
        /// Payload that the generator says it sent, beyond what left by the sender's interface.
        GeneratorTxError = "generator_tx_error",
        /// Payload that the generator says it received, beyond what arrived at the receiver's interface.
        GeneratorRxError = "generator_rx_error",
        /// Median round trip, closed loop.
        Rtt = "rtt",
        /// Mean round trip, closed loop.
        RttMean = "rtt_mean",
        /// 99th percentile of the round trip, closed loop.
        RttP99 = "rtt_p99",
        /// 99.9th percentile of the round trip, closed loop.
        RttP999 = "rtt_p999",
        /// Median round trip between the kernel's timestamps of message and answer.
        RttInterface = "rtt_interface",
        /// 99th percentile of it.
        RttInterfaceP99 = "rtt_interface_p99",
        /// Share of messages without an answer, closed loop.
        EchoLoss = "echo_loss",
        /// Median round trip, open loop.
        RttOpen = "rtt_open",
        /// Mean round trip, open loop.
        RttOpenMean = "rtt_open_mean",
        /// 99th percentile of the round trip, open loop.
        RttOpenP99 = "rtt_open_p99",
        /// 99.9th percentile of the round trip, open loop.
        RttOpenP999 = "rtt_open_p999",
        /// Median pacing error of messages, open loop.
        PacingErrorOpen = "pacing_error_open",
        /// 99th percentile of it.
        PacingErrorOpenP99 = "pacing_error_open_p99",
        /// Median round trip during a stream.
        RttUnderLoad = "rtt_under_load",
        /// Mean round trip during a stream.
        RttUnderLoadMean = "rtt_under_load_mean",
        /// 99th percentile of the round trip during a stream.
        RttUnderLoadP99 = "rtt_under_load_p99",
        /// Payload per second of the background stream of an echo.
        LoadThroughput = "load_throughput",
        /// Median time to open a TCP connection.
        ConnectTime = "connect_time",
        /// TCP connections opened per second.
        ConnectRate = "connect_rate",
    }
}

impl Metric {
    /// The probe that measures it.
    pub fn probe(self) -> Probe {
        use Metric::*;
        match self {
            Rtt | RttMean | RttP99 | RttP999 | RttInterface | RttInterfaceP99 | EchoLoss => Probe::Echo,
            RttOpen | RttOpenMean | RttOpenP99 | RttOpenP999 | PacingErrorOpen | PacingErrorOpenP99 => {
                Probe::EchoOpenLoop
            }
            RttUnderLoad | RttUnderLoadMean | RttUnderLoadP99 | LoadThroughput => Probe::EchoUnderLoad,
            ConnectTime | ConnectRate => Probe::Connect,
            _ => Probe::Stream,
        }
    }

    /// Whether a probe can measure it: a paced stream measures some metrics of a stream.
    pub fn is_of(self, probe: Probe) -> bool {
        use Metric::*;
        let paced = self.is_one_way_delay()
            || self.is_generator_error()
            || matches!(self, Loss | Reorder | MessageRate | PacingError | PacingErrorP99)
            || self.is_of_channel();
        let is_echo_loss = self == EchoLoss && probe == Probe::EchoOpenLoop;
        probe == self.probe() || (probe == Probe::Paced && paced) || is_echo_loss
    }

    /// Whether the metric is meaningful over a transport: TCP repairs losses and shows retransmissions instead.
    pub fn applies_to(self, transport: Transport) -> bool {
        use Metric::*;
        match self {
            Loss | Duplicate | Reorder | EchoLoss => transport == Transport::Udp,
            LinkBytes | LinkBytesBeyond => transport == Transport::Udp,
            // The kernel reports a timestamp per datagram sent; a stream's messages share packets.
            RttInterface | RttInterfaceP99 => transport == Transport::Udp,
            TcpSrtt | Retransmits | TransferTimeRatio | TcpEfficiency | BufferDelay => {
                transport == Transport::Tcp
            }
            _ => self.probe().supports(transport),
        }
    }

    /// The unit of its figures.
    pub fn unit(self) -> Unit {
        use Metric::*;
        match self {
            Throughput | ThroughputReverse | LoadThroughput => Unit::MegabitPerSecond,
            MessageRate => Unit::MessagePerSecond,
            Loss
            | Duplicate
            | Reorder
            | Fairness
            | EchoLoss
            | Airtime
            | GroupAirtime
            | FrameRetries
            | Collisions
            | QueueDropsSender
            | QueueDropsAccessPoint
            | QueueDropsReceiver => Unit::Ratio,
            CpuSender | CpuReceiver | SenderCpuSystem | CpuSenderUser | CpuSenderSoftirq
            | CpuReceiverUser | ReceiverCpuSystem | CpuReceiverSoftirq | CpuGeneratorSender
            | CpuGeneratorReceiver | CpuRouter1 | CpuRouter2 => Unit::CorePercent,
            ReceiverCpuPerMessage | SenderCpuPerMessage => Unit::Nanosecond,
            CpuPerGbitSender | CpuPerGbitReceiver => Unit::CorePercentPerGigabit,
            MemorySockets => Unit::Kibibyte,
            TransferTimeRatio => Unit::Times,
            TcpEfficiency | BufferDelay | LinkBytesBeyond | GeneratorTxError | GeneratorRxError => {
                Unit::Percent
            }
            Retransmits | IpFragCreates | IpReasmOks | IpFragCreatesRouters | IpReasmOksRouters => {
                Unit::PerMessage
            }
            Stalls | AggregateSize => Unit::Count,
            PathMtu | LinkBytes => Unit::Byte,
            ConnectRate => Unit::ConnectionPerSecond,
            OneWayDelay | OneWayDelayMean | Jitter | JitterRfc3550 | Pdv | TcpSrtt | Rtt | RttMean
            | RttP99 | RttP999 | RttInterface | RttInterfaceP99 | RttOpen | RttOpenMean | RttOpenP99
            | RttOpenP999 | PacingError | PacingErrorP99 | PacingErrorOpen | PacingErrorOpenP99
            | RttUnderLoad | RttUnderLoadMean | RttUnderLoadP99 | ConnectTime => Unit::Millisecond,
        }
    }

    /// Its better direction.
    pub fn better(self) -> Better {
        use Metric::*;
        match self {
            Throughput | ThroughputReverse | LoadThroughput | MessageRate | ConnectRate | TcpEfficiency
            | Fairness | PathMtu | AggregateSize => Better::Higher,
            _ => Better::Lower,
        }
    }

    /// How two arms are compared by it: by difference if a figure may be zero.
    pub fn scale(self) -> Scale {
        use Metric::*;
        match (self, self.unit()) {
            (
                _,
                Unit::Ratio | Unit::Count | Unit::PerMessage | Unit::Percent | Unit::Kibibyte | Unit::Byte,
            ) => Scale::Difference,
            // A part of the CPU time may be less than one tick of the CPU clock.
            (
                CpuSenderUser | CpuSenderSoftirq | CpuReceiverUser | ReceiverCpuSystem | CpuReceiverSoftirq
                | CpuGeneratorSender | CpuGeneratorReceiver,
                _,
            ) => Scale::Difference,
            (PacingError | PacingErrorP99 | PacingErrorOpen | PacingErrorOpenP99, _) => Scale::Difference,
            _ => Scale::Ratio,
        }
    }

    /// The largest difference, in the metric's unit, that counts as none on the difference scale. Shares: a tenth of
    /// a percentage point (one percentage point for buffer delay, which is not bounded by 100). Counts: half an
    /// event. Events per message: one in a hundred messages; retransmissions one in a thousand, as loss. Parts of the
    /// CPU time: half a per cent of a core. Pacing error: ten microseconds. Memory: one mebibyte, the amount that a
    /// kernel reserves for each processor. Metrics on the ratio scale use the study's margin.
    pub fn difference_margin(self) -> f64 {
        match (self, self.unit()) {
            (Metric::BufferDelay, _) => 1.0,
            (Metric::Retransmits, _) => 0.001,
            (_, Unit::PerMessage) => 0.01,
            (_, Unit::Ratio) => 0.001,
            (_, Unit::Percent) => 0.1,
            (_, Unit::Millisecond) => 0.01,
            (_, Unit::Kibibyte) => 1024.0,
            _ => 0.5,
        }
    }

    /// Whether a figure below zero means something. Of all others such a figure comes from clocks that differ, and the
    /// end of an interval below zero from the interval's width.
    pub fn can_be_negative(self) -> bool {
        use Metric::*;
        self.is_generator_error()
            || matches!(
                self,
                BufferDelay
                    | LinkBytesBeyond
                    | PacingError
                    | PacingErrorP99
                    | PacingErrorOpen
                    | PacingErrorOpenP99
            )
    }

    /// Whether it is the error of a generator's own count against the interface's, which has no verdict.
    pub fn is_generator_error(self) -> bool {
        matches!(self, Metric::GeneratorTxError | Metric::GeneratorRxError)
    }

    /// Whether it is computed from one-way delays.
    pub fn is_one_way_delay(self) -> bool {
        use Metric::*;
        matches!(self, OneWayDelay | OneWayDelayMean | Jitter | JitterRfc3550 | Pdv)
    }

    /// Whether it is of a radio channel: that of a Wi-Fi network.
    pub fn is_of_channel(self) -> bool {
        use Metric::*;
        let drops = matches!(self, QueueDropsSender | QueueDropsAccessPoint | QueueDropsReceiver);
        drops || matches!(self, Airtime | GroupAirtime | AggregateSize | FrameRetries | Collisions)
    }

    /// Whether it is the CPU time of a host and must be reported with its scope.
    pub fn is_host_cpu(self) -> bool {
        use Metric::*;
        match self {
            CpuGeneratorSender | CpuGeneratorReceiver => false,
            ReceiverCpuPerMessage | SenderCpuPerMessage => true,
            _ => matches!(self.unit(), Unit::CorePercent | Unit::CorePercentPerGigabit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_one_transport_has_does_not_apply_to_the_other() {
        use Metric::*;
        for metric in [TcpSrtt, Retransmits, TransferTimeRatio, TcpEfficiency, BufferDelay] {
            assert!(metric.applies_to(Transport::Tcp) && !metric.applies_to(Transport::Udp), "{metric}");
        }
        for metric in [Loss, Duplicate, Reorder, RttInterface, EchoLoss] {
            assert!(metric.applies_to(Transport::Udp) && !metric.applies_to(Transport::Tcp), "{metric}");
        }
        for metric in Metric::ALL {
            let transports = Transport::ALL.iter().filter(|transport| metric.applies_to(**transport));
            assert!(transports.count() > 0, "{metric} applies to no transport");
        }
    }

    #[test]
    fn a_unit_is_written_alike_in_records_and_reports() {
        for metric in Metric::ALL {
            let unit = metric.unit();
            assert_eq!(serde_json::to_string(&unit).unwrap(), format!("{:?}", unit.symbol()));
        }
    }

    #[test]
    fn what_may_be_zero_is_compared_by_difference_and_has_a_margin_of_its_own() {
        use Metric::*;
        for metric in
            [CpuReceiverSoftirq, CpuGeneratorSender, BufferDelay, MemorySockets, PacingError, Fairness]
        {
            assert_eq!(metric.scale(), Scale::Difference, "{metric}");
        }
        for metric in [CpuSender, CpuPerGbitReceiver, SenderCpuPerMessage, TransferTimeRatio, Throughput, Rtt]
        {
            assert_eq!(metric.scale(), Scale::Ratio, "{metric}");
        }
        assert_eq!((Loss.difference_margin(), Stalls.difference_margin()), (0.001, 0.5));
    }

    #[test]
    fn events_of_a_run_are_counted_per_message() {
        use Metric::*;
        for metric in [Retransmits, IpFragCreates, IpReasmOks, IpFragCreatesRouters, IpReasmOksRouters] {
            assert_eq!((metric.unit(), metric.scale()), (Unit::PerMessage, Scale::Difference), "{metric}");
            // Half an event per message would hide a half of all messages.
            assert!(metric.difference_margin() <= 0.01, "{metric}");
        }
    }

    #[test]
    fn the_scope_of_cpu_time_is_told_with_a_hosts_and_not_with_the_generators() {
        let scoped: Vec<_> =
            Metric::ALL.iter().filter(|metric| metric.is_host_cpu()).map(|m| m.name()).collect();
        assert_eq!(scoped.len(), 14, "{scoped:?}");
        assert!(scoped.iter().all(|name| name.contains("cpu_") && !name.contains("generator")), "{scoped:?}");
    }
}
