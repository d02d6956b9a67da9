//! Single runs, and the testbed.

use crate::page::document::Fact;
use serde::Serialize;

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct RunsView {
    pub probes: Vec<String>,
    /// Block, from 0.
    pub block: Vec<u32>,
    pub position: Vec<u32>,
    pub cell: Vec<usize>,
    pub probe: Vec<usize>,
    /// Seconds after the campaign's beginning.
    pub started_s: Vec<f64>,
    pub remarks: Vec<Remark>,
    pub figures: Vec<FigureColumn>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct Remark {
    /// `invalid`, or the code of a warning.
    pub code: String,
    pub text: String,
    pub runs: Vec<usize>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct FigureColumn {
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
    pub(crate) label: String,
    pub(crate) facts: Vec<Fact>,
    /// Milliseconds of traffic before the measured part, which no figure counts.
    pub(crate) warmup_ms: f64,
    pub(crate) remarks: Vec<String>,
    pub(crate) figures: Vec<Fact>,
    pub(crate) missing: Vec<Fact>,
    /// Why a figure is another one than those of the histograms; none where it is not.
    pub(crate) about_figures: Option<String>,
    /// What each host saw.
    pub ends: Vec<EndView>,
    pub(crate) slices: Option<SlicesView>,
    pub(crate) channel: Option<ChannelView>,
}

/// The use of a radio channel, and who had it when.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct ChannelView {
    pub facts: Vec<Fact>,
    pub lanes: Vec<AirLane>,
    /// The end of the last exchange that is shown, milliseconds after the window's beginning.
    pub end_ms: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct AirLane {
    pub name: String,
    /// The beginning of each, milliseconds after the window's beginning.
    pub begin_ms: Vec<f64>,
    pub end_ms: Vec<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct SlicesView {
    pub what: String,
    pub unit: String,
    pub arms: Vec<ArmSlices>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct ArmSlices {
    pub label: String,
    /// Start of each slice, milliseconds after the trial's first one.
    pub start_ms: Vec<f64>,
    pub figures: Vec<Option<f64>>,
    pub held_up: Vec<bool>,
}

/// What one host saw.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct EndView {
    pub(crate) role: String,
    pub(crate) facts: Vec<Fact>,
    pub(crate) series: Option<SeriesView>,
    pub(crate) delays: Option<HistogramView>,
    pub(crate) cpu: Option<CpuView>,
    pub(crate) counters: Vec<Fact>,
}

/// An interval series; rows are joined where there are too many.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct SeriesView {
    /// Start of each row, milliseconds after the first measured arrival.
    pub start_ms: Vec<f64>,
    pub rate: Vec<f64>,
    pub rate_unit: String,
    pub delay: Vec<Option<f64>>,
    pub delay_unit: String,
    pub joined: usize,
}

/// A histogram of delays with bars of equal width on a logarithmic axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct HistogramView {
    pub what: String,
    pub unit: String,
    pub edges: Vec<f64>,
    pub counts: Vec<f64>,
    pub n: f64,
    pub percentiles: Vec<(String, f64)>,
    pub mean: f64,
}

/// Parts of a host's CPU time in the measured window, per cent of one core.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct CpuView {
    pub scope: String,
    pub parts: Vec<(String, f64)>,
    pub busy: f64,
    pub whole: f64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct TestbedView {
    pub sentence: String,
    pub rows: Vec<DrawingView>,
    pub hosts: Vec<HostView>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct DrawingView {
    pub hosts: Vec<DrawnHost>,
    pub links: Vec<LinkView>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct DrawnHost {
    pub name: String,
    /// Its system in a few words; empty if no host of that name reported it.
    pub system: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct LinkView {
    pub mechanisms: Vec<String>,
    pub facts: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct HostView {
    pub name: String,
    pub kind: String,
    pub system: String,
    pub facts: Vec<Fact>,
    pub abilities: Vec<Fact>,
}
