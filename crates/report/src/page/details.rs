//! The hosts' reports of one run.

use crate::measurement::summary::{format_value, places};
use crate::page::document::{
    CpuView, EndView, Fact, HistogramView, RunDetail, SeriesView, facts, round_to_digits,
};
use crate::page::runs::{channel, slices};
use crate::rendering::numbers::{DisplayUnit, NONE, figure_text};
use stacklab_model::{
    Buckets, CpuScope, CpuTime, Delays, Factor, HostReport, IntervalRow, Length, Metric, Probe, Role,
    RunRecord, RunStatus, ToolSeries, Value, print_duration,
};

/// Maximum rows of a series; more rows are merged.
const ROWS: usize = 120;
const BARS_PER_DECADE: f64 = 20.0;
const PERCENTILES: [(&str, f64); 7] = [
    ("least", 0.0),
    ("10 %", 0.1),
    ("median", 0.5),
    ("90 %", 0.9),
    ("99 %", 0.99),
    ("99.9 %", 0.999),
    ("most", 1.0),
];

const LOCATIONS: &str = "The arms took turns. Figures that each slice has (rates, median delays, jitter, round trips, CPU time \
     per message) are 20 % trimmed means over the slices. A histogram has every message, so its mean and median differ.";

/// The level of detail of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detailed {
    /// All of it.
    Fully,
    /// Without counters and socket options, to make room for more runs.
    Briefly,
}

/// Rows of an export do not say for how long a run sent.
fn describe_length(length: Length) -> String {
    if length == Length::Time(0) { "not known".to_owned() } else { length.to_string() }
}

/// A run with its host reports, and the runs that took turns with it.
pub fn detail(run: &RunRecord, beside: &[RunRecord], detailed: Detailed) -> RunDetail {
    let spec = &run.spec;
    let (measured, missing): (Vec<_>, Vec<_>) =
        run.values.iter().partition(|(_, value)| value.measured().is_some());
    let mut remarks: Vec<String> = match &run.status {
        RunStatus::Valid => vec![],
        RunStatus::Invalid(reasons) => reasons.iter().map(|reason| format!("invalid: {reason}")).collect(),
    };
    remarks.extend(run.warnings.iter().map(|w| format!("{}: {}; {}", w.code, w.text, w.advice)));
    RunDetail {
        block: run.trial.block,
        position: run.trial.position,
        label: format!("block {} {} {}", run.trial.block + 1, run.trial.probe.name(), run.trial.cell.label()),
        facts: facts(facts_of_run(run)),
        warmup_ms: spec.probe.warmup_ns as f64 / 1e6,
        remarks,
        figures: measured.iter().map(|(metric, value)| figure(**metric, value)).collect(),
        missing: missing.iter().map(|(metric, value)| figure(**metric, value)).collect(),
        about_figures: (!run.spec.schedule.is_alone()).then(|| LOCATIONS.to_owned()),
        ends: run.host_reports.iter().map(|side| end_view(side, run, detailed)).collect(),
        slices: slices(run, beside),
        channel: channel(run),
    }
}

fn facts_of_run(run: &RunRecord) -> Vec<(&'static str, String)> {
    let spec = &run.spec;
    let counts = ("counts", if run.is_valid() { "yes" } else { "no" }.to_owned());
    let in_all = ("in all", print_duration(run.wall_ns / 1_000_000 * 1_000_000));
    if !spec.probe.probe.has_messages() {
        return vec![counts, in_all];
    }
    let lost = places(&run.drops);
    vec![
        counts,
        ("message", format!("{} B", spec.message_bytes)),
        ("pacing", spec.probe.pacing.to_string()),
        ("length", describe_length(spec.probe.length)),
        ("flows", spec.flows.to_string()),
        ("I/O", spec.io.to_string()),
        in_all,
        ("lost", if lost.is_empty() { "none".to_owned() } else { lost }),
    ]
}

fn figure(metric: Metric, value: &Value) -> Fact {
    Fact { name: metric.label(), text: format_value(Some(value), |figure| figure_text(metric, figure)) }
}

fn end_view(side: &HostReport, run: &RunRecord, detailed: Detailed) -> EndView {
    let endpoint = &side.endpoint;
    let family = Factor::Family.level_label(endpoint.family.name());
    let transport = Factor::Transport.level_label(endpoint.transport.name());
    let mut rows = vec![
        ("socket", format!("{family} {transport} {}", endpoint.local)),
        ("peer", endpoint.peer.to_string()),
        ("interface", format!("{}, MTU {}", endpoint.interface, endpoint.interface_mtu)),
    ];
    if run.trial.probe.has_messages() {
        let both = [
            ("sent", side.sent.measured, side.sent.warmup),
            ("received", side.received.measured, side.received.warmup),
        ];
        rows.extend(
            both.map(|(name, measured, warmup)| {
                (name, format!("{measured} measured, {warmup} in the warm-up"))
            }),
        );
    }
    if detailed == Detailed::Fully {
        let offloads = endpoint.offloads.on();
        rows.push(("offloads", if offloads.is_empty() { "off".to_owned() } else { offloads.join(", ") }));
        if let Some(mtu) = endpoint.path_mtu {
            rows.push(("path MTU", mtu.to_string()));
        }
        if let Some(name) = &endpoint.congestion_control {
            rows.push(("congestion control", name.clone()));
        }
        if let Some(tcp) = &side.tcp {
            let figures = [tcp.snd_mss, tcp.data_segs_out, tcp.data_segs_in, tcp.total_retrans];
            let [mss, sent, arrived, again] =
                figures.map(|figure| figure.map_or(NONE.to_owned(), |figure| figure.to_string()));
            let text = format!("MSS {mss}, {sent} segments out, {arrived} in, {again} sent again");
            rows.push(("TCP", text));
        }
    }
    let counters = match detailed {
        Detailed::Fully => facts(side.counters.0.iter().map(|(name, n)| (name.clone(), n.to_string()))),
        Detailed::Briefly => vec![],
    };
    EndView {
        role: side.role.to_string(),
        facts: facts(rows),
        series: series(&side.series, run.spec.probe.interval_ns),
        delays: side.delays.as_ref().and_then(|delays| histogram(delays, what(run.trial.probe, side.role))),
        cpu: side.cpu.as_ref().and_then(cpu),
        counters,
    }
}

/// What a file of another program has of the end that counted: its intervals.
pub fn tool_end(tool: &ToolSeries) -> EndView {
    let ToolSeries { role, rows } = tool;
    EndView { role: role.to_string(), series: series(rows, 0), ..EndView::default() }
}

fn what(probe: Probe, role: Role) -> &'static str {
    match (probe, role) {
        (Probe::Connect, _) => "times to connect",
        (Probe::Stream | Probe::Paced | Probe::Search, _) | (_, Role::Receiver) => "one-way delays",
        (_, Role::Sender) => "round trips",
    }
}

/// The rows, merged down to the maximum number. Messages and bytes are added; delays are averaged, weighted by
/// messages. `None` if they are out of order, which no record of stacklab is.
fn series(rows: &[IntervalRow], interval_ns: u64) -> Option<SeriesView> {
    let last = rows.last().filter(|_| rows.is_sorted_by_key(|row| row.start_ns))?;
    // The series of a long run has rows of more than the interval that was asked for.
    let step_ns = rows.get(1).map_or(interval_ns.max(1), |second| second.start_ns - rows[0].start_ns).max(1);
    let joined = rows.len().div_ceil(ROWS);
    let mut start_ms = vec![];
    let mut rates = vec![];
    let mut delays = vec![];
    for rows in rows.chunks(joined) {
        let start = rows[0].start_ns;
        let end = rows[rows.len() - 1].start_ns.saturating_add(step_ns);
        let bytes = rows.iter().fold(0, |sum: u64, row| sum.saturating_add(row.bytes));
        let delayed: Vec<(f64, u64)> =
            rows.iter().filter_map(|row| Some((row.delay_mean_ns?, row.messages))).collect();
        let messages = delayed.iter().fold(0, |sum: u64, (_, messages)| sum.saturating_add(*messages));
        let sum: f64 = delayed.iter().map(|(mean, messages)| mean * *messages as f64).sum();
        // The last row ends with the last arrival, not with its interval: its rate would be too low.
        if rows[rows.len() - 1].start_ns == last.start_ns && rates.len() > 1 {
            break;
        }
        start_ms.push(round_to_digits(start as f64 / 1e6, 6)?);
        rates.push(8e3 * bytes as f64 / (end - start) as f64);
        delays.push((messages > 0).then(|| sum / messages as f64 / 1e6));
    }
    let shown_rate = DisplayUnit::fitting(Metric::Throughput, rates.iter().copied());
    let shown_delay = DisplayUnit::fitting(Metric::OneWayDelay, delays.iter().copied().flatten());
    Some(SeriesView {
        start_ms,
        rate: rates.iter().map(|rate| round_to_digits(shown_rate.factor * rate, 5)).collect::<Option<_>>()?,
        rate_unit: shown_rate.unit.to_owned(),
        delay: delays.iter().map(|delay| round_to_digits(shown_delay.factor * (*delay)?, 5)).collect(),
        delay_unit: shown_delay.unit.to_owned(),
        joined,
    })
}

/// Bars of equal width on a logarithmic axis from the minimum to the maximum delay. `None` if the delays are out of
/// order, which no record of stacklab is.
fn histogram(delays: &Delays, what: &str) -> Option<HistogramView> {
    let Buckets(buckets) = &delays.buckets;
    if !buckets.is_sorted_by_key(|(ns, _)| ns) {
        return None;
    }
    let least = buckets.first()?.0.max(1) as f64;
    let most = buckets.last()?.0.max(1) as f64;
    let first = find_bar(least);
    let last = find_bar(most);
    // Rounding must not create a separate bar for the last delay, nor hostile figures a bar for every ns.
    let bars = usize::try_from(last - first + 1).ok().filter(|bars| *bars <= 512)?;
    let mut counts = vec![0.0; bars];
    for (ns, count) in buckets {
        counts[(find_bar((*ns).max(1) as f64) - first) as usize] += *count as f64;
    }
    // The unit fits almost all delays: a few are often much longer.
    let usual = delays.buckets.percentile(0.99).map(|ns| ns as f64 / 1e6);
    let shown = DisplayUnit::fitting(Metric::OneWayDelay, usual.into_iter());
    let in_unit = |ns: f64, digits: i32| round_to_digits(shown.factor * ns / 1e6, digits);
    let edges = (first..=last + 1).map(|place| in_unit(10f64.powf(place as f64 / BARS_PER_DECADE), 5));
    let mut percentiles = Vec::new();
    for (name, p) in PERCENTILES {
        let ns = delays.buckets.percentile(p);
        if let Some(figure) = ns.and_then(|ns| in_unit(ns as f64, 4)) {
            percentiles.push((name.to_owned(), figure));
        }
    }
    Some(HistogramView {
        what: what.to_owned(),
        unit: shown.unit.to_owned(),
        edges: edges.collect::<Option<_>>()?,
        n: counts.iter().sum(),
        counts,
        percentiles,
        mean: in_unit(delays.mean_ns, 4)?,
    })
}

/// The place of a delay's bar on the logarithmic axis.
fn find_bar(ns: f64) -> i64 {
    (ns.log10() * BARS_PER_DECADE).floor() as i64
}

fn cpu(time: &CpuTime) -> Option<CpuView> {
    if time.window_ns == 0 {
        return None;
    }
    let percent = |ns: u64| round_to_digits(100.0 * ns as f64 / time.window_ns as f64, 4).unwrap_or(0.0);
    let parts = match time.scope {
        // Kernel and programs count as one there.
        CpuScope::Outside | CpuScope::Threads => vec![("busy", time.busy_ns()), ("idle", time.idle_ns)],
        _ => vec![
            ("user", time.user_ns),
            ("system", time.system_ns),
            ("irq", time.irq_ns),
            ("softirq", time.softirq_ns),
            ("steal", time.steal_ns),
            ("idle", time.idle_ns),
        ],
    };
    Some(CpuView {
        scope: time.scope.to_string(),
        parts: parts.iter().map(|(name, ns)| ((*name).to_owned(), percent(*ns))).collect(),
        busy: percent(time.busy_ns()),
        whole: percent(parts.iter().fold(0, |sum: u64, (_, ns)| sum.saturating_add(*ns))),
    })
}
