//! The summary of a run: a label and figures in each line.

use crate::measurement::words::{both, counts, figure, milliseconds, number, places, scaled, shown};
use stacklab_model::{
    ClockSource, Compared, CpuScope, DelayPoints, Delays, HostReport, Metric, Point, Probe, Received,
    RunRecord, Transport, Value,
};

pub(super) fn summary(
    run: &RunRecord,
    sender: &HostReport,
    receiver: &HostReport,
) -> Vec<(&'static str, String)> {
    let mut lines = match run.spec.probe.probe {
        Probe::Stream | Probe::Paced => stream(run, sender, receiver),
        Probe::Echo | Probe::EchoOpenLoop | Probe::EchoUnderLoad => echo(run, sender, receiver),
        Probe::Connect => connect(run, sender),
    };
    lines.extend(schedule(sender));
    lines.extend(cpu(sender, receiver));
    lines
}

fn stream(run: &RunRecord, sender: &HostReport, receiver: &HostReport) -> Vec<(&'static str, String)> {
    let value = |metric: Metric| run.values.get(&metric);
    let (sent, received) = (&sender.sent, &receiver.received);
    let moved = |bytes: u64, messages: u64, [from, to]: [u64; 2]| {
        let seconds = to.saturating_sub(from) as f64 / 1e9;
        format!("{} in {messages} messages, {seconds:.2} s", scaled(bytes as f64, "B"))
    };
    let mut lines = vec![
        ("sent", moved(sent.bytes, sent.measured, [sent.first_ns, sent.last_ns])),
        (
            "received",
            moved(
                received.bytes + received.cut_bytes,
                received.measured,
                [received.first_ns, received.last_ns],
            ),
        ),
        ("throughput", shown(value(Metric::Throughput), |mbit| scaled(mbit * 1e6, "bit/s"))),
        ("message rate", shown(value(Metric::MessageRate), |rate| format!("{} messages/s", number(rate)))),
    ];
    if let [_, _, back, received_back] = run.host_reports.as_slice() {
        let rate = shown(value(Metric::ThroughputReverse), |mbit| scaled(mbit * 1e6, "bit/s"));
        let (sent, received) = (back.sent.measured, received_back.received.measured);
        lines.push(("and back", format!("{rate}; {received} of {sent} messages received")));
    }
    match run.spec.transport {
        Transport::Udp => {
            let lost = sent.measured.saturating_sub(received.measured + received.beyond_window);
            let loss = shown(value(Metric::Loss), |ratio| {
                let places = places(&run.drops);
                let places = if places.is_empty() { places } else { format!(": {places}") };
                format!("{lost}/{} ({} %){places}", sent.measured, figure(ratio * 100.0))
            });
            lines.push(("lost", loss));
            if received.duplicates + received.reordered > 0 {
                let text = format!("{} duplicates, {} out of order", received.duplicates, received.reordered);
                lines.push(("also", text));
            }
        }
        Transport::Tcp => {
            lines.push((
                "retransmits",
                shown(value(Metric::Retransmits), |each| {
                    let count = sender.tcp.as_ref().and_then(|tcp| tcp.total_retrans);
                    let count = count.map_or_else(String::new, |count| format!("{count} segments, "));
                    format!("{count}{} per message", figure(each))
                }),
            ));
            lines.push((
                "smoothed rtt",
                shown(value(Metric::TcpSrtt), |ms| {
                    format!("{}, mean of TCP's smoothed RTT", milliseconds(ms))
                }),
            ));
            lines.extend(sender.endpoint.congestion_control.clone().map(|name| ("congestion", name)));
        }
    }
    if run.spec.probe.metrics.contains(&Metric::OneWayDelay) {
        lines.extend(one_way(run, receiver));
    }
    lines.extend(flows(receiver));
    if let Some(Value::Measured(each)) = value(Metric::IpFragCreates)
        && *each > 0.0
    {
        lines.push(("ip_frag_creates", format!("{} per message", figure(*each))));
    }
    lines
}

fn one_way(run: &RunRecord, receiver: &HostReport) -> Vec<(&'static str, String)> {
    let value = |metric| run.values.get(&metric);
    let mut lines = Vec::new();
    let compared = receiver.delay_points.and_then(|points| points.compared);
    let delay = both(value(Metric::OneWayDelay), value(Metric::OneWayDelayMean), |median, mean| {
        let error = compared.map_or_else(String::new, |compared| {
            format!(", clock error at most {}", milliseconds(compared.bound_ns as f64 / 1e6))
        });
        format!("median {}, mean {}{error}", milliseconds(median), milliseconds(mean))
    });
    lines.push(("one-way delay", delay));
    if matches!(value(Metric::OneWayDelay), Some(Value::Measured(_))) {
        lines.extend(points(receiver));
    }
    let jitter = both(value(Metric::Jitter), value(Metric::JitterRfc3550), |mean, smoothed| {
        format!("{} (RFC 3550: {})", milliseconds(mean), milliseconds(smoothed))
    });
    lines.push(("jitter", jitter));
    lines
}

fn flows(receiver: &HostReport) -> Option<(&'static str, String)> {
    let (least, most) = (receiver.flow_bytes.iter().min()?, receiver.flow_bytes.iter().max()?);
    let seconds = receiver.received.last_ns.saturating_sub(receiver.received.first_ns) as f64 / 1e9;
    let rate = |bytes: u64| scaled(bytes as f64 * 8.0 / seconds, "bit/s");
    let count = receiver.flow_bytes.len();
    let text = format!("{count}, the slowest {}, the fastest {}", rate(*least), rate(*most));
    (seconds > 0.0).then_some(("flows", text))
}

fn echo(run: &RunRecord, sender: &HostReport, receiver: &HostReport) -> Vec<(&'static str, String)> {
    let (sent, back) = (sender.sent.measured, sender.received.measured);
    let seconds = sender.received.last_ns.saturating_sub(sender.received.first_ns) as f64 / 1e9;
    let rate = Value::finite(back.saturating_sub(1) as f64 / seconds, "too few came back");
    let mut lines = vec![
        ("sent", format!("{sent} messages, of which {} were answered", receiver.sent.measured)),
        (
            "received",
            format!("{back} answers ({})", shown(Some(&rate), |rate| format!("{}/s", number(rate)))),
        ),
    ];
    if run.spec.transport == Transport::Udp {
        let lost = sent.saturating_sub(back);
        let ratio = Value::finite(100.0 * lost as f64 / sent as f64, "no message was sent");
        lines.push((
            "lost",
            format!("{lost}/{sent} ({})", shown(Some(&ratio), |ratio| format!("{} %", figure(ratio)))),
        ));
        lines.extend(copies(&receiver.received, &sender.received));
    }
    let metrics = match run.spec.probe.probe {
        Probe::EchoOpenLoop => {
            [Metric::RttOpen, Metric::RttOpenMean, Metric::RttOpenP99, Metric::RttOpenP999]
        }
        _ => [Metric::Rtt, Metric::RttMean, Metric::RttP99, Metric::RttP999],
    };
    lines.extend(times(run, metrics, sender.delays.as_ref()));
    lines.extend(points(sender));
    if run.spec.probe.metrics.contains(&Metric::RttInterface) {
        let at = |metric| shown(run.values.get(&metric), milliseconds);
        lines.push(("at the interface", extremes(sender.interface_delays.as_ref())));
        if let Some(DelayPoints { sent, .. }) = sender.interface_points {
            let by = if sent == Point::Interface {
                "the interface's own clock"
            } else {
                "the kernel, by software"
            };
            lines.push(("  by", by.to_owned()));
        }
        lines.push(("  median", at(Metric::RttInterface)));
        lines.push(("  p99", at(Metric::RttInterfaceP99)));
    }
    lines
}

/// Copies of an echo's messages and answers, which are not counted with them, and those out of order.
fn copies(messages: &Received, answers: &Received) -> Option<(&'static str, String)> {
    let seen = counts([
        (messages.duplicates, "copies of messages, not answered"),
        (answers.duplicates, "copies of answers"),
        (messages.reordered, "messages out of order"),
        (answers.reordered, "answers out of order"),
    ]);
    (!seen.is_empty()).then_some(("also", seen))
}

fn connect(run: &RunRecord, sender: &HostReport) -> Vec<(&'static str, String)> {
    let seconds = sender.sent.last_ns.saturating_sub(sender.sent.first_ns) as f64 / 1e9;
    let rate = shown(run.values.get(&Metric::ConnectRate), |rate| format!("{} a second", number(rate)));
    let mut lines = vec![("opened", format!("{} connections, {seconds:.2} s, {rate}", sender.sent.measured))];
    let delays = sender.delays.as_ref();
    lines.push(("connect time", extremes(delays)));
    lines.push(("  median", shown(run.values.get(&Metric::ConnectTime), milliseconds)));
    lines.push(("  mean", delays.map_or_else(nothing_came, |delays| milliseconds(delays.mean_ns / 1e6))));
    lines
}

/// Round trips: minimum and maximum from the histogram, the others from the run's figures.
fn times(run: &RunRecord, metrics: [Metric; 4], delays: Option<&Delays>) -> Vec<(&'static str, String)> {
    let labels = ["  median", "  mean", "  p99", "  p99.9"];
    let figures = labels.into_iter().zip(metrics);
    let figures = figures.map(|(label, metric)| (label, shown(run.values.get(&metric), milliseconds)));
    [("round trip", extremes(delays))].into_iter().chain(figures).collect()
}

fn extremes(delays: Option<&Delays>) -> String {
    let at = |p: f64| delays.and_then(|delays| delays.buckets.percentile(p));
    match at(0.0).zip(at(1.0)) {
        Some((least, most)) => {
            format!("min {}, max {}", milliseconds(least as f64 / 1e6), milliseconds(most as f64 / 1e6))
        }
        None => nothing_came(),
    }
}

/// The start and end points of delays, and their clocks.
fn points(side: &HostReport) -> Option<(&'static str, String)> {
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

fn nothing_came() -> String {
    "missing: not measured".to_owned()
}

fn schedule(sender: &HostReport) -> Option<(&'static str, String)> {
    let most = sender.sent.max_late_ns?;
    let median = sender.pacing_error.as_ref().and_then(|late| late.buckets.percentile(0.5));
    let median = median.map_or_else(String::new, |ns| format!("median {}, ", milliseconds(ns as f64 / 1e6)));
    Some(("pacing error", format!("{median}max {} behind the schedule", milliseconds(most as f64 / 1e6))))
}

fn cpu(sender: &HostReport, receiver: &HostReport) -> Option<(&'static str, String)> {
    let of = |side: &HostReport| {
        let cpu = side.cpu.as_ref()?;
        Some(100.0 * cpu.busy_ns() as f64 / cpu.window_ns as f64).filter(|share| share.is_finite())
    };
    let text = |name: &str, side: &HostReport| match of(side) {
        Some(share) => format!("{name} {share:.1} % of a core"),
        None => format!("{name} missing"),
    };
    of(sender).or(of(receiver))?;
    let shared = [sender, receiver]
        .iter()
        .any(|side| side.cpu.as_ref().is_some_and(|cpu| cpu.scope == CpuScope::Shared));
    let whose = if shared { " (both ends share one machine, whose load it is)" } else { "" };
    Some(("CPU", format!("{}, {}{whose}", text("sender", sender), text("receiver", receiver))))
}
