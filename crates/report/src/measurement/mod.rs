//! A single run as text for the terminal, in the order of iperf3: endpoints and settings, intervals, summary.

pub(crate) mod summary;
#[cfg(test)]
mod tests;

use crate::measurement::summary::{format_with_prefix, milliseconds, number, summary};
use crate::rendering::format::versioned_json;
use crate::rendering::numbers::NONE;
use serde::Serialize;
use stacklab_model::{
    Direction, HostFacts, HostReport, IntervalRow, Io, Length, Metric, Pacing, Probe, RunRecord, RunStatus,
    Transport, Value, count, print_duration,
};
use std::fmt::Write;

/// A TCP row this many times the mean rate is explained if segments were lost.
const HIGH_ROW: f64 = 1.2;
/// A last row shorter than this part of the others is not printed by itself.
const SHORT_ROW: u64 = 5;

/// What a run's text depends on beside the run.
#[derive(Debug, Clone, Copy)]
pub struct MeasurementText<'a> {
    /// Version of the program.
    pub version: &'a str,
    /// Which way it went, seen from the host that prints it.
    pub direction: Direction,
    /// Whether the interval series is printed.
    pub rows: bool,
}

/// Renders one run. A run without host reports (an agent could not do its part) has no figures, only the reason.
pub fn measurement(run: &RunRecord, about: &MeasurementText<'_>) -> String {
    let mut text = heading(run, about);
    if let [sender, receiver, ..] = run.host_reports.as_slice() {
        let counting = if run.spec.probe.probe.echoes() { sender } else { receiver };
        if about.rows && !counting.series.is_empty() {
            text.push('\n');
            text += &rows(run, counting);
        }
        text.push('\n');
        for (label, figures) in summary(run, sender, receiver) {
            let _ = writeln!(text, "{label:<14}  {figures}");
        }
    }
    for warning in &run.warnings {
        let _ = writeln!(text, "\nwarning `{}`: {}; {}", warning.code, warning.text, warning.advice);
    }
    if let RunStatus::Invalid(reasons) = &run.status {
        text += "\nINVALID: the observations contradict the request, and no figure counts\n";
        for reason in reasons {
            let _ = writeln!(text, "- {reason}");
        }
    }
    text
}

const MEASUREMENT_FORMAT_VERSION: u32 = 1;

/// Renders one run with all of its fields as JSON, and the facts of the hosts that report some, sender first.
pub fn measurement_json(run: &RunRecord, hosts: &[&HostFacts]) -> String {
    #[derive(Serialize)]
    struct Document<'a> {
        #[serde(flatten)]
        run: &'a RunRecord,
        hosts: &'a [&'a HostFacts],
    }
    versioned_json(MEASUREMENT_FORMAT_VERSION, &Document { run, hosts })
}

fn heading(run: &RunRecord, about: &MeasurementText<'_>) -> String {
    let spec = &run.spec;
    let what = match spec.probe.probe {
        Probe::Stream | Probe::Paced => "stream",
        Probe::Search => "search",
        Probe::Echo | Probe::EchoOpenLoop | Probe::EchoUnderLoad => "echo",
        Probe::Connect => "connections",
        Probe::Sockets => "sockets",
        Probe::Program => "program",
    };
    let mut text = format!("stacklab {}, {} {what} over {}\n", about.version, spec.transport, spec.family);
    if let [sender, receiver, ..] = run.host_reports.as_slice() {
        let ends = match about.direction {
            Direction::Forward => ("here", "there"),
            Direction::Reverse => ("there", "here"),
            Direction::Both => ("here", "there, and back"),
        };
        let from = &sender.endpoint;
        let to = &receiver.endpoint;
        let mtu = from.path_mtu.unwrap_or(from.interface_mtu);
        let [(from, out), (to, into)] = [from, to].map(|end| (end.local, &end.interface));
        let _ = writeln!(text, "{from} ({}) to {to} ({}), {out} to {into}, MTU {mtu}", ends.0, ends.1);
        let mut parts = Vec::new();
        if spec.probe.probe != Probe::Connect {
            parts.push(format!("{}s of {} bytes", spec.size_of, spec.message_bytes));
            parts.push(match spec.probe.pacing {
                Pacing::Flood => "flood".to_owned(),
                Pacing::Lockstep => "one after another".to_owned(),
                Pacing::Schedule(per_second) => format!("{} a second", number(per_second)),
                pacing => format!("at {pacing}"),
            });
        }
        let io = sender.io.map(|io| match io {
            Io::Send => "one call per message",
            Io::Sendmmsg => "batches by sendmmsg",
            Io::Gso => "GSO batches",
            Io::Zerocopy => "zero copy",
        });
        parts.extend(io.map(str::to_owned));
        if spec.flows > 1 {
            parts.push(format!("{} flows", spec.flows));
        }
        if spec.probe.probe == Probe::Connect {
            parts.push("one after another".to_owned());
        }
        parts.push(match (spec.probe.length, spec.probe.probe) {
            (Length::Time(ns), _) => print_duration(ns),
            (Length::Packets(connections), Probe::Connect) => count(connections, "connection"),
            (Length::Packets(messages), _) => count(messages, "message"),
        });
        if spec.probe.warmup_ns > 0 {
            parts.push(format!("after {} of warm-up", print_duration(spec.probe.warmup_ns)));
        }
        let _ = writeln!(text, "{}", parts.join(", "));
    }
    text
}

/// The rows, of which a short last one belongs to the one before: a few packets say nothing of a rate.
fn whole_rows(rows: &[IntervalRow], end_ns: u64) -> Vec<IntervalRow> {
    let mut rows = rows.to_vec();
    let Some([before, last]) = rows.last_chunk::<2>() else { return rows };
    let length_ns = last.start_ns - before.start_ns;
    let last_ns = end_ns.saturating_sub(last.start_ns);
    if last_ns < length_ns / SHORT_ROW
        && let (Some(more), Some(row)) = (rows.pop(), rows.last_mut())
    {
        let delays = sum_delays(row) + sum_delays(&more);
        let timed = row.delay_mean_ns.or(more.delay_mean_ns).is_some();
        row.messages += more.messages;
        row.bytes += more.bytes;
        row.delay_mean_ns = timed.then(|| delays / row.messages.max(1) as f64);
    }
    rows
}

fn sum_delays(row: &IntervalRow) -> f64 {
    row.delay_mean_ns.map_or(0.0, |mean| mean * row.messages as f64)
}

fn rows(run: &RunRecord, side: &HostReport) -> String {
    let echoes = run.spec.probe.probe.echoes();
    let mut text = match echoes {
        false => format!("{:>17}  {:>10}  {:>13}  {:>10}", "interval", "received", "bitrate", "messages"),
        true => format!("{:>17}  {:>10}  {:>13}", "interval", "answers", "answers/s"),
    };
    let delays = side.series.iter().any(|row| row.delay_mean_ns.is_some());
    if delays {
        text += &format!("  {:>12}", if echoes { "mean rtt" } else { "mean delay" });
    }
    text.push('\n');
    let end_ns = end_of_rows(run, side);
    let rows = whole_rows(&side.series, end_ns);
    let ends = rows.iter().skip(1).map(|row| row.start_ns).chain([end_ns]);
    // What arrived first arrived in no time: the rate over all rows does not count it either, but for a schedule's.
    let mut at_first = if has_schedule(run) { 0 } else { side.received.bytes_at_first };
    for (IntervalRow { start_ns, messages, bytes, delay_mean_ns }, end_ns) in rows.iter().zip(ends) {
        let _ = write!(text, "{:>7.2} - {:>6.2}s", *start_ns as f64 / 1e9, end_ns as f64 / 1e9);
        let _ = match echoes {
            false => {
                let timed = bytes.saturating_sub(std::mem::take(&mut at_first));
                let rate = compute_rate(timed as f64 * 8.0, *start_ns, end_ns);
                let rate = rate.map_or(NONE.to_owned(), |bits| format_with_prefix(bits, "bit/s"));
                write!(text, "  {:>10}  {rate:>13}  {messages:>10}", format_with_prefix(*bytes as f64, "B"))
            }
            true => {
                let rate = compute_rate(*messages as f64, *start_ns, end_ns).map_or(NONE.to_owned(), number);
                write!(text, "  {messages:>10}  {rate:>13}")
            }
        };
        if delays {
            let delay = delay_mean_ns.map_or(NONE.to_owned(), |ns| milliseconds(ns / 1e6));
            let _ = write!(text, "  {delay:>12}");
        }
        text.push('\n');
    }
    if !echoes && run.spec.transport == Transport::Tcp && shows_held_data(run, &rows, end_ns) {
        text += "After a lost segment, TCP delivers the data behind it all at once: a row can exceed the link's rate.\n";
    }
    text
}

/// An amount per second; `None` of an interval without length.
fn compute_rate(amount: f64, start_ns: u64, end_ns: u64) -> Option<f64> {
    let seconds = end_ns.saturating_sub(start_ns) as f64 / 1e9;
    if seconds > 0.0 { Some(amount / seconds) } else { None }
}

/// Where the last row ends, ns after the first arrival: with the last one, or with a schedule, whose last message has a
/// period as all others have.
fn end_of_rows(run: &RunRecord, side: &HostReport) -> u64 {
    let arrived_ns = side.received.last_ns.saturating_sub(side.received.first_ns);
    match run.spec.probe.length {
        Length::Time(scheduled_ns) if has_schedule(run) => arrived_ns.max(scheduled_ns),
        _ => arrived_ns,
    }
}

/// Whether each message has a period of a time that is known.
fn has_schedule(run: &RunRecord) -> bool {
    matches!((run.spec.probe.pacing, run.spec.probe.length), (Pacing::Schedule(_), Length::Time(_)))
}

/// Whether segments were retransmitted and a row stands out. Rows count the data that TCP has delivered to the
/// receiver. When data behind a gap has arrived is not known: TCP reports segments, copies included, and not bytes.
fn shows_held_data(run: &RunRecord, rows: &[IntervalRow], end_ns: u64) -> bool {
    let lost = matches!(run.values.get(&Metric::Retransmits), Some(Value::Measured(each)) if *each > 0.0);
    if !lost || rows.len() < 2 {
        return false;
    }
    let mean = rows.iter().map(|row| row.bytes).sum::<u64>() as f64 / end_ns as f64;
    let ends = rows.iter().skip(1).map(|row| row.start_ns).chain([end_ns]);
    rows.iter()
        .zip(ends)
        .any(|(row, end)| row.bytes as f64 > HIGH_ROW * mean * end.saturating_sub(row.start_ns) as f64)
}
