//! The definition of each metric.

use crate::metrics::metric::Metric;

impl Metric {
    /// The metric's definition, in one sentence.
    pub fn definition(self) -> &'static str {
        use Metric::*;
        match self {
            Throughput => {
                "application payload received over first to last arrival in the measured window, at the receiver"
            }
            ThroughputReverse => {
                "throughput of the stream from the second host to the first, while one flows each way"
            }
            MessageRate => {
                "messages received over first to last arrival in the measured window, at the receiver"
            }
            Loss => "messages sent in the measured window and never received, tail included, over those sent",
            Duplicate => "arrivals of messages that had arrived before, over messages received",
            Reorder => "first copies that arrived after a later message (RFC 4737), over messages received",
            OneWayDelay => "median delay from the send call to the arrival of the whole message (RFC 7679)",
            OneWayDelayMean => "mean delay from the send call to the arrival of the whole message (RFC 7679)",
            Jitter => "mean absolute difference of the one-way delays of consecutive arrivals within a flow",
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
            SenderCpuSystem => {
                "kernel time (system, irq, softirq) of the sending host over the measured window"
            }
            CpuSenderUser => "user time of the sending host over the measured window, all processes",
            CpuSenderSoftirq => {
                "software interrupts of the sending host over the measured window, a part of its kernel time"
            }
            CpuReceiverUser => "user time of the receiving host over the measured window, all processes",
            ReceiverCpuSystem => {
                "kernel time (system, irq, softirq) of the receiving host over the measured window"
            }
            CpuReceiverSoftirq => {
                "software interrupts of the receiving host over the measured window, a part of its kernel time"
            }
            CpuGeneratorSender => {
                "user time of the sending agent's own process over the measured window (getrusage): the \
                 instrument's instructions, without the kernel's"
            }
            CpuGeneratorReceiver => {
                "user time of the receiving agent's own process over the measured window (getrusage): the \
                 instrument's instructions, without the kernel's"
            }
            ReceiverCpuPerMessage => "busy time of the receiving host over messages received",
            SenderCpuPerMessage => {
                "busy time of the sending host over messages sent; on a veth pair without a rate, the sender's thread \
                 also runs the receiving stack up to the socket"
            }
            CpuPerGbitSender => "busy time of the sending host over the rate of payload sent",
            CpuPerGbitReceiver => "busy time of the receiving host over the rate of payload received",
            MemorySockets => {
                "maximum memory of all TCP and UDP sockets of a host's kernel in the measured window (sockstat's mem, \
                 every 10 ms), the larger of both hosts'"
            }
            TransferTimeRatio => {
                "transfer time of the payload over its time in full segments at the link's rate (RFC 6349)"
            }
            TcpEfficiency => {
                "bytes sent without retransmissions, over all bytes sent, whole connection (RFC 6349)"
            }
            BufferDelay => {
                "mean smoothed round-trip time during the stream beyond the connection's least, over the least (RFC 6349)"
            }
            Fairness => "Jain's index of the flows' received payload: 1 is even, 1/n is all for one of n",
            Stalls => {
                "slices whose rate is below half of the median slice of their arm, interleaved trials only"
            }
            PacingError => "median time from the scheduled send of a message to its actual send",
            PacingErrorP99 => {
                "99th percentile of the time from the scheduled send of a message to its actual send"
            }
            Retransmits => "TCP segments retransmitted over messages sent, whole connection (TCP_INFO)",
            IpFragCreates => {
                "IP fragments created by the sending host (FragCreates) over messages sent, whole trial"
            }
            IpReasmOks => {
                "IP datagrams reassembled by the receiving host (ReasmOKs) over messages sent, whole trial"
            }
            PathMtu => "path MTU to the receiver that the sending host's kernel has found",
            CpuRouter1 => {
                "busy time (user, system, irq, softirq) of the router next to the sender in the measured window"
            }
            CpuRouter2 => {
                "busy time (user, system, irq, softirq) of the router next to the receiver in the measured window"
            }
            IpFragCreatesRouters => {
                "IP fragments created by both routers (FragCreates) over messages sent, whole trial"
            }
            IpReasmOksRouters => {
                "IP datagrams reassembled by both routers (ReasmOKs) over messages sent, whole trial"
            }
            LinkBytes => {
                "bytes of IP packets on the middle link for each UDP message: per packet there, times its packets by the header model"
            }
            LinkBytesBeyond => {
                "the deviation of the same from the header model of the message and its mechanism, whole trial"
            }
            Airtime => {
                "time of exchanges (PPDUs, responses, waits for missing ones, collisions) over the time of the radio \
                 channel, from first to last arrival in the measured window"
            }
            GroupAirtime => {
                "time of PPDUs to groups (ARP requests, neighbour solicitations, beacons) over the time of the radio channel, \
                 from first to last arrival in the measured window"
            }
            AggregateSize => {
                "frames on air over PPDUs, of all nodes of the radio channel: mean size of an A-MPDU"
            }
            FrameRetries => "frames on air that had to be sent again, over all of them, of all nodes",
            Collisions => "PPDUs that collided with another node's, over PPDUs, of all nodes",
            QueueDropsSender => {
                "frames dropped by the full queue of the sending station, over the frames queued there"
            }
            QueueDropsAccessPoint => {
                "frames dropped by the full queue of the access point, over the frames queued there"
            }
            QueueDropsReceiver => {
                "frames dropped by the full queue of the receiving station, over the frames queued there"
            }
            GeneratorTxError => {
                "payload bytes that the generator says it sent, beyond what the sender's interface counted less the model's \
                 headers, over the latter, whole trial"
            }
            GeneratorRxError => {
                "payload bytes that the generator says it received, beyond what the receiver's interface counted less the \
                 model's headers and what no socket had room for, over the latter, whole trial"
            }
            Rtt => "median round trip of a message out and back, one outstanding",
            RttMean => "mean round trip of a message out and back, one outstanding",
            RttP99 => "99th percentile of the round trip, one outstanding",
            RttP999 => "99.9th percentile of the round trip, one outstanding",
            RttInterface => {
                "median round trip between the kernel's transmit timestamp of the message and its receive timestamp of the answer (hardware timestamps if the interface has both), one outstanding"
            }
            RttInterfaceP99 => "99th percentile of the round trip at the sending host's interface",
            EchoLoss => "messages sent in the measured window whose answer never came, over messages sent",
            RttOpen => "median round trip on a fixed schedule, from the intended send time",
            RttOpenMean => "mean round trip on a fixed schedule, from the intended send time",
            RttOpenP99 => {
                "99th percentile of the round trip on a fixed schedule, from the intended send time"
            }
            RttOpenP999 => {
                "99.9th percentile of the round trip on a fixed schedule, from the intended send time"
            }
            PacingErrorOpen => {
                "median time from the scheduled send of a message to its actual send, open loop"
            }
            PacingErrorOpenP99 => {
                "99th percentile of the time from the scheduled send of a message to its actual send, open loop"
            }
            RttUnderLoad => {
                "median round trip of a message out and back while a stream flows, one outstanding"
            }
            RttUnderLoadMean => "mean round trip while a stream flows, one outstanding",
            RttUnderLoadP99 => "99th percentile of the round trip while a stream flows, one outstanding",
            LoadThroughput => "throughput of the echo's concurrent stream, over the stream's window",
            ConnectTime => "median time from connect() to the connection being established",
            ConnectRate => "TCP connections opened one after another, over the measured window",
        }
    }
}
