//! The summary of a run: a label and figures in each line, and how figures are written.

use stacklab_model::{
    ClockSource, Compared, CpuScope, DelayPoints, Delays, Drops, HostReport, Metric, Point, Probe, Received,
    RunRecord, Transport, Value, count,
};

type SummaryLine = (&'static str, String);
type SummaryLines = Vec<SummaryLine>;

const NOT_MEASURED: &str = "missing: not measured";

pub(super) fn summary(run: &RunRecord, sender: &HostReport, receiver: &HostReport) -> SummaryLines {
    let mut lines = match run.spec.probe.probe {
        Probe::Stream | Probe::Paced | Probe::Search => stream(run, sender, receiver),
        Probe::Echo | Probe::EchoOpenLoop | Probe::EchoUnderLoad => echo(run, sender, receiver),
        Probe::Connect => connect(run, sender),
        Probe::Sockets => sockets(run),
        Probe::Program => program(run),
    };
    lines.extend(schedule(sender));
    lines.extend(cpu(sender, receiver));
    lines
}

fn program(run: &RunRecord) -> SummaryLines {
    let rate = describe_rate(run, Metric::InterfaceThroughput);
    let duration = format_value(run.values.get(&Metric::Duration), |ms| format!("{} ms", number(ms)));
    vec![("duration", duration), ("interface throughput", rate)]
}

fn sockets(run: &RunRecord) -> SummaryLines {
    let figures = [("idle sockets", Metric::MemoryPerSocket), ("full sockets", Metric::MemoryPerFullSocket)];
    let mut lines = Vec::new();
    for (name, metric) in figures {
        let text = format_value(run.values.get(&metric), |bytes| format!("{} B per socket", number(bytes)));
        lines.push((name, text));
    }
    lines
}

fn stream(run: &RunRecord, sender: &HostReport, receiver: &HostReport) -> SummaryLines {
    let sent = &sender.sent;
    let received = &receiver.received;
    let message_rate = run.values.get(&Metric::MessageRate);
    let mut lines = vec![
        ("sent", describe_data(sent.bytes, sent.measured, seconds(sent.first_ns, sent.last_ns))),
        (
            "received",
            describe_data(
                received.all_bytes(),
                received.measured,
                seconds(received.first_ns, received.last_ns),
            ),
        ),
        ("throughput", describe_rate(run, Metric::Throughput)),
        ("message rate", format_value(message_rate, |rate| format!("{} messages/s", number(rate)))),
    ];
    if let [_, _, back, received_back] = run.host_reports.as_slice() {
        let rate = describe_rate(run, Metric::ThroughputReverse);
        let sent = back.sent.measured;
        let received = received_back.received.measured;
        lines.push(("and back", format!("{rate}; {received} of {} received", count(sent, "message"))));
    }
    match run.spec.transport {
        Transport::Udp => lines.extend(describe_losses(run, sender, receiver)),
        Transport::Tcp => lines.extend(describe_tcp(run, sender)),
    }
    if run.spec.probe.metrics.contains(&Metric::OneWayDelay) {
        lines.extend(one_way(run, receiver));
    }
    lines.extend(flows(receiver));
    if let Some(Value::Measured(each)) = run.values.get(&Metric::IpFragCreates)
        && *each > 0.0
    {
        lines.push(("ip_frag_creates", format!("{} per message", figure(*each))));
    }
    lines
}

fn describe_rate(run: &RunRecord, metric: Metric) -> String {
    format_value(run.values.get(&metric), |mbit| format_with_prefix(mbit * 1e6, "bit/s"))
}

fn describe_data(bytes: u64, messages: u64, seconds: f64) -> String {
    format!("{} in {}, {seconds:.2} s", format_with_prefix(bytes as f64, "B"), count(messages, "message"))
}

fn describe_losses(run: &RunRecord, sender: &HostReport, receiver: &HostReport) -> SummaryLines {
    let sent = sender.sent.measured;
    let received = &receiver.received;
    let lost = sent.saturating_sub(received.measured + received.beyond_window);
    let loss = format_value(run.values.get(&Metric::Loss), |ratio| {
        let places = places(&run.drops);
        let places = if places.is_empty() { places } else { format!(": {places}") };
        format!("{lost}/{sent} ({} %){places}", figure(ratio * 100.0))
    });
    let mut lines = vec![("lost", loss)];
    if received.duplicates + received.reordered > 0 {
        let duplicates = count(received.duplicates, "duplicate");
        lines.push(("also", format!("{duplicates}, {} out of order", received.reordered)));
    }
    lines
}

fn describe_tcp(run: &RunRecord, sender: &HostReport) -> SummaryLines {
    let segments = match sender.tcp.as_ref().and_then(|tcp| tcp.total_retrans) {
        Some(segments) => format!("{}, ", count(segments, "segment")),
        None => String::new(),
    };
    let retransmits = format_value(run.values.get(&Metric::Retransmits), |each| {
        format!("{segments}{} per message", figure(each))
    });
    let srtt = format_value(run.values.get(&Metric::TcpSrtt), |ms| {
        format!("{}, mean of TCP's smoothed RTT", milliseconds(ms))
    });
    let mut lines = vec![("retransmits", retransmits), ("smoothed rtt", srtt)];
    if let Some(name) = &sender.endpoint.congestion_control {
        lines.push(("congestion", name.clone()));
    }
    lines
}

fn one_way(run: &RunRecord, receiver: &HostReport) -> SummaryLines {
    let values = &run.values;
    let mut lines = Vec::new();
    let compared = receiver.delay_points.and_then(|points| points.compared);
    let median = values.get(&Metric::OneWayDelay);
    let delay = both(median, values.get(&Metric::OneWayDelayMean), |median, mean| {
        let error = compared.map_or_else(String::new, |compared| {
            format!(", clock error at most {}", milliseconds(compared.bound_ns as f64 / 1e6))
        });
        format!("median {}, mean {}{error}", milliseconds(median), milliseconds(mean))
    });
    lines.push(("one-way delay", delay));
    if matches!(median, Some(Value::Measured(_))) {
        lines.extend(points(receiver));
    }
    let jitter = both(values.get(&Metric::Jitter), values.get(&Metric::JitterRfc3550), |mean, smoothed| {
        format!("{} (RFC 3550: {})", milliseconds(mean), milliseconds(smoothed))
    });
    lines.push(("jitter", jitter));
    lines
}

fn flows(receiver: &HostReport) -> Option<SummaryLine> {
    let least = receiver.flow_bytes.iter().min()?;
    let most = receiver.flow_bytes.iter().max()?;
    let seconds = seconds(receiver.received.first_ns, receiver.received.last_ns);
    if seconds <= 0.0 {
        return None;
    }
    let slowest = format_with_prefix(*least as f64 * 8.0 / seconds, "bit/s");
    let fastest = format_with_prefix(*most as f64 * 8.0 / seconds, "bit/s");
    let count = receiver.flow_bytes.len();
    Some(("flows", format!("{count}, the slowest {slowest}, the fastest {fastest}")))
}

fn echo(run: &RunRecord, sender: &HostReport, receiver: &HostReport) -> SummaryLines {
    let sent = sender.sent.measured;
    let back = sender.received.measured;
    let seconds = seconds(sender.received.first_ns, sender.received.last_ns);
    let rate = Value::finite(back.saturating_sub(1) as f64 / seconds, "too few came back");
    let rate = format_value(Some(&rate), |rate| format!("{}/s", number(rate)));
    let mut lines = vec![
        ("sent", format!("{}, of which {} were answered", count(sent, "message"), receiver.sent.measured)),
        ("received", format!("{} ({rate})", count(back, "answer"))),
    ];
    if run.spec.transport == Transport::Udp {
        let lost = sent.saturating_sub(back);
        let ratio = Value::finite(100.0 * lost as f64 / sent as f64, "no message was sent");
        let ratio = format_value(Some(&ratio), |ratio| format!("{} %", figure(ratio)));
        lines.push(("lost", format!("{lost}/{sent} ({ratio})")));
        lines.extend(copies(&receiver.received, &sender.received));
    }
    let metrics = match run.spec.probe.probe {
        Probe::EchoOpenLoop => {
            [Metric::RttOpen, Metric::RttOpenMean, Metric::RttOpenP99, Metric::RttOpenP999]
        }
        _ => [Metric::Rtt, Metric::RttMean, Metric::RttP99, Metric::RttP999],
    };
    // Minimum and maximum are from the histogram, the others are the run's figures.
    lines.push(("round trip", extremes(sender.delays.as_ref())));
    for (label, metric) in ["  median", "  mean", "  p99", "  p99.9"].into_iter().zip(metrics) {
        lines.push((label, describe_delay(run, metric)));
    }
    lines.extend(points(sender));
    if run.spec.probe.metrics.contains(&Metric::RttInterface) {
        lines.extend(describe_interface_delays(run, sender));
    }
    lines
}

fn describe_delay(run: &RunRecord, metric: Metric) -> String {
    format_value(run.values.get(&metric), milliseconds)
}

fn describe_interface_delays(run: &RunRecord, sender: &HostReport) -> SummaryLines {
    let mut lines = vec![("at the interface", extremes(sender.interface_delays.as_ref()))];
    if let Some(DelayPoints { sent, .. }) = sender.interface_points {
        let is_own = sent == Point::Interface;
        let by = if is_own { "the interface's own clock" } else { "the kernel, by software" };
        lines.push(("  by", by.to_owned()));
    }
    lines.push(("  median", describe_delay(run, Metric::RttInterface)));
    lines.push(("  p99", describe_delay(run, Metric::RttInterfaceP99)));
    lines
}

/// Copies of an echo's messages and answers, which are not counted with them, and those out of order.
fn copies(messages: &Received, answers: &Received) -> Option<SummaryLine> {
    let all = [
        (messages.duplicates, "copy", "of messages, not answered"),
        (answers.duplicates, "copy", "of answers"),
        (messages.reordered, "message", "out of order"),
        (answers.reordered, "answer", "out of order"),
    ];
    let mut seen = Vec::new();
    for (n, noun, rest) in all {
        if n > 0 {
            seen.push(format!("{} {rest}", count(n, noun)));
        }
    }
    if seen.is_empty() { None } else { Some(("also", seen.join(", "))) }
}

fn connect(run: &RunRecord, sender: &HostReport) -> SummaryLines {
    let seconds = seconds(sender.sent.first_ns, sender.sent.last_ns);
    let rate =
        format_value(run.values.get(&Metric::ConnectRate), |rate| format!("{} a second", number(rate)));
    let mut lines =
        vec![("opened", format!("{}, {seconds:.2} s, {rate}", count(sender.sent.measured, "connection")))];
    let delays = sender.delays.as_ref();
    lines.push(("connect time", extremes(delays)));
    lines.push(("  median", format_value(run.values.get(&Metric::ConnectTime), milliseconds)));
    let mean = delays.map_or(NOT_MEASURED.to_owned(), |delays| milliseconds(delays.mean_ns / 1e6));
    lines.push(("  mean", mean));
    lines
}

fn extremes(delays: Option<&Delays>) -> String {
    let Some(delays) = delays else { return NOT_MEASURED.to_owned() };
    match [delays.buckets.percentile(0.0), delays.buckets.percentile(1.0)] {
        [Some(least), Some(most)] => {
            format!("min {}, max {}", milliseconds(least as f64 / 1e6), milliseconds(most as f64 / 1e6))
        }
        _ => NOT_MEASURED.to_owned(),
    }
}

fn points(side: &HostReport) -> Option<SummaryLine> {
    let DelayPoints { sent, sent_clock, received, received_clock, compared } = side.delay_points?;
    side.delays.as_ref()?;
    let from = match sent {
        Point::Schedule => "schedule",
        _ => "send call",
    };
    let to = match received {
        Point::Kernel => "arrival in the kernel",
        _ => "return of the receive",
    };
    let clocks = match (sent_clock, received_clock) {
        (ClockSource::Monotonic, ClockSource::Monotonic) => "monotonic clock",
        _ => "monotonic clock, arrival's realtime turned into it",
    };
    let compared = compared.map_or_else(String::new, |Compared { offset_ns, skew_ns_per_s, .. }| {
        let apart = milliseconds(offset_ns.unsigned_abs() as f64 / 1e6);
        let offset =
            format!("; the receiver's is {apart} {}", if offset_ns < 0 { "behind" } else { "ahead" });
        match skew_ns_per_s {
            0 => offset,
            skew => format!("{offset}, and gained {:.2} us per second (corrected)", skew as f64 / 1e3),
        }
    });
    Some(("  taken from", format!("{from} to {to}, {clocks}{compared}")))
}

fn schedule(sender: &HostReport) -> Option<SummaryLine> {
    let most = sender.sent.max_late_ns?;
    let median = sender.pacing_error.as_ref().and_then(|late| late.buckets.percentile(0.5));
    let median = median.map_or_else(String::new, |ns| format!("median {}, ", milliseconds(ns as f64 / 1e6)));
    Some(("pacing error", format!("{median}max {} behind the schedule", milliseconds(most as f64 / 1e6))))
}

fn cpu(sender: &HostReport, receiver: &HostReport) -> Option<SummaryLine> {
    compute_cpu_share(sender).or(compute_cpu_share(receiver))?;
    if !shares_machine(sender) && !shares_machine(receiver) {
        return Some(("CPU", format!("{}, {}", name_cpu("sender", sender), name_cpu("receiver", receiver))));
    }
    // Both counted the same processors: a second figure would look like the other end's.
    let counted = if compute_cpu_share(sender).is_some() { sender } else { receiver };
    let share = name_cpu("machine", counted);
    Some(("CPU", format!("{share} (both ends share one machine, whose load it is)")))
}

fn compute_cpu_share(side: &HostReport) -> Option<f64> {
    let cpu = side.cpu.as_ref()?;
    Some(100.0 * cpu.busy_ns() as f64 / cpu.window_ns as f64).filter(|share| share.is_finite())
}

fn shares_machine(side: &HostReport) -> bool {
    side.cpu.as_ref().is_some_and(|cpu| cpu.scope == CpuScope::Shared)
}

fn name_cpu(name: &str, side: &HostReport) -> String {
    match compute_cpu_share(side) {
        Some(share) => format!("{name} {share:.1} % of a core"),
        None => format!("{name} missing"),
    }
}

fn seconds(from_ns: u64, to_ns: u64) -> f64 {
    to_ns.saturating_sub(from_ns) as f64 / 1e9
}

pub(crate) fn format_value(value: Option<&Value>, words: impl FnOnce(f64) -> String) -> String {
    match value {
        Some(Value::Measured(figure)) => words(*figure),
        Some(Value::Missing(reason)) => format!("missing: {reason}"),
        Some(Value::Invalid(reason)) => format!("invalid: {reason}"),
        None => "missing: not requested".to_owned(),
    }
}

fn counts<const N: usize>(all: [(u64, &str); N]) -> String {
    let counted = all.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
    counted.collect::<Vec<_>>().join(", ")
}

/// Where messages were lost, warm-up included.
pub(crate) fn places(drops: &Drops) -> String {
    counts([
        (drops.sender_queue, "in the sender's queue"),
        (drops.interface, "at an interface"),
        (drops.socket_buffer, "in the receiver's full socket buffer"),
        (drops.network, "on the way"),
    ])
}

/// Two figures in one sentence; if one is missing, the reason replaces both.
fn both(one: Option<&Value>, other: Option<&Value>, words: impl FnOnce(f64, f64) -> String) -> String {
    match (one, other) {
        (Some(Value::Measured(one)), Some(Value::Measured(other))) => words(*one, *other),
        (Some(Value::Measured(_)), missing) | (missing, _) => format_value(missing, figure),
    }
}

/// In the unit that leaves digits before the point: `870 ns`, `4.475 us`, `54.69 ms`.
pub(super) fn milliseconds(ms: f64) -> String {
    match ms {
        0.001..1.0 => format!("{} us", figure(ms * 1e3)),
        _ if ms > 0.0 && ms < 0.001 => format!("{:.0} ns", ms * 1e6),
        _ => format!("{} ms", figure(ms)),
    }
}

/// With about four significant digits.
fn figure(figure: f64) -> String {
    match figure.abs() {
        0.0 => "0".to_owned(),
        100.0.. => format!("{figure:.1}"),
        10.0.. => format!("{figure:.2}"),
        1.0.. => format!("{figure:.3}"),
        0.001.. => format!("{figure:.4}"),
        _ => format!("{figure:.2e}"),
    }
}

pub(super) fn number(figure: f64) -> String {
    if figure >= 100.0 { format!("{figure:.0}") } else { format!("{figure:.2}") }
}

/// With the decimal prefix that leaves up to three digits before the point.
pub(super) fn format_with_prefix(amount: f64, unit: &str) -> String {
    let (scale, prefix) = match amount {
        1e12.. => (1e12, "T"),
        1e9.. => (1e9, "G"),
        1e6.. => (1e6, "M"),
        1e3.. => (1e3, "k"),
        _ => (1.0, ""),
    };
    let number = amount / scale;
    let decimals = match number {
        100.0.. => 1,
        _ if prefix.is_empty() => 0,
        _ => 2,
    };
    format!("{number:.decimals$} {prefix}{unit}")
}
