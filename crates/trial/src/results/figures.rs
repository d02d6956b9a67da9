//! Each figure that follows from the reports of two hosts, by subject. The metrics that other sources supply have the
//! reason why these reports lack them.

use super::measures::{
    arrivals, buffer_delay, busy_over, efficiency, find_cpu_part, gigabits, jain, milliseconds, of_answers,
    of_window, own_user, percentile, rate, retransmits, softirq, srtt, transfer_time_ratio, variation,
};
use super::{describe_missing_sample, interleaved, missing};
use crate::path::Path;
use stacklab_model::{ArmSchedule, CpuTime, Factor, HostReport, Metric, TrialSpec, Value};
use stacklab_traffic::timing::knows_arrival_times;

const NONE_SENT: &str = "no message was sent";
const NONE_ARRIVED: &str = "no message arrived";
/// The reason of a metric that no function below knows: a test finds one that was forgotten.
const NO_SOURCE: &str = "stacklab does not compute it";

/// What both hosts reported of a trial, with what was planned.
#[derive(Clone, Copy)]
pub(super) struct TrialReports<'a> {
    pub spec: &'a TrialSpec,
    pub path: &'a Path,
    pub sender: &'a HostReport,
    pub receiver: &'a HostReport,
}

/// Messages that arrived, by their bytes, and the seconds in which they did.
struct Arrivals {
    messages: f64,
    seconds: f64,
}

impl TrialReports<'_> {
    pub(super) fn value(&self, metric: Metric) -> Value {
        if !metric.applies_to(self.spec.transport) {
            let metric = metric.label();
            let transport = Factor::Transport.level_label(self.spec.transport.name());
            return Value::Missing(format!("{metric} does not apply to {transport}"));
        }
        self.rate_value(metric)
            .or_else(|| self.event_value(metric))
            .or_else(|| self.one_way_value(metric))
            .or_else(|| self.round_trip_value(metric))
            .or_else(|| self.cpu_value(metric))
            .or_else(|| self.socket_value(metric))
            .or_else(|| self.pacing_value(metric))
            .unwrap_or_else(|| missing(reason_without_source(metric)))
    }

    fn rate_value(&self, metric: Metric) -> Option<Value> {
        use Metric::*;
        let message_bytes = f64::from(self.spec.message_bytes);
        let value = match metric {
            Throughput => self.rate_of_arrivals(|messages| messages * message_bytes * 8.0 / 1e6),
            MessageRate => self.rate_of_arrivals(|messages| messages),
            TransferTimeRatio => {
                let arrivals = self.arrivals();
                transfer_time_ratio(self.spec, self.path, arrivals.messages, arrivals.seconds)
            }
            Fairness => jain(&self.receiver.flow_bytes),
            ConnectRate => {
                let sent = &self.sender.sent;
                let seconds = sent.last_ns.saturating_sub(sent.first_ns) as f64 / 1e9;
                Value::finite(sent.measured as f64 / seconds, "no connection was opened")
            }
            _ => return None,
        };
        Some(value)
    }

    /// Losses and other events, per message.
    fn event_value(&self, metric: Metric) -> Option<Value> {
        use Metric::*;
        let received = &self.receiver.received;
        let value = match metric {
            Loss => {
                let arrived = received.measured + received.beyond_window;
                self.per_message(self.sender.sent.measured.saturating_sub(arrived))
            }
            EchoLoss => self.per_message(self.count_lost_answers()),
            Duplicate => self.per_arrival(received.duplicates),
            Reorder => self.per_arrival(received.reordered),
            Retransmits => retransmits(self.sender),
            IpFragCreates => self.per_message_of_trial(self.sender, ["ip.FragCreates", "ip6.FragCreates"]),
            IpReasmOks => self.per_message_of_trial(self.receiver, ["ip.ReasmOKs", "ip6.ReasmOKs"]),
            _ => return None,
        };
        Some(value)
    }

    fn one_way_value(&self, metric: Metric) -> Option<Value> {
        use Metric::*;
        if metric.is_one_way_delay() && !knows_arrival_times(self.spec) {
            return Some(describe_missing_sample(metric));
        }
        let delays = self.receiver.delays.as_ref();
        let value = match metric {
            OneWayDelay => percentile(&self.receiver.delays, 0.5),
            OneWayDelayMean => milliseconds(delays.map(|delays| delays.mean_ns)),
            Jitter => milliseconds(delays.and_then(|delays| delays.jitter_ns)),
            JitterRfc3550 => milliseconds(delays.and_then(|delays| delays.jitter_rfc3550_ns)),
            OneWayDelayP999 => percentile(&self.receiver.delays, 0.999),
            Pdv => variation(&self.receiver.delays),
            IpdvMin | IpdvMedian | IpdvMax => self.ipdv_value(metric),
            _ => return None,
        };
        Some(value)
    }

    fn ipdv_value(&self, metric: Metric) -> Value {
        let Some(ipdv) = self.receiver.received.ipdv else {
            return self.explain_missing(metric, "no two messages sent one after the other arrived");
        };
        Value::Measured(
            match metric {
                Metric::IpdvMin => ipdv.min_ns,
                Metric::IpdvMedian => ipdv.median_ns,
                _ => ipdv.max_ns,
            } as f64
                / 1e6,
        )
    }

    fn round_trip_value(&self, metric: Metric) -> Option<Value> {
        use Metric::*;
        let delays = &self.sender.delays;
        let at_interface = &self.sender.interface_delays;
        let value = match metric {
            ConnectTime => percentile(delays, 0.5),
            Rtt | RttOpen | RttUnderLoad => of_answers(delays, self.count_lost_answers(), 0.5),
            RttP99 | RttOpenP99 | RttUnderLoadP99 => of_answers(delays, self.count_lost_answers(), 0.99),
            RttP999 | RttOpenP999 => of_answers(delays, self.count_lost_answers(), 0.999),
            RttMean | RttOpenMean | RttUnderLoadMean => {
                milliseconds(delays.as_ref().map(|delays| delays.mean_ns))
            }
            RttInterface | RttInterfaceP99 if at_interface.is_none() => {
                self.explain_missing(metric, "the sending host's kernel has no transmit timestamps")
            }
            RttInterface => percentile(at_interface, 0.5),
            RttInterfaceP99 => percentile(at_interface, 0.99),
            _ => return None,
        };
        Some(value)
    }

    fn cpu_value(&self, metric: Metric) -> Option<Value> {
        use Metric::*;
        let sender = self.sender.cpu.as_ref();
        let receiver = self.receiver.cpu.as_ref();
        let value = match metric {
            CpuSender => of_window(sender, CpuTime::busy_ns),
            CpuReceiver => of_window(receiver, CpuTime::busy_ns),
            SenderCpuSystem => find_cpu_part(sender, CpuTime::kernel_ns),
            ReceiverCpuSystem => find_cpu_part(receiver, CpuTime::kernel_ns),
            CpuSenderUser => find_cpu_part(sender, |time| time.user_ns),
            CpuReceiverUser => find_cpu_part(receiver, |time| time.user_ns),
            CpuSenderSoftirq => softirq(sender),
            CpuReceiverSoftirq => softirq(receiver),
            CpuGeneratorSender => own_user(sender),
            CpuGeneratorReceiver => own_user(receiver),
            SenderCpuPerMessage => self.sender_busy_over(self.sender.sent.measured as f64),
            CpuPerGbitSender => self.sender_busy_over(gigabits(self.sender.sent.bytes)),
            ReceiverCpuPerMessage => self.receiver_busy_over(self.receiver.received.measured as f64),
            CpuPerGbitReceiver => self.receiver_busy_over(gigabits(self.receiver.received.bytes)),
            _ => return None,
        };
        Some(value)
    }

    /// What the kernel reports of the sockets.
    fn socket_value(&self, metric: Metric) -> Option<Value> {
        use Metric::*;
        let value = match metric {
            TcpSrtt => srtt(self.sender),
            TcpEfficiency => efficiency(self.sender),
            BufferDelay => buffer_delay(self.sender),
            MemorySockets => match (self.sender.socket_memory_kib, self.receiver.socket_memory_kib) {
                (Some(sender), Some(receiver)) => Value::Measured(sender.max(receiver) as f64),
                _ => self.explain_missing(
                    metric,
                    "a host has no /proc/net/sockstat, or the window is shorter than the 10 ms between two samples",
                ),
            },
            PathMtu => match self.sender.endpoint.path_mtu {
                Some(bytes) => Value::Measured(f64::from(bytes)),
                None => missing("the stack does not report it"),
            },
            _ => return None,
        };
        Some(value)
    }

    fn pacing_value(&self, metric: Metric) -> Option<Value> {
        use Metric::*;
        let errors = &self.sender.pacing_error;
        let value = match metric {
            PacingError | PacingErrorP99 if self.spec.kernel_pacing_rate().is_some() => {
                missing("with kernel pacing, the send times are unknown")
            }
            PacingError | PacingErrorP99 | PacingErrorOpen | PacingErrorOpenP99 if errors.is_none() => {
                missing("the stream had no schedule")
            }
            PacingError | PacingErrorOpen => percentile(errors, 0.5),
            PacingErrorP99 | PacingErrorOpenP99 => percentile(errors, 0.99),
            _ => return None,
        };
        Some(value)
    }

    fn arrivals(&self) -> Arrivals {
        // The first receive (several messages, in a TCP stream) arrived before the window's time began.
        let (messages, seconds) = match self.spec.schedule {
            ArmSchedule::Alone => arrivals(self.spec, &self.sender.sent, &self.receiver.received),
            _ => interleaved::arrivals(self.spec, &self.receiver.slices),
        };
        Arrivals { messages, seconds }
    }

    /// The rate of an amount that follows from the number of messages that arrived.
    fn rate_of_arrivals(&self, amount: impl Fn(f64) -> f64) -> Value {
        let received = &self.receiver.received;
        // Of long messages over a slow path, only parts may have arrived.
        if received.measured + received.cut_bytes == 0 {
            return missing(NONE_ARRIVED);
        }
        let arrivals = self.arrivals();
        rate(amount(arrivals.messages), arrivals.seconds)
    }

    fn count_lost_answers(&self) -> u64 {
        self.sender.sent.measured.saturating_sub(self.sender.received.measured)
    }

    fn per_message(&self, count: u64) -> Value {
        Value::finite(count as f64 / self.sender.sent.measured as f64, NONE_SENT)
    }

    fn per_arrival(&self, count: u64) -> Value {
        Value::finite(count as f64 / self.receiver.received.measured as f64, NONE_ARRIVED)
    }

    /// The kernel's counters are of the whole trial.
    fn per_message_of_trial(&self, host: &HostReport, [ipv4, ipv6]: [&str; 2]) -> Value {
        let count = host.counters.get(ipv4) + host.counters.get(ipv6);
        Value::finite(count as f64 / self.sender.sent.of_trial() as f64, NONE_SENT)
    }

    fn sender_busy_over(&self, amount: f64) -> Value {
        let sent = &self.sender.sent;
        busy_over(self.sender.cpu.as_ref(), [sent.measured, sent.warmup], amount, NONE_SENT)
    }

    fn receiver_busy_over(&self, amount: f64) -> Value {
        let received = &self.receiver.received;
        busy_over(self.receiver.cpu.as_ref(), [received.measured, received.warmup], amount, NONE_ARRIVED)
    }

    /// A metric that is sampled on request: `reason` says why there is nothing although the study names it.
    fn explain_missing(&self, metric: Metric, reason: &str) -> Value {
        if self.spec.probe.metrics.contains(&metric) {
            missing(reason)
        } else {
            describe_missing_sample(metric)
        }
    }
}

/// Why the reports of two hosts lack a metric that another source supplies.
fn reason_without_source(metric: Metric) -> &'static str {
    use Metric::*;
    match metric {
        // Figures of other transfers of the trial: see `trial::transfers`.
        LoadThroughput => "the trial has no load stream",
        ThroughputReverse => "the trial has no stream in the other direction",
        Stalls => "the trial has no slices: set blocks.schedule = \"interleaved\"",
        // Figures from router counters, which the coordinator reads.
        CpuRouter1 | CpuRouter2 | IpFragCreatesRouters | IpReasmOksRouters | LinkBytes | LinkBytesBeyond => {
            "there are no routers between the hosts"
        }
        // What the testbed's builder has watched.
        MemoryPerRoute | MemoryPerConnection | MemoryPerRule | MemoryPerNeighbour => {
            "it is measured where all hosts are namespaces of this kernel that are built anew for each block"
        }
        // Figures of the radio channel, which the coordinator asks for.
        Airtime
        | GroupAirtime
        | AggregateSize
        | FrameRetries
        | Collisions
        | QueueDropsSender
        | QueueDropsAccessPoint
        | QueueDropsReceiver => "the path is not a Wi-Fi network",
        // The coordinator compares the generator's counts with the interfaces'.
        GeneratorTxError | GeneratorRxError => "it needs a study with factors.generator",
        // Those of programs are observed from outside.
        Duration | InterfaceThroughput | CpuClient | CpuServer | CpuPerKilobyte => {
            "it needs a study with probe.program"
        }
        // Those of held sockets are the sending host's alone.
        MemoryPerSocket | MemoryPerFullSocket => "it needs a study with probe.sockets",
        // The times of a reflector's packets give it.
        PathRoundTrip => {
            "it needs a STAMP reflector: `stacklab measure echo HOST --peer stamp --against ipv4`"
        }
        // The search itself knows it.
        LoadAtLoss | BackToBack | FrameLossRate | RecoveryTime | ConnectionRate | EstablishedRate
        | TeardownRate => "it needs a study with probe.search",
        LowerBound | UpperBound | ConditionalThroughput => "it needs a study with probe.search.goal",
        _ => NO_SOURCE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{host_reports, path, spec};
    use stacklab_model::{Family, Transport};

    #[test]
    fn every_metric_has_a_source_or_a_reason() {
        for transport in [Transport::Udp, Transport::Tcp] {
            let spec = spec(Family::Ipv6, transport);
            let path = path(spec.family);
            let (sender, receiver) = host_reports(&spec);
            let reports = TrialReports { spec: &spec, path: &path, sender: &sender, receiver: &receiver };
            for metric in Metric::ALL {
                let value = reports.value(*metric);
                assert_ne!(value, missing(NO_SOURCE), "{metric} over {transport}");
            }
        }
    }
}
