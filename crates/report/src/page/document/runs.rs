//! Single runs.

use crate::page::document::facts::Fact;
use serde::Serialize;

/// Every run, by column.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct RunsView {
    /// Names of the probes.
    pub probes: Vec<String>,
    /// Block, from 0.
    pub block: Vec<u32>,
    /// Place in the block.
    pub position: Vec<u32>,
    /// The cell.
    pub cell: Vec<usize>,
    /// The probe.
    pub probe: Vec<usize>,
    /// Seconds after the campaign's beginning.
    pub started_s: Vec<f64>,
    /// Invalid runs with the reason, and runs with warnings.
    pub remarks: Vec<Remark>,
    /// A column for each metric.
    pub figures: Vec<FigureColumn>,
}

/// What is to be said of runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Remark {
    /// `invalid`, or the code of a warning.
    pub code: String,
    /// The text.
    pub text: String,
    /// The runs.
    pub runs: Vec<usize>,
}

/// A metric's figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct FigureColumn {
    /// The metric.
    pub metric: usize,
    /// A figure for each run of the metric's probe, in the order of runs; none where it is missing or not valid.
    pub values: Vec<Option<f64>>,
}

/// What the hosts saw of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct RunDetail {
    /// Block, from 0.
    pub block: u32,
    /// Place in the block.
    pub position: u32,
    /// The run in words.
    pub label: String,
    /// How it was run, whether it counts, and how long it took.
    pub facts: Vec<Fact>,
    /// Milliseconds of traffic before the measured part, which no figure counts.
    pub warmup_ms: f64,
    /// What is to be said of it.
    pub remarks: Vec<String>,
    /// Its figures.
    pub figures: Vec<Fact>,
    /// Why there is no figure of other metrics.
    pub missing: Vec<Fact>,
    /// Why a figure is another one than those of the histograms; none where it is not.
    pub about_figures: Option<String>,
    /// What each host saw.
    pub sides: Vec<SideView>,
    /// The slices of all arms of its trial; none if it was measured by itself.
    pub slices: Option<SlicesView>,
    /// The use of the radio channel; none if there is none.
    pub channel: Option<ChannelView>,
}

/// The use of a radio channel, and who had it when.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ChannelView {
    /// Where the time went, and what each node had of it.
    pub facts: Vec<Fact>,
    /// Who had the channel: each node, then collisions.
    pub lanes: Vec<AirLane>,
    /// The end of the last exchange that is shown, milliseconds after the window's beginning.
    pub end_ms: f64,
}

/// The exchanges of one node, or collisions.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct AirLane {
    /// Whose.
    pub name: String,
    /// The beginning of each, milliseconds after the window's beginning.
    pub begin_ms: Vec<f64>,
    /// The end of each, after the response.
    pub end_ms: Vec<f64>,
}

/// The slices of the arms of an interleaved trial.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct SlicesView {
    /// What a figure is.
    pub what: String,
    /// Its unit.
    pub unit: String,
    /// Each arm, in the order of the block.
    pub arms: Vec<ArmSlices>,
}

/// The slices of one arm.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ArmSlices {
    /// The arm's cell.
    pub label: String,
    /// Start of each slice, milliseconds after the trial's first one.
    pub start_ms: Vec<f64>,
    /// The slice's figure; none where nothing came.
    pub figures: Vec<Option<f64>>,
    /// Whether the slice waited for a processor for long, at either host.
    pub held_up: Vec<bool>,
}

/// What one host saw.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct SideView {
    /// Its part.
    pub role: String,
    /// Socket, messages and options.
    pub facts: Vec<Fact>,
    /// Interval series.
    pub series: Option<SeriesView>,
    /// Histogram of delays.
    pub delays: Option<HistogramView>,
    /// Shares of the host's CPU time.
    pub cpu: Option<CpuView>,
    /// Counters that moved.
    pub counters: Vec<Fact>,
}

/// An interval series; rows are joined where there are too many.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct SeriesView {
    /// Start of each row, milliseconds after the first measured arrival.
    pub start_ms: Vec<f64>,
    /// Payload.
    pub rate: Vec<f64>,
    /// Unit of the rates.
    pub rate_unit: String,
    /// Mean delay.
    pub delay: Vec<Option<f64>>,
    /// Unit of the delays.
    pub delay_unit: String,
    /// Rows of the record in one row here.
    pub joined: usize,
}

/// A histogram of delays with bars of equal width on a logarithmic axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct HistogramView {
    /// What the delays are.
    pub what: String,
    /// Unit of all delays.
    pub unit: String,
    /// Lower end of each bar, and the upper end of the last one.
    pub edges: Vec<f64>,
    /// How many delays are in each.
    pub counts: Vec<f64>,
    /// How many there are in all.
    pub n: f64,
    /// Percentiles of the record's own buckets, by name.
    pub percentiles: Vec<(String, f64)>,
    /// Exact mean.
    pub mean: f64,
}

/// Parts of a host's CPU time in the measured window, per cent of one core.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CpuView {
    /// Whose CPU.
    pub scope: String,
    /// Name and per cent of one core, busy parts first, idle last.
    pub parts: Vec<(String, f64)>,
    /// Busy in all, per cent of one core.
    pub busy: f64,
    /// All parts together, per cent of one core.
    pub whole: f64,
}
