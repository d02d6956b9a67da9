//! The figures of a trial, one arm for each metric.

use crate::path::Path;
use crate::results::{cpu, delay, interleaved, tcp, throughput};
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
    let metrics = Metric::ALL.iter().copied().filter(|metric| metric.probe() == spec.probe.probe);
    let shared = |metric| spec.schedule.shares(metric);
    let of = |metric| {
        match metric {
        metric if shared(metric) => Value::Missing(
            "the arms of an interleaved trial share the host's counters: set blocks.schedule = \"sequential\""
                .to_owned(),
        ),
        metric => value(metric, spec, path, sender, receiver),
    }
    };
    metrics.map(|metric| (metric, of(metric))).collect()
}

fn value(metric: Metric, spec: &TrialSpec, path: &Path, sender: &HostReport, receiver: &HostReport) -> Value {
    if !metric.applies_to(spec.transport) {
        return Value::Missing(format!(
            "{} does not apply to {}",
            metric.label(),
            Factor::Transport.level_label(spec.transport.name())
        ));
    }
    let (sent, received) = (&sender.sent, &receiver.received);
    let of_sent = |count: u64| Value::finite(count as f64 / sent.measured as f64, "no message was sent");
    // The kernel's counters are of the whole trial.
    let of_trial = |count: u64| Value::finite(count as f64 / sent.of_trial() as f64, "no message was sent");
    let of_received =
        |count: u64| Value::finite(count as f64 / received.measured as f64, "no message arrived");
    let unanswered = sent.measured.saturating_sub(sender.received.measured);
    // The first receive (several messages, in a TCP stream) arrived before the window's time began.
    let (arrived, seconds) = match spec.schedule {
        ArmSchedule::Alone => throughput::arrivals(spec, sent, received),
        _ => interleaved::arrivals(spec, &receiver.slices),
    };
    // Of long messages over a slow path, only parts may have arrived.
    let rate = |amount: f64| match received.measured + received.cut_bytes {
        0 => Value::Missing("no message arrived".to_owned()),
        _ => throughput::rate(amount, seconds),
    };
    use Metric::*;
    match metric {
        Throughput => rate(arrived * f64::from(spec.message_bytes) * 8.0 / 1e6),
        // Figures of other transfers of the trial: see `trial::transfers`.
        LoadThroughput => Value::Missing("the trial has no load stream".to_owned()),
        ThroughputReverse => Value::Missing("the trial has no stream in the other direction".to_owned()),
        MessageRate => rate(arrived),
        Loss => of_sent(sent.measured.saturating_sub(received.measured + received.beyond_window)),
        Duplicate => of_received(received.duplicates),
        Reorder => of_received(received.reordered),
        metric if metric.is_one_way_delay() && !knows_arrival_times(spec) => not_sampled(metric),
        OneWayDelay => delay::percentile(&receiver.delays, 0.5),
        OneWayDelayMean => delay::milliseconds(receiver.delays.as_ref().map(|delays| delays.mean_ns)),
        Jitter => delay::milliseconds(receiver.delays.as_ref().and_then(|delays| delays.jitter_ns)),
        JitterRfc3550 => delay::milliseconds(receiver.delays.as_ref().and_then(|delays| delays.jitter_rfc3550_ns)),
        Pdv => delay::variation(&receiver.delays),
        TcpSrtt => tcp::srtt(sender),
        CpuSender => cpu::of_window(sender.cpu.as_ref(), CpuTime::busy_ns),
        CpuReceiver => cpu::of_window(receiver.cpu.as_ref(), CpuTime::busy_ns),
        SenderCpuSystem => cpu::divided(sender.cpu.as_ref(), CpuTime::kernel_ns),
        CpuSenderUser => cpu::divided(sender.cpu.as_ref(), |time| time.user_ns),
        CpuSenderSoftirq => cpu::softirq(sender.cpu.as_ref()),
        CpuReceiverUser => cpu::divided(receiver.cpu.as_ref(), |time| time.user_ns),
        ReceiverCpuSystem => cpu::divided(receiver.cpu.as_ref(), CpuTime::kernel_ns),
        CpuReceiverSoftirq => cpu::softirq(receiver.cpu.as_ref()),
        CpuGeneratorSender => cpu::own_user(sender.cpu.as_ref()),
        CpuGeneratorReceiver => cpu::own_user(receiver.cpu.as_ref()),
        ReceiverCpuPerMessage => cpu::busy_over(cpu::received_in(receiver), received.measured as f64, "no message arrived"),
        SenderCpuPerMessage => cpu::busy_over(cpu::sent_in(sender), sent.measured as f64, "no message was sent"),
        CpuPerGbitSender => cpu::busy_over(cpu::sent_in(sender), cpu::gigabits(sent.bytes), "no message was sent"),
        CpuPerGbitReceiver => cpu::busy_over(cpu::received_in(receiver), cpu::gigabits(received.bytes), "no message arrived"),
        MemorySockets => match (sender.socket_memory_kib, receiver.socket_memory_kib) {
            (Some(sender), Some(receiver)) => Value::Measured(sender.max(receiver) as f64),
            _ if !spec.probe.metrics.contains(&metric) => not_sampled(metric),
            _ => Value::Missing(
                "a host has no /proc/net/sockstat, or the window is shorter than the 10 ms between two samples"
                    .to_owned(),
            ),
        },
        TransferTimeRatio => tcp::transfer_time_ratio(spec, path, arrived, seconds),
        TcpEfficiency => tcp::efficiency(sender),
        BufferDelay => tcp::buffer_delay(sender),
        Fairness => throughput::jain(&receiver.flow_bytes),
        Stalls => Value::Missing("the trial has no slices: set blocks.schedule = \"interleaved\"".to_owned()),
        PacingError | PacingErrorP99 if spec.kernel_paced().is_some() => {
            Value::Missing("with kernel pacing, the send times are unknown".to_owned())
        }
        PacingError | PacingErrorP99 | PacingErrorOpen | PacingErrorOpenP99 if sender.pacing_error.is_none() => {
            Value::Missing("the stream had no schedule".to_owned())
        }
        PacingError | PacingErrorOpen => delay::percentile(&sender.pacing_error, 0.5),
        PacingErrorP99 | PacingErrorOpenP99 => delay::percentile(&sender.pacing_error, 0.99),
        Retransmits => tcp::retransmits(sender),
        IpFragCreates => {
            let counters = &sender.counters;
            of_trial(counters.get("ip.FragCreates") + counters.get("ip6.FragCreates"))
        }
        IpReasmOks => {
            let counters = &receiver.counters;
            of_trial(counters.get("ip.ReasmOKs") + counters.get("ip6.ReasmOKs"))
        }
        PathMtu => match sender.endpoint.path_mtu {
            Some(bytes) => Value::Measured(f64::from(bytes)),
            None => Value::Missing("the stack does not report it".to_owned()),
        },
        // Figures from router counters, which the coordinator reads.
        CpuRouter1 | CpuRouter2 | IpFragCreatesRouters | IpReasmOksRouters | LinkBytes | LinkBytesBeyond => {
            Value::Missing("there are no routers between the hosts".to_owned())
        }
        // Figures of the radio channel, which the coordinator asks for.
        Airtime | GroupAirtime | AggregateSize | FrameRetries | Collisions | QueueDropsSender
        | QueueDropsAccessPoint | QueueDropsReceiver => Value::Missing("the path is not a Wi-Fi network".to_owned()),
        // The coordinator compares the generator's counts with the interfaces'.
        GeneratorTxError | GeneratorRxError => Value::Missing("it needs a study with factors.generator".to_owned()),
        ConnectTime => delay::percentile(&sender.delays, 0.5),
        Rtt | RttOpen | RttUnderLoad => delay::of_answers(&sender.delays, unanswered, 0.5),
        RttP99 | RttOpenP99 | RttUnderLoadP99 => delay::of_answers(&sender.delays, unanswered, 0.99),
        EchoLoss => of_sent(unanswered),
        RttInterface | RttInterfaceP99 if sender.interface_delays.is_none() => {
            if spec.probe.metrics.contains(&metric) {
                Value::Missing("the sending host's kernel has no transmit timestamps".to_owned())
            } else {
                not_sampled(metric)
            }
        }
        RttInterface => delay::percentile(&sender.interface_delays, 0.5),
        RttInterfaceP99 => delay::percentile(&sender.interface_delays, 0.99),
        RttP999 | RttOpenP999 => delay::of_answers(&sender.delays, unanswered, 0.999),
        RttMean | RttOpenMean | RttUnderLoadMean => delay::milliseconds(sender.delays.as_ref().map(|delays| delays.mean_ns)),
        ConnectRate => {
            let seconds = sent.last_ns.saturating_sub(sent.first_ns) as f64 / 1e9;
            Value::finite(sent.measured as f64 / seconds, "no connection was opened")
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;

/// The value of a metric that is sampled only on request.
pub(super) fn not_sampled(metric: Metric) -> Value {
    Value::Missing(format!("not sampled: name {metric} among the probe's metrics"))
}
