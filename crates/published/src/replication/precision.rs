//! Time to an answer: how many runs it took until the preset's questions were answered, and until each cell's mean
//! was as precise as the study's, compared with the study's fixed number of runs.

use crate::{PublishedFigure, StudyName};
use serde::Serialize;
use stacklab_analysis::{Runs, estimate_of, half_width_of};
use stacklab_campaign::schedule::Schedule;
use stacklab_model::{Cell, Family, Metric, RunRecord, Services, SizeOf, StopReason, Transport};
use stacklab_study::{Plan, Study};
use std::collections::BTreeMap;

/// How many runs the preset's answers took.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Answers {
    /// Comparisons of the preset.
    pub asked: usize,
    /// Comparisons whose interval became narrow enough, or whose verdict was decided.
    pub answered: usize,
    /// Blocks that were measured, including a partial one.
    pub blocks: u32,
    pub runs: usize,
    /// Duration of these runs, minutes.
    pub minutes: f64,
    /// Runs of each cell in the study.
    pub published_runs: u32,
    /// Runs of all cells and probes with the study's fixed number of runs.
    pub fixed_runs: usize,
    /// Duration of the fixed runs, minutes; each takes as long as the same trial here.
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
    let minutes = |ns: f64| ns / 60e9;
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
        minutes: minutes(lengths.values().map(|(_, ns)| *ns).sum()),
        published_runs,
        fixed_runs: published_runs as usize * lengths.len(),
        fixed_minutes: minutes(f64::from(published_runs) * each),
    })
}

/// Packets per run in the studies that count packets.
const PACKETS: f64 = 1e6;

/// How many runs the study's precision took.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Precision {
    /// Runs of each cell in the study.
    pub published_runs: u32,
    /// Measured cells with a published precision.
    pub cells: usize,
    /// Cells whose mean is as precise here.
    pub reached: usize,
    /// Total number of runs that these cells took.
    pub runs: usize,
    /// Duration of these runs, minutes.
    pub minutes: f64,
    /// Maximum number of runs of one such cell.
    pub most_runs: usize,
    /// Runs of the same cells with the study's fixed number of runs.
    pub fixed_runs: usize,
    /// Duration of the fixed runs, minutes, each as long as the runs here.
    pub fixed_minutes: f64,
    /// Duration of the fixed runs, minutes, with a million packets each at the measured rates.
    pub fixed_minutes_of_a_million_packets: f64,
    pub each: Vec<CellPrecision>,
}

/// The precision of one cell's mean.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct CellPrecision {
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
    let spread =
        |figure: &&PublishedFigure| figure.metric == "throughput-sd" && figure.topology == "peer-to-peer";
    for figure in figures.iter().filter(spread) {
        let Some(cell) = cell_of(figure, plan) else { continue };
        let published_half_width = half_width_of(figure.value.value, published_runs as usize)?;
        let valid: Vec<&RunRecord> =
            runs.of(cell, metric).iter().copied().filter(|run| run.is_valid()).collect();
        let measured: Vec<f64> = valid.iter().filter_map(|run| run.values.get(&metric)?.measured()).collect();
        if measured.is_empty() {
            continue;
        }
        let half_width =
            |n: usize| estimate_of(&measured[..n]).interval.map(|interval| interval.half_width());
        let enough = (plan.rule.min as usize..=measured.len())
            .find(|n| half_width(*n).is_some_and(|half_width| half_width <= published_half_width));
        let minutes = |n: usize| valid[..n].iter().map(|run| run.wall_ns as f64).sum::<f64>() / 60e9;
        let each_minutes = minutes(valid.len()) / valid.len() as f64;
        let rate = measured.iter().sum::<f64>() / measured.len() as f64;
        found.cells += 1;
        found.fixed_runs += published_runs as usize;
        found.fixed_minutes += f64::from(published_runs) * each_minutes;
        let packets_per_minute = rate * 1e6 / 8.0 / f64::from(cell.payload_bytes()) * 60.0;
        found.fixed_minutes_of_a_million_packets += f64::from(published_runs) * PACKETS / packets_per_minute;
        if let Some(n) = enough {
            found.reached += 1;
            found.runs += n;
            found.minutes += minutes(n);
            found.most_runs = found.most_runs.max(n);
        }
        found.each.push(CellPrecision {
            cell: cell.to_string(),
            metric,
            published_half_width,
            half_width: half_width(measured.len()),
            runs: enough,
        });
    }
    (found.cells > 0).then_some(found)
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
