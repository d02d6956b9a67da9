//! Every metric, in one table.

mod of_cell;
mod possible;
pub(crate) mod unit;

use crate::names::named;
use crate::{Better, Probe, Scale, Transport, Unit};

struct MetricRow {
    label: &'static str,
    probe: Probe,
    unit: Unit,
    traits: &'static [Trait],
    definition: &'static str,
}

#[derive(Clone, Copy, PartialEq)]
enum Trait {
    Higher,
    /// Of this transport only: TCP repairs losses, and a stream's messages share packets.
    Only(Transport),
    /// Compared by difference, of which this much counts as none.
    Margin(f64),
    /// A figure below zero means something, and is not due to clocks that differ or to an interval's width.
    Negative,
    Paced,
    OpenLoop,
    /// It describes a path and follows from its headers: neither more nor less is an advantage.
    Property,
    OfDelay,
    OfChannel,
    OfGenerator,
    /// CPU time of a process, not of a host.
    OfProcess,
}
use Trait::{
    Higher, Margin, Negative, OfChannel, OfDelay, OfGenerator, OfProcess, Only, OpenLoop, Paced, Property,
};
const TCP: Trait = Only(Transport::Tcp);
const UDP: Trait = Only(Transport::Udp);

/// Name, label, probe, unit, traits, and the definition in one sentence. `docs/method.md` gives the sources.
macro_rules! metrics {
    ($($variant:ident = $name:literal, $label:literal, $probe:ident, $unit:ident, [$($trait:expr),*], $definition:literal;)+) => {
        named! {
            /// A metric. Its definition is [`Metric::definition`].
            pub enum Metric("metric") { $(#[doc = $definition] $variant = $name,)+ }
        }

        /// In the order of [`Metric::ALL`].
        static ROWS: &[MetricRow] = &[$(MetricRow {
            label: $label,
            probe: Probe::$probe,
            unit: Unit::$unit,
            traits: &[$($trait),*],
            definition: $definition,
        },)+];
    };
}

metrics! {
    Throughput = "throughput", "throughput", Stream, MegabitPerSecond, [Higher],
        "application payload received over first to last arrival in the measured window, at the receiver";
    MessageRate = "message_rate", "message rate", Stream, MessagePerSecond, [Higher, Paced],
        "messages received over first to last arrival in the measured window, at the receiver";
    ThroughputReverse = "throughput_reverse", "reverse throughput", Stream, MegabitPerSecond, [Higher],
        "throughput of the stream from the second host to the first, while one flows each way";
    Loss = "loss", "loss", Stream, Ratio, [UDP, Paced],
        "messages sent in the measured window and never received, tail included, over those sent";
    Duplicate = "duplicate", "duplicates", Stream, Ratio, [UDP],
        "arrivals of messages that had arrived before, over messages received";
    Reorder = "reorder", "reordering", Stream, Ratio, [UDP, Paced],
        "first copies that arrived after a later message (RFC 4737), over messages received";
    OneWayDelay = "one_way_delay", "one-way delay", Stream, Millisecond, [OfDelay],
        "median delay from the send call to the arrival of the whole message (RFC 7679)";
    OneWayDelayMean = "one_way_delay_mean", "mean one-way delay", Stream, Millisecond, [OfDelay],
        "mean delay from the send call to the arrival of the whole message (RFC 7679)";
    OneWayDelayP999 = "one_way_delay_p999", "one-way delay p99.9", Stream, Millisecond, [OfDelay],
        "99.9th percentile of the delay from the send call to the arrival of the whole message: RFC 8219's worst case latency, \
         of all messages";
    Jitter = "jitter", "jitter", Stream, Millisecond, [OfDelay],
        "mean absolute difference of the one-way delays of consecutive arrivals within a flow";
    JitterRfc3550 = "jitter_rfc3550", "jitter (RFC 3550)", Stream, Millisecond, [OfDelay],
        "interarrival jitter J += (|D| - J) / 16 in order of arrival (RFC 3550), at the end of the run";
    Pdv = "pdv", "delay variation", Stream, Millisecond, [OfDelay],
        "99.9th percentile minus minimum of the one-way delay (RFC 5481, RFC 8219)";
    IpdvMin = "ipdv_min", "least IPDV", Stream, Millisecond, [OfDelay, UDP, Higher, Margin(0.01), Negative],
        "minimum of the one-way delay of a message less that of the one sent before it, both of one slice (RFC 3393, RFC 8219)";
    IpdvMedian = "ipdv_median", "median IPDV", Stream, Millisecond, [OfDelay, UDP, Margin(0.01), Negative],
        "median of the same differences";
    IpdvMax = "ipdv_max", "greatest IPDV", Stream, Millisecond, [OfDelay, UDP, Margin(0.01), Negative],
        "maximum of the same differences";
    TcpSrtt = "tcp_srtt", "TCP smoothed RTT", Stream, Millisecond, [TCP],
        "mean of TCP_INFO's smoothed round-trip time, sampled every 10 ms during the stream";
    CpuSender = "cpu_sender", "sender CPU", Stream, CorePercent, [],
        "busy time (user, system, irq, softirq) of the sending host over the measured window";
    CpuReceiver = "cpu_receiver", "receiver CPU", Stream, CorePercent, [],
        "busy time (user, system, irq, softirq) of the receiving host over the measured window";
    SenderCpuSystem = "sender_cpu_system", "sender kernel CPU", Stream, CorePercent, [],
        "kernel time (system, irq, softirq) of the sending host over the measured window";
    CpuSenderUser = "cpu_sender_user", "sender user CPU", Stream, CorePercent, [Margin(0.5)],
        "user time of the sending host over the measured window, all processes";
    CpuSenderSoftirq = "cpu_sender_softirq", "sender softirq CPU", Stream, CorePercent, [Margin(0.5)],
        "software interrupts of the sending host over the measured window, a part of its kernel time";
    CpuReceiverUser = "cpu_receiver_user", "receiver user CPU", Stream, CorePercent, [Margin(0.5)],
        "user time of the receiving host over the measured window, all processes";
    ReceiverCpuSystem = "receiver_cpu_system", "receiver kernel CPU", Stream, CorePercent, [Margin(0.5)],
        "kernel time (system, irq, softirq) of the receiving host over the measured window";
    CpuReceiverSoftirq = "cpu_receiver_softirq", "receiver softirq CPU", Stream, CorePercent, [Margin(0.5)],
        "software interrupts of the receiving host over the measured window, a part of its kernel time";
    CpuGeneratorSender = "cpu_generator_sender", "generator CPU, sender", Stream, CorePercent, [Margin(0.5), OfProcess],
        "user time of the sending agent's own process over the measured window (getrusage): the instrument's \
         instructions, without the kernel's";
    CpuGeneratorReceiver = "cpu_generator_receiver", "generator CPU, receiver", Stream, CorePercent, [Margin(0.5), OfProcess],
        "user time of the receiving agent's own process over the measured window (getrusage): the instrument's \
         instructions, without the kernel's";
    ReceiverCpuPerMessage = "receiver_cpu_per_message", "receiver CPU per message", Stream, Nanosecond, [],
        "busy time of the receiving host over messages received";
    SenderCpuPerMessage = "sender_cpu_per_message", "sender CPU per message", Stream, Nanosecond, [],
        "busy time of the sending host over messages sent; on a veth pair without a rate, the sender's thread \
         also runs the receiving stack up to the socket";
    CpuPerGbitSender = "cpu_per_gbit_sender", "sender CPU per Gbit/s", Stream, CorePercentPerGigabit, [],
        "busy time of the sending host over the rate of payload sent";
    CpuPerGbitReceiver = "cpu_per_gbit_receiver", "receiver CPU per Gbit/s", Stream, CorePercentPerGigabit, [],
        "busy time of the receiving host over the rate of payload received";
    MemorySockets = "memory_sockets", "socket memory", Stream, Kibibyte, [],
        "maximum memory of all TCP and UDP sockets of a host's kernel in the measured window (sockstat's mem, \
         every 10 ms), the larger of both hosts'";
    MemoryPerRoute = "memory_per_route", "memory per route", Stream, BytePerEntry, [],
        "kernel memory that the further routes of the cell's family (factor routes) took when the testbed was built, over \
         their number: objects in use, memory of each processor and mapped pages";
    MemoryPerConnection = "memory_per_connection", "memory per tracked connection", Stream, BytePerEntry, [],
        "the same of further tracked connections (factor conntrack)";
    MemoryPerRule = "memory_per_rule", "memory per firewall rule", Stream, BytePerEntry, [],
        "the same of firewall rules, or of entries of their set or map (factors rules and rule_form)";
    MemoryPerNeighbour = "memory_per_neighbour", "memory per neighbour", Stream, BytePerEntry, [],
        "the same of further neighbours of the router before the receiver (factor neighbours)";
    TransferTimeRatio = "transfer_time_ratio", "transfer time ratio", Stream, Times, [TCP],
        "transfer time of the payload over its time in full segments at the link's rate (RFC 6349)";
    TcpEfficiency = "tcp_efficiency", "TCP efficiency", Stream, Percent, [Higher, TCP],
        "bytes sent without retransmissions, over all bytes sent, whole connection (RFC 6349)";
    BufferDelay = "buffer_delay", "buffer delay", Stream, Percent, [TCP, Margin(1.0), Negative],
        "mean smoothed round-trip time during the stream beyond the connection's least, over the least (RFC \
         6349)";
    Fairness = "fairness", "fairness", Stream, Ratio, [Higher],
        "Jain's index of the flows' received payload: 1 is even, 1/n is all for one of n";
    Stalls = "stalls", "stalls", Stream, Count, [],
        "slices whose rate is below half of the median slice of their arm, interleaved trials only";
    PacingError = "pacing_error", "pacing error", Stream, Millisecond, [Margin(0.01), Paced, Negative],
        "median time from the scheduled send of a message to its actual send";
    PacingErrorP99 = "pacing_error_p99", "pacing error p99", Stream, Millisecond, [Margin(0.01), Paced, Negative],
        "99th percentile of the time from the scheduled send of a message to its actual send";
    Retransmits = "retransmits", "retransmits", Stream, PerMessage, [TCP, Margin(0.001)],
        "TCP segments retransmitted over messages sent, whole connection (TCP_INFO)";
    IpFragCreates = "ip_frag_creates", "IP fragments", Stream, PerMessage, [Property],
        "IP fragments created by the sending host (FragCreates) over messages sent, whole trial";
    IpReasmOks = "ip_reasm_oks", "reassembled datagrams", Stream, PerMessage, [Property],
        "IP datagrams reassembled by the receiving host (ReasmOKs) over messages sent, whole trial";
    PathMtu = "path_mtu", "path MTU", Stream, Byte, [Higher, Property],
        "path MTU to the receiver that the sending host's kernel has found";
    CpuRouter1 = "cpu_router1", "router 1 CPU", Stream, CorePercent, [],
        "busy time (user, system, irq, softirq) of the router next to the sender in the measured window";
    CpuRouter2 = "cpu_router2", "router 2 CPU", Stream, CorePercent, [],
        "busy time (user, system, irq, softirq) of the router next to the receiver in the measured window";
    IpFragCreatesRouters = "ip_frag_creates_routers", "routers' IP fragments", Stream, PerMessage, [Property],
        "IP fragments created by both routers (FragCreates) over messages sent, whole trial";
    IpReasmOksRouters = "ip_reasm_oks_routers", "routers' reassembled datagrams", Stream, PerMessage, [Property],
        "IP datagrams reassembled by both routers (ReasmOKs) over messages sent, whole trial";
    LinkBytes = "link_bytes", "bytes on the link", Stream, Byte, [UDP, Property],
        "bytes of IP packets on the middle link for each UDP message: per packet there, times its packets by the \
         header model";
    LinkBytesBeyond = "link_bytes_beyond", "bytes beyond headers", Stream, Percent, [UDP, Negative, Property],
        "the deviation of the same from the header model of the message and its mechanism, whole trial";
    Airtime = "airtime", "airtime", Stream, Ratio, [OfChannel],
        "time of exchanges (PPDUs, responses, waits for missing ones, collisions) over the time of the radio \
         channel, from first to last arrival in the measured window";
    GroupAirtime = "group_airtime", "group airtime", Stream, Ratio, [OfChannel],
        "time of PPDUs to groups (ARP requests, neighbour solicitations, beacons) over the time of the radio \
         channel, from first to last arrival in the measured window";
    AggregateSize = "aggregate_size", "aggregate size", Stream, Count, [Higher, OfChannel],
        "frames on air over PPDUs, of all nodes of the radio channel: mean size of an A-MPDU";
    FrameRetries = "frame_retries", "frame retries", Stream, Ratio, [OfChannel],
        "frames on air that had to be sent again, over all of them, of all nodes";
    Collisions = "collisions", "collisions", Stream, Ratio, [OfChannel],
        "PPDUs that collided with another node's, over PPDUs, of all nodes";
    QueueDropsSender = "queue_drops_sender", "sender queue drops", Stream, Ratio, [OfChannel],
        "frames dropped by the full queue of the sending station, over the frames queued there";
    QueueDropsAccessPoint = "queue_drops_access_point", "access point queue drops", Stream, Ratio, [OfChannel],
        "frames dropped by the full queue of the access point, over the frames queued there";
    QueueDropsReceiver = "queue_drops_receiver", "receiver queue drops", Stream, Ratio, [OfChannel],
        "frames dropped by the full queue of the receiving station, over the frames queued there";
    GeneratorTxError = "generator_tx_error", "generator error, sent", Stream, Percent, [OfGenerator],
        "payload bytes that the generator says it sent, beyond what the sender's interface counted less the \
         model's headers, over the latter, whole trial";
    GeneratorRxError = "generator_rx_error", "generator error, received", Stream, Percent, [OfGenerator],
        "payload bytes that the generator says it received, beyond what the receiver's interface counted less \
         the model's headers and what no socket had room for, over the latter, whole trial";
    Rtt = "rtt", "RTT", Echo, Millisecond, [],
        "median round trip of a message out and back, one outstanding";
    RttMean = "rtt_mean", "mean RTT", Echo, Millisecond, [],
        "mean round trip of a message out and back, one outstanding";
    RttP99 = "rtt_p99", "RTT p99", Echo, Millisecond, [],
        "99th percentile of the round trip, one outstanding";
    RttP999 = "rtt_p999", "RTT p99.9", Echo, Millisecond, [],
        "99.9th percentile of the round trip, one outstanding";
    RttInterface = "rtt_interface", "interface RTT", Echo, Millisecond, [UDP],
        "median round trip between the kernel's transmit timestamp of the message and its receive timestamp of \
         the answer (hardware timestamps if the interface has both), one outstanding";
    RttInterfaceP99 = "rtt_interface_p99", "interface RTT p99", Echo, Millisecond, [UDP],
        "99th percentile of the round trip at the sending host's interface";
    EchoLoss = "echo_loss", "echo loss", Echo, Ratio, [UDP, OpenLoop],
        "messages sent in the measured window whose answer never came, over messages sent";
    RttOpen = "rtt_open", "open-loop RTT", EchoOpenLoop, Millisecond, [],
        "median round trip on a fixed schedule, from the intended send time";
    RttOpenMean = "rtt_open_mean", "mean open-loop RTT", EchoOpenLoop, Millisecond, [],
        "mean round trip on a fixed schedule, from the intended send time";
    RttOpenP99 = "rtt_open_p99", "open-loop RTT p99", EchoOpenLoop, Millisecond, [],
        "99th percentile of the round trip on a fixed schedule, from the intended send time";
    RttOpenP999 = "rtt_open_p999", "open-loop RTT p99.9", EchoOpenLoop, Millisecond, [],
        "99.9th percentile of the round trip on a fixed schedule, from the intended send time";
    PacingErrorOpen = "pacing_error_open", "open-loop pacing error", EchoOpenLoop, Millisecond, [Margin(0.01), Negative],
        "median time from the scheduled send of a message to its actual send, open loop";
    PacingErrorOpenP99 = "pacing_error_open_p99", "open-loop pacing error p99", EchoOpenLoop, Millisecond, [Margin(0.01), Negative],
        "99th percentile of the time from the scheduled send of a message to its actual send, open loop";
    PathRoundTrip = "path_round_trip", "path round trip", EchoOpenLoop, Millisecond, [UDP],
        "median of both ways to a STAMP reflector and back, without the time in the reflector, `stacklab measure \
         echo --peer stamp --against` only";
    RttUnderLoad = "rtt_under_load", "RTT under load", EchoUnderLoad, Millisecond, [],
        "median round trip of a message out and back while a stream flows, one outstanding";
    RttUnderLoadMean = "rtt_under_load_mean", "mean RTT under load", EchoUnderLoad, Millisecond, [],
        "mean round trip while a stream flows, one outstanding";
    RttUnderLoadP99 = "rtt_under_load_p99", "RTT p99 under load", EchoUnderLoad, Millisecond, [],
        "99th percentile of the round trip while a stream flows, one outstanding";
    LoadThroughput = "load_throughput", "load throughput", EchoUnderLoad, MegabitPerSecond, [Higher],
        "throughput of the echo's concurrent stream, over the stream's window";
    ConnectTime = "connect_time", "connect time", Connect, Millisecond, [],
        "median time from connect() to the connection being established";
    ConnectRate = "connect_rate", "connect rate", Connect, ConnectionPerSecond, [Higher],
        "TCP connections opened one after another, over the measured window";
    MemoryPerSocket = "memory_per_socket", "memory per socket", Sockets, BytePerSocket, [],
        "kernel memory that idle sockets of the sending host took, over their number: objects in use, memory of each \
         processor and mapped pages; of TCP the mean of both ends of connections";
    MemoryPerFullSocket = "memory_per_full_socket", "memory per full socket", Sockets, BytePerSocket, [],
        "memory that the sending host's kernel charges to a socket whose queues are full of messages of the cell's size, \
         because nobody reads (sockstat's mem), over the number of sockets";
    LoadAtLoss = "load_at_loss", "highest load", Search, MessagePerSecond, [Higher, UDP],
        "load, first to last message of a slice, above which more than the given share of messages is lost or late in \
         more than half of the slices (or another exceed ratio)";
    LowerBound = "lower_bound", "lower bound", Search, MessagePerSecond, [Higher, UDP],
        "highest load below the least upper bound that fulfils the goal (RFC 9971, relevant lower bound): the throughput of \
         RFC 2544 and RFC 8219 if no message may be lost";
    UpperBound = "upper_bound", "upper bound", Search, MessagePerSecond, [Higher, UDP],
        "least load that does not fulfil the goal (RFC 9971, relevant upper bound)";
    ConditionalThroughput = "conditional_throughput", "conditional throughput", Search, MessagePerSecond, [Higher, UDP],
        "messages per second that arrive at the lower bound in the worst of the trials that have to fulfil the goal (RFC 9971)";
    BackToBack = "back_to_back", "back-to-back burst", Search, Message, [Higher, UDP],
        "messages of the longest burst, sent as fast as the sender can, of which none is lost, within a per cent (RFC 2544, \
         section 26.4, and RFC 9004)";
    FrameLossRate = "frame_loss_rate", "frame loss at the highest load", Search, Ratio, [UDP],
        "messages of a trial that are lost at the load which the fastest of the arms in it carries, the same for all of \
         them (RFC 2544, section 26.3); what waits in a queue at its end counts, where that is more than the allowed loss";
    RecoveryTime = "recovery_time", "recovery time", Search, Millisecond, [UDP],
        "from the last message at 110 % of the arm's load to the first one at half of it from which on none is lost, at least \
         one gap: the median of three times (RFC 2544, section 26.5)";
    ConnectionRate = "connection_rate", "connection rate", Search, ConnectionPerSecond, [Higher, UDP],
        "highest load, as load_at_loss, of messages that each make a new entry in a router's table of connections, of which \
         answers come back";
    EstablishedRate = "established_rate", "load over established connections", Search, MessagePerSecond, [Higher, UDP],
        "the same of messages that each belong to another connection, all of which are in the table already";
    TeardownRate = "teardown_rate", "teardown rate", Search, ConnectionPerSecond, [Higher, UDP],
        "entries that are deleted by one request, over the time until the kernel counts none; the median of three times";
    Duration = "duration", "duration", Program, Millisecond, [],
        "time from the start of the client to its end";
    InterfaceThroughput = "interface_throughput", "interface throughput", Program, MegabitPerSecond, [Higher],
        "bytes that the client's interface received or sent, whichever were more, with all headers, over the time of \
         the middle 98 % of them";
    CpuClient = "cpu_client", "client CPU", Program, Millisecond, [],
        "CPU time of the client and of what it waited for, from its start to its end";
    CpuServer = "cpu_server", "server CPU", Program, Millisecond, [],
        "CPU time of all processes of the server's host but stacklab's, from the start of the client to its end";
    CpuPerKilobyte = "cpu_per_kilobyte", "CPU per kilobyte", Program, Nanosecond, [OfProcess],
        "CPU time of client and server over the kilobytes (1000 B) that the client's interface sent and received, with \
         all headers";
}

impl Metric {
    fn row(self) -> &'static MetricRow {
        &ROWS[self as usize]
    }

    fn has(self, found: Trait) -> bool {
        self.row().traits.contains(&found)
    }

    /// What sentences, tables and figures call it: `sender CPU per message`.
    pub fn label(self) -> String {
        self.row().label.to_owned()
    }

    pub fn definition(self) -> &'static str {
        self.row().definition
    }

    pub fn probe(self) -> Probe {
        self.row().probe
    }

    pub fn is_of(self, probe: Probe) -> bool {
        match probe {
            probe if probe == self.probe() => true,
            Probe::Paced => [Paced, OfDelay, OfChannel, OfGenerator].iter().any(|found| self.has(*found)),
            Probe::EchoOpenLoop => self.has(OpenLoop),
            _ => false,
        }
    }

    pub fn unit(self) -> Unit {
        self.row().unit
    }

    pub fn better(self) -> Better {
        if self.has(Higher) { Better::Higher } else { Better::Lower }
    }

    /// Its margin, if it is compared by difference: if a figure may be zero.
    fn margin(self) -> Option<f64> {
        for found in self.row().traits {
            if let Margin(margin) = found {
                return Some(*margin);
            }
        }
        self.unit().margin()
    }

    pub fn scale(self) -> Scale {
        if self.margin().is_some() { Scale::Difference } else { Scale::Ratio }
    }

    /// The difference that counts as none, in the metric's unit. Metrics on the ratio scale use the study's margin.
    pub fn difference_margin(self) -> f64 {
        self.margin().unwrap_or_default()
    }

    pub fn can_be_negative(self) -> bool {
        self.has(Negative) || self.is_generator_error()
    }

    /// Whether it is the error of a generator's own count against the interface's, which has no verdict.
    pub fn is_generator_error(self) -> bool {
        self.has(OfGenerator)
    }

    pub fn is_one_way_delay(self) -> bool {
        self.has(OfDelay)
    }

    /// Whether it is of delays in the order of sending, which are recorded on request.
    pub fn is_ipdv(self) -> bool {
        matches!(self, Metric::IpdvMin | Metric::IpdvMedian | Metric::IpdvMax)
    }

    /// Whether it needs a goal of RFC 9971.
    pub fn is_of_goal(self) -> bool {
        matches!(self, Metric::LowerBound | Metric::UpperBound | Metric::ConditionalThroughput)
    }

    pub fn is_of_channel(self) -> bool {
        self.has(OfChannel)
    }

    /// Whether its figures describe a path and follow from its headers: nothing is compared by it.
    pub fn is_property(self) -> bool {
        self.has(Property)
    }

    /// Whether one arm can be better by it.
    pub fn allows_comparison(self) -> bool {
        !self.is_generator_error() && !self.is_property()
    }

    /// Whether it is the CPU time of a host and must be reported with its scope.
    pub fn is_host_cpu(self) -> bool {
        matches!(self.unit(), Unit::CorePercent | Unit::CorePercentPerGigabit | Unit::Nanosecond)
            && !self.has(OfProcess)
    }
}

#[cfg(test)]
mod tests;
