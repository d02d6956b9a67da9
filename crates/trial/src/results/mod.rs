//! The figures of the reports of two hosts, one arm for each metric.

pub mod interleaved;
mod locations;
mod measures;
mod warnings;

pub use locations::locate_loads;
pub use measures::drops;
pub use stacklab_traffic::timing::tick_ns;
pub use warnings::{standstill_of_stream, warnings};

use crate::path::Path;
use stacklab_model::{ArmSchedule, CpuTime, Factor, HostReport, Metric, TrialSpec, Value};
use stacklab_traffic::timing::knows_arrival_times;
use std::collections::BTreeMap;

/// Every figure of the trial's probe.
pub fn values(
    spec: &TrialSpec,
    path: &Path,
    sender: &HostReport,
    receiver: &HostReport,
) -> BTreeMap<Metric, Value> {
    const SHARED: &str =
        "the arms of an interleaved trial share the host's counters: set blocks.schedule = \"sequential\"";
    let metrics = Metric::ALL.iter().copied().filter(|metric| metric.probe() == spec.probe.probe);
    let of = |metric| match spec.schedule.shares(metric) {
        true => missing(SHARED),
        false => value(metric, spec, path, sender, receiver),
    };
    metrics.map(|metric| (metric, of(metric))).collect()
}

fn value(metric: Metric, spec: &TrialSpec, path: &Path, sender: &HostReport, receiver: &HostReport) -> Value {
    use Metric::*;
    use measures::*;
    if !metric.applies_to(spec.transport) {
        let metric = metric.label();
        let transport = Factor::Transport.level_label(spec.transport.name());
        return Value::Missing(format!("{metric} does not apply to {transport}"));
    }
    let sent = &sender.sent;
    let received = &receiver.received;
    let sender_cpu = sender.cpu.as_ref();
    let receiver_cpu = receiver.cpu.as_ref();
    let own = &sender.delays;
    let arrived_delays = receiver.delays.as_ref();
    let of_sent = |count: u64| Value::finite(count as f64 / sent.measured as f64, "no message was sent");
    // The kernel's counters are of the whole trial.
    let of_trial = |host: &HostReport, [ipv4, ipv6]: [&str; 2]| {
        let count = host.counters.get(ipv4) + host.counters.get(ipv6);
        Value::finite(count as f64 / sent.of_trial() as f64, "no message was sent")
    };
    let of_received =
        |count: u64| Value::finite(count as f64 / received.measured as f64, "no message arrived");
    let sender_busy =
        |amount| busy_over(sender_cpu, [sent.measured, sent.warmup], amount, "no message was sent");
    let receiver_busy =
        |amount| busy_over(receiver_cpu, [received.measured, received.warmup], amount, "no message arrived");
    let unanswered = sent.measured.saturating_sub(sender.received.measured);
    // The first receive (several messages, in a TCP stream) arrived before the window's time began.
    let (arrived, seconds) = match spec.schedule {
        ArmSchedule::Alone => arrivals(spec, sent, received),
        _ => interleaved::arrivals(spec, &receiver.slices),
    };
    // Of long messages over a slow path, only parts may have arrived.
    let rate = |amount: f64| match received.measured + received.cut_bytes {
        0 => missing("no message arrived"),
        _ => rate(amount, seconds),
    };
    let is_named = spec.probe.metrics.contains(&metric);
    match metric {
        Throughput => rate(arrived * f64::from(spec.message_bytes) * 8.0 / 1e6),
        // Figures of other transfers of the trial: see `trial::transfers`.
        LoadThroughput => missing("the trial has no load stream"),
        ThroughputReverse => missing("the trial has no stream in the other direction"),
        MessageRate => rate(arrived),
        Loss => of_sent(sent.measured.saturating_sub(received.measured + received.beyond_window)),
        Duplicate => of_received(received.duplicates),
        Reorder => of_received(received.reordered),
        metric if metric.is_one_way_delay() && !knows_arrival_times(spec) => not_sampled(metric),
        OneWayDelay => percentile(&receiver.delays, 0.5),
        OneWayDelayMean => milliseconds(arrived_delays.map(|delays| delays.mean_ns)),
        Jitter => milliseconds(arrived_delays.and_then(|delays| delays.jitter_ns)),
        JitterRfc3550 => milliseconds(arrived_delays.and_then(|delays| delays.jitter_rfc3550_ns)),
        Pdv => variation(&receiver.delays),
        TcpSrtt => srtt(sender),
        CpuSender => of_window(sender_cpu, CpuTime::busy_ns),
        CpuReceiver => of_window(receiver_cpu, CpuTime::busy_ns),
        SenderCpuSystem => divided(sender_cpu, CpuTime::kernel_ns),
        CpuSenderUser => divided(sender_cpu, |time| time.user_ns),
        CpuSenderSoftirq => softirq(sender_cpu),
        CpuReceiverUser => divided(receiver_cpu, |time| time.user_ns),
        ReceiverCpuSystem => divided(receiver_cpu, CpuTime::kernel_ns),
        CpuReceiverSoftirq => softirq(receiver_cpu),
        CpuGeneratorSender => own_user(sender_cpu),
        CpuGeneratorReceiver => own_user(receiver_cpu),
        ReceiverCpuPerMessage => receiver_busy(received.measured as f64),
        SenderCpuPerMessage => sender_busy(sent.measured as f64),
        CpuPerGbitSender => sender_busy(gigabits(sent.bytes)),
        CpuPerGbitReceiver => receiver_busy(gigabits(received.bytes)),
        MemorySockets => match (sender.socket_memory_kib, receiver.socket_memory_kib) {
            (Some(sender), Some(receiver)) => Value::Measured(sender.max(receiver) as f64),
            _ if !is_named => not_sampled(metric),
            _ => missing(
                "a host has no /proc/net/sockstat, or the window is shorter than the 10 ms between two samples",
            ),
        },
        TransferTimeRatio => transfer_time_ratio(spec, path, arrived, seconds),
        TcpEfficiency => efficiency(sender),
        BufferDelay => buffer_delay(sender),
        Fairness => jain(&receiver.flow_bytes),
        Stalls => missing("the trial has no slices: set blocks.schedule = \"interleaved\""),
        PacingError | PacingErrorP99 if spec.kernel_paced().is_some() => {
            missing("with kernel pacing, the send times are unknown")
        }
        PacingError | PacingErrorP99 | PacingErrorOpen | PacingErrorOpenP99
            if sender.pacing_error.is_none() =>
        {
            missing("the stream had no schedule")
        }
        PacingError | PacingErrorOpen => percentile(&sender.pacing_error, 0.5),
        PacingErrorP99 | PacingErrorOpenP99 => percentile(&sender.pacing_error, 0.99),
        Retransmits => retransmits(sender),
        IpFragCreates => of_trial(sender, ["ip.FragCreates", "ip6.FragCreates"]),
        IpReasmOks => of_trial(receiver, ["ip.ReasmOKs", "ip6.ReasmOKs"]),
        PathMtu => match sender.endpoint.path_mtu {
            Some(bytes) => Value::Measured(f64::from(bytes)),
            None => missing("the stack does not report it"),
        },
        // Figures from router counters, which the coordinator reads.
        CpuRouter1 | CpuRouter2 | IpFragCreatesRouters | IpReasmOksRouters | LinkBytes | LinkBytesBeyond => {
            missing("there are no routers between the hosts")
        }
        // Figures of the radio channel, which the coordinator asks for.
        Airtime
        | GroupAirtime
        | AggregateSize
        | FrameRetries
        | Collisions
        | QueueDropsSender
        | QueueDropsAccessPoint
        | QueueDropsReceiver => missing("the path is not a Wi-Fi network"),
        // The coordinator compares the generator's counts with the interfaces'.
        GeneratorTxError | GeneratorRxError => missing("it needs a study with factors.generator"),
        // The search itself knows it.
        LoadAtLoss => missing("it needs a study with probe.search"),
        ConnectTime => percentile(own, 0.5),
        Rtt | RttOpen | RttUnderLoad => of_answers(own, unanswered, 0.5),
        RttP99 | RttOpenP99 | RttUnderLoadP99 => of_answers(own, unanswered, 0.99),
        EchoLoss => of_sent(unanswered),
        RttInterface | RttInterfaceP99 if sender.interface_delays.is_none() => match is_named {
            true => missing("the sending host's kernel has no transmit timestamps"),
            false => not_sampled(metric),
        },
        RttInterface => percentile(&sender.interface_delays, 0.5),
        RttInterfaceP99 => percentile(&sender.interface_delays, 0.99),
        RttP999 | RttOpenP999 => of_answers(own, unanswered, 0.999),
        RttMean | RttOpenMean | RttUnderLoadMean => milliseconds(own.as_ref().map(|delays| delays.mean_ns)),
        ConnectRate => {
            let seconds = sent.last_ns.saturating_sub(sent.first_ns) as f64 / 1e9;
            Value::finite(sent.measured as f64 / seconds, "no connection was opened")
        }
    }
}

fn missing(reason: &str) -> Value {
    Value::Missing(reason.to_owned())
}

/// The value of a metric that is sampled only on request.
fn not_sampled(metric: Metric) -> Value {
    Value::Missing(format!("not sampled: name {metric} among the probe's metrics"))
}

#[cfg(test)]
mod tests;
