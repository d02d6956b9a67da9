//! What a replication counts beside the findings: how many runs it took until the preset's questions were answered, and
//! until each cell's mean was as precise as the study's, compared with the study's fixed number of runs; and the
//! fragments of messages larger than a packet, with the loss of throughput that the header model predicts.

use crate::{PublishedFigure, StudyName};
use serde::Serialize;
use stacklab_analysis::{Runs, estimate_of, half_width_of};
use stacklab_campaign::runs::with_reports;
use stacklab_campaign::schedule::Schedule;
use stacklab_model::{
    Cell, Family, HostReport, Mechanism, Metric, Role, RunRecord, Services, SizeOf, StopReason, Transport,
    Value, WirePath, WireSize,
};
use stacklab_store::{Record, StoreError};
use stacklab_study::{Plan, Study};
use std::collections::BTreeMap;

const NS_PER_MINUTE: f64 = 60e9;

/// How many runs the preset's answers took.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Answers {
    /// Comparisons of the preset.
    pub asked: usize,
    /// Those whose interval became narrow enough, or whose verdict was decided.
    pub answered: usize,
    /// Including a partial one.
    pub blocks: u32,
    pub runs: usize,
    pub minutes: f64,
    /// Runs of each cell in the study.
    pub published_runs: u32,
    /// Runs of all cells and probes with the study's fixed number of runs, each as long as the same trial here.
    pub fixed_runs: usize,
    pub fixed_minutes: f64,
}

/// Replays the campaign's decisions. `None` if the study does not state its number of runs.
pub(super) fn answers(study: &StudyName, plan: &Study, seed: u64, records: &[RunRecord]) -> Option<Answers> {
    let published_runs = study.runs?;
    let blocks = Plan::new(plan, seed);
    let replayed = Schedule::new(plan, &blocks).walk(records);
    // A sorted map, so that the same record gives the same sums.
    let mut lengths: BTreeMap<_, (u64, f64)> = BTreeMap::new();
    for run in records.iter().filter(|run| run.is_valid()) {
        let (runs, ns) = lengths.entry((&run.trial.cell, run.trial.probe)).or_default();
        *runs += 1;
        *ns += run.wall_ns as f64;
    }
    let each: f64 = lengths.values().map(|(runs, ns)| *ns / *runs as f64).sum();
    Some(Answers {
        asked: replayed.questions.len(),
        answered: replayed
            .stop_reasons
            .iter()
            .filter(|why| matches!(why, StopReason::Precise | StopReason::Decided))
            .count(),
        blocks: records.iter().map(|run| run.trial.block + 1).max().unwrap_or(0),
        runs: lengths.values().map(|(runs, _)| *runs as usize).sum(),
        minutes: lengths.values().map(|(_, ns)| *ns).sum::<f64>() / NS_PER_MINUTE,
        published_runs,
        fixed_runs: published_runs as usize * lengths.len(),
        fixed_minutes: f64::from(published_runs) * each / NS_PER_MINUTE,
    })
}

/// Packets per run in the studies that count packets.
const PACKETS: f64 = 1e6;

/// How many runs the study's precision took.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct Precision {
    /// Runs of each cell in the study.
    pub published_runs: u32,
    /// Measured cells with a published precision.
    pub cells: usize,
    /// Cells whose mean is as precise here, and what they took.
    pub reached: usize,
    pub runs: usize,
    pub minutes: f64,
    /// Maximum number of runs of one such cell.
    pub most_runs: usize,
    /// Runs of the same cells with the study's fixed number of runs, each as long as the runs here.
    pub fixed_runs: usize,
    pub fixed_minutes: f64,
    /// The same with a million packets each at the measured rates.
    pub fixed_minutes_of_a_million_packets: f64,
    pub each: Vec<CellPrecision>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct CellPrecision {
    pub cell: String,
    pub metric: Metric,
    /// Half-width of the 95 % interval of the published mean, from its standard deviation, in the metric's unit.
    pub published_half_width: f64,
    /// Half-width of the 95 % interval here, after all runs.
    pub half_width: Option<f64>,
    /// Number of runs after which the interval was as narrow; `None` if it never was.
    pub runs: Option<usize>,
}

/// Replays the runs of every cell with a published standard deviation of throughput, and checks the interval after
/// each run, starting at the plan's minimum number of runs, as a campaign does. `None` without published standard
/// deviations.
///
/// Throughput only: the link has the study's rate, so a megabit per second means the same in both. Round trips are
/// far shorter here, so milliseconds cannot be compared.
pub(super) fn precision(
    study: &StudyName,
    figures: &[PublishedFigure],
    plan: &Study,
    records: &[RunRecord],
) -> Option<Precision> {
    let published_runs = study.runs?;
    let metric = Metric::Throughput;
    let runs = Runs::new(records);
    let mut found = Precision { published_runs, ..Precision::default() };
    for figure in figures {
        if figure.metric != "throughput-sd" || figure.topology != "peer-to-peer" {
            continue;
        }
        let Some(cell) = cell_of(figure, plan) else { continue };
        let published_half_width = half_width_of(figure.value.value, published_runs as usize)?;
        let valid: Vec<&RunRecord> =
            runs.of(cell, metric).iter().copied().filter(|run| run.is_valid()).collect();
        let measured: Vec<f64> = valid.iter().filter_map(|run| run.values.get(&metric)?.measured()).collect();
        if measured.is_empty() {
            continue;
        }
        let enough = (plan.rule.min as usize..=measured.len()).find(|n| {
            let half_width = estimate_half_width(&measured[..*n]);
            half_width.is_some_and(|half_width| half_width <= published_half_width)
        });
        let each_minutes = sum_minutes(&valid) / valid.len() as f64;
        let rate = measured.iter().sum::<f64>() / measured.len() as f64;
        found.cells += 1;
        found.fixed_runs += published_runs as usize;
        found.fixed_minutes += f64::from(published_runs) * each_minutes;
        let packets_per_minute = rate * 1e6 / 8.0 / f64::from(cell.payload_bytes()) * 60.0;
        found.fixed_minutes_of_a_million_packets += f64::from(published_runs) * PACKETS / packets_per_minute;
        if let Some(n) = enough {
            found.reached += 1;
            found.runs += n;
            found.minutes += sum_minutes(&valid[..n]);
            found.most_runs = found.most_runs.max(n);
        }
        found.each.push(CellPrecision {
            cell: cell.to_string(),
            metric,
            published_half_width,
            half_width: estimate_half_width(&measured),
            runs: enough,
        });
    }
    (found.cells > 0).then_some(found)
}

fn estimate_half_width(measured: &[f64]) -> Option<f64> {
    estimate_of(measured).interval.map(|interval| interval.half_width())
}

fn sum_minutes(runs: &[&RunRecord]) -> f64 {
    runs.iter().map(|run| run.wall_ns as f64).sum::<f64>() / NS_PER_MINUTE
}

/// The cell of the plan that matches a published figure.
fn cell_of<'a>(figure: &PublishedFigure, plan: &'a Study) -> Option<&'a Cell> {
    let family: Family = figure.ip.parse().ok()?;
    let transport: Transport = figure.transport.parse().ok()?;
    let size: u32 = figure.size.parse().ok()?;
    plan.cells.iter().find(|cell| {
        (cell.family, cell.transport, cell.size) == (family, transport, size)
            && cell.size_of == SizeOf::Payload
            && Services::of(cell).is_empty()
    })
}

/// A cell whose messages do not fit a packet, and the largest size of the same cell that fits.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct FragmentedCell {
    pub cell: String,
    /// The largest size of the same cell that fits.
    pub fits: u32,
    /// Messages that left the sender, over all valid runs.
    pub messages: u64,
    /// Fragments that the sender made from them.
    pub fragments: u64,
    pub arrived: u64,
    /// Messages that the receiver's kernel reassembled from fragments.
    pub reassembled: u64,
    /// Packets per message by the header model.
    pub model_packets: u32,
    /// Throughput of the fragmented size relative to the size that fits, by the header model.
    pub model_ratio: f64,
    pub ratio: f64,
}

impl FragmentedCell {
    pub(super) fn text(&self) -> String {
        let FragmentedCell { cell, fits, messages, fragments, arrived, reassembled, model_packets, .. } =
            self;
        format!(
            "{cell}: {messages} messages left in {fragments} fragments, {:.2} for each ({model_packets} by the header \
             model); {reassembled} were put together of {arrived} that arrived. Headers alone make {:+.2} % of the throughput at {fits} \
             B; measured is {:+.2} %",
            *fragments as f64 / *messages as f64,
            100.0 * (self.model_ratio - 1.0),
            100.0 * (self.ratio - 1.0),
        )
    }
}

/// Every UDP cell whose messages are fragmented, if a smaller size of the same cell is not.
pub(super) fn cuts(
    study: &Study,
    runs: &[RunRecord],
    record: &Record,
) -> Result<Vec<FragmentedCell>, StoreError> {
    let mut cuts = Vec::new();
    for cell in &study.cells {
        let Some((fits, [cut_size, size])) = pair(cell, study) else { continue };
        let mut messages = 0;
        let mut fragments = 0;
        let mut arrived = 0;
        let mut reassembled = 0;
        for run in valid(runs, cell) {
            let whole = with_reports(record, run.clone())?;
            if !whole.is_valid() {
                continue;
            }
            let Some(sender) = find_report(&whole, Role::Sender) else { continue };
            let Some(receiver) = find_report(&whole, Role::Receiver) else { continue };
            let sent = sender.sent.warmup + sender.sent.measured + sender.sent.markers;
            messages = u64::saturating_add(messages, sent);
            fragments = u64::saturating_add(fragments, sum_families(sender, "FragCreates"));
            let received = receiver.received.warmup + receiver.received.measured;
            arrived = u64::saturating_add(arrived, received);
            reassembled = u64::saturating_add(reassembled, sum_families(receiver, "ReasmOKs"));
        }
        let Some(throughput) = mean(runs, cell) else { continue };
        let Some(fitting) = mean(runs, fits) else { continue };
        cuts.push(FragmentedCell {
            cell: cell.to_string(),
            fits: fits.size,
            messages,
            fragments,
            arrived,
            reassembled,
            model_packets: cut_size.packets,
            model_ratio: divide_payload(cell, cut_size) / divide_payload(fits, size),
            ratio: throughput / fitting,
        });
    }
    Ok(cuts)
}

fn find_report(run: &RunRecord, role: Role) -> Option<&HostReport> {
    run.host_reports.iter().find(|report| report.role == role)
}

/// A host's counter of both families.
fn sum_families(report: &HostReport, counter: &str) -> u64 {
    report.counters.get(&format!("ip.{counter}")) + report.counters.get(&format!("ip6.{counter}"))
}

/// The part of a message's bytes on the wire that is payload.
fn divide_payload(cell: &Cell, size: WireSize) -> f64 {
    f64::from(cell.payload_bytes()) / f64::from(size.wire_bytes)
}

/// The largest cell of the same kind that fits a packet, if this one does not; and the on-wire sizes of both, this
/// one first.
fn pair<'a>(cell: &Cell, study: &'a Study) -> Option<(&'a Cell, [WireSize; 2])> {
    let own = calculate_size(cell, study)?;
    if own.packets <= 1 || cell.transport != Transport::Udp {
        return None;
    }
    let fitting = study.cells.iter().filter(|other| {
        let is_alike = Cell { size: cell.size, ..(*other).clone() } == *cell;
        is_alike && calculate_size(other, study).is_some_and(|size| size.packets == 1)
    });
    let fits = fitting.max_by_key(|other| other.size)?;
    Some((fits, [own, calculate_size(fits, study)?]))
}

fn calculate_size(cell: &Cell, study: &Study) -> Option<WireSize> {
    let path = WirePath::plain(cell.family, cell.transport, study.link_config.mtu_of(cell));
    WirePath { mechanism: Mechanism::of(cell), ..path }.wire_size(cell.payload_bytes())
}

fn valid<'a>(runs: &'a [RunRecord], cell: &'a Cell) -> impl Iterator<Item = &'a RunRecord> {
    runs.iter().filter(move |run| run.is_valid() && run.trial.cell == *cell)
}

fn mean(runs: &[RunRecord], cell: &Cell) -> Option<f64> {
    let values = valid(runs, cell).filter_map(|run| run.values.get(&Metric::Throughput));
    let figures: Vec<f64> = values.filter_map(Value::measured).collect();
    (!figures.is_empty()).then(|| figures.iter().sum::<f64>() / figures.len() as f64)
}
