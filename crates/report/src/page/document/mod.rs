//! The document that the page shows: every figure, word and order in it is made here, so that the page computes
//! nothing.
//!
//! Figures are in the unit that the page prints (shares in per cent) and unrounded, but for those of single runs, which
//! have six digits, and of the forest plot, which have four. Indices point into the lists of the document.

mod runs;
mod server;

pub use runs::*;
pub use server::*;

use crate::rendering::document::Block;
use serde::Serialize;

/// Version of the document's shape.
pub const PAGE_FORMAT_VERSION: u32 = 1;

/// A campaign as the page shows it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Page {
    pub(crate) format: u32,
    pub(crate) title: String,
    /// The answer in a few sentences; `None` where nothing is compared.
    pub(crate) answer: Option<String>,
    pub(crate) facts: Vec<Fact>,
    pub(crate) legend: String,
    pub(crate) finished: bool,
    pub(crate) answered: String,
    pub(crate) pairs: Vec<String>,
    pub(crate) forest: Vec<ForestRow>,
    pub(crate) why: Vec<WhyView>,
    pub(crate) losses: Vec<LossView>,
    /// The tables of RFC 8219 as the program prints them; empty of a study without a goal.
    pub(crate) rfc8219: Vec<Block>,
    /// Instructions beside time and memory, as the program prints them; empty if none were counted.
    pub(crate) instructions: Vec<Block>,
    /// The tables of many levels beside one baseline, as the program prints them; empty of a study without any.
    pub(crate) levels: Vec<Block>,
    pub(crate) sentences: Vec<Sentence>,
    pub(crate) matrix: Matrix,
    pub(crate) notes: Vec<String>,
    pub(crate) metrics: Vec<MetricView>,
    pub(crate) factors: Vec<FactorView>,
    pub(crate) cells: Vec<CellView>,
    pub(crate) estimates: Vec<EstimateView>,
    pub(crate) comparisons: Vec<ComparisonView>,
    pub(crate) limits: Vec<LimitView>,
    /// Which of them: `headers`, or `airtime`.
    pub(crate) limited_by: String,
    pub(crate) published: Vec<PublishedSeries>,
    pub(crate) runs: RunsView,
    /// What the hosts saw of runs: of all, or of those that there is room for.
    pub details: Vec<RunDetail>,
    pub(crate) testbed: TestbedView,
}

/// A metric's difference over all cells in which it was asked.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct ForestRow {
    pub pair: usize,
    pub metric: String,
    pub transport: Option<String>,
    pub unit: String,
    /// Whether figures are ratios, as per cent more or less: as far down as up on a logarithmic axis.
    pub is_ratio: bool,
    pub higher_is_better: bool,
    pub outcome: Outcome,
    /// How large the difference is beside the margin, as in [`ComparisonView`].
    pub strength: u8,
    pub words: String,
    /// The difference over all cells, with its 95 % interval, where each cell has one.
    pub whole: Option<Span>,
    /// The same, rounded, with its unit; above 100 % as a factor.
    pub shown: String,
    pub parts: Vec<Span>,
    pub margin: [f64; 2],
    pub controls: Vec<ControlView>,
}

/// The slices of a search, of cells that differ by what is compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct LossView {
    /// Of a figure: `loss-by-load-udp-64-b`.
    pub name: String,
    /// `loss by load, UDP 64 B`.
    pub title: String,
    pub about: String,
    /// The unit of loads.
    pub unit: String,
    pub lines: Vec<LossLine>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct LossLine {
    /// The arm.
    pub label: String,
    /// How many slices it had.
    pub counted: String,
    pub points: Vec<LossPointView>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct LossPointView {
    pub load: f64,
    /// Per cent of the messages of a slice, with a 95 % interval.
    pub loss: f64,
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// The same three, rounded.
    pub shown: String,
    pub slices: usize,
}

/// An A/A control: one arm against itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct ControlView {
    /// `IPv4 vs IPv4`.
    pub arms: String,
    /// Size of its messages, bytes.
    pub size: u32,
    /// The difference in a few characters: `+0.1 ± 0.6 %`.
    pub sign: String,
    /// The difference with its 95 % interval, in the unit of the row.
    pub whole: Option<Span>,
    /// The same, rounded, with its unit.
    pub shown: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct Span {
    pub middle: f64,
    pub low: f64,
    pub high: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct Sentence {
    pub text: String,
    pub differs: bool,
    pub comparison: usize,
    pub pair: usize,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct Matrix {
    /// Sizes, bytes.
    pub columns: Vec<u32>,
    pub rows: Vec<MatrixRow>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct MatrixRow {
    pub pair: usize,
    pub label: String,
    pub cells: Vec<Option<usize>>,
    /// Below the last row of a metric and transport.
    pub controls: Vec<ControlView>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct MetricView {
    pub name: String,
    /// What people call it: `sender CPU per message`.
    pub label: String,
    pub unit: String,
    pub difference_unit: String,
    pub higher_is_better: bool,
    pub can_be_negative: bool,
    pub definition: String,
    pub probe: String,
}

impl MetricView {
    /// The end of an interval, as far as the metric reaches.
    pub(crate) fn physical(&self, end: f64) -> f64 {
        if self.can_be_negative { end } else { end.max(0.0) }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct FactorView {
    pub name: String,
    pub label: String,
    pub levels: Vec<String>,
    /// The levels as printed below the factor's label: `IPv6`, `1280`.
    pub labels: Vec<String>,
    /// The levels as printed alone: `IPv6`, `MTU 1280`.
    pub alone: Vec<String>,
    pub numbers: Option<Vec<f64>>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct CellView {
    pub label: String,
    pub levels: Vec<usize>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct EstimateView {
    pub cell: usize,
    pub metric: usize,
    pub n: usize,
    pub mean: Option<f64>,
    /// Lower end of its 95 % interval.
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub sd: Option<f64>,
    pub median: Option<f64>,
    pub missing: Option<String>,
    pub shown: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) enum Outcome {
    Baseline,
    Candidate,
    Equivalent,
    Unseen,
    Inconclusive,
    Nothing,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct ComparisonView {
    pub metric: usize,
    pub factor: usize,
    pub baseline: usize,
    pub candidate: usize,
    pub arms: String,
    pub outcome: Outcome,
    /// How large a difference is beside the margin: 1 up to twice, 2 up to five times, 3 more; 0 without a better arm.
    pub strength: u8,
    pub sign: String,
    pub words: String,
    pub reason: Option<String>,
    pub difference: Option<f64>,
    /// Lower end of its 95 % interval.
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// The same three, rounded; above 100 % as factors.
    pub shown: String,
    /// The margin in the same unit: ends of the differences that count as none.
    pub margin: [f64; 2],
    pub pairs: usize,
    pub adjusted_p: Option<String>,
    pub headers: Option<String>,
}

/// The most that the link carries of a cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct LimitView {
    pub cell: usize,
    pub metric: usize,
    pub value: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct PublishedSeries {
    pub label: String,
    pub metric: usize,
    pub transport: Option<String>,
    /// Sizes, bytes, and figures.
    pub points: Vec<(f64, f64)>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct Fact {
    pub name: String,
    pub text: String,
}

pub(super) fn facts<N: Into<String>>(facts: impl IntoIterator<Item = (N, String)>) -> Vec<Fact> {
    facts.into_iter().map(|(name, text)| Fact { name: name.into(), text }).collect()
}

/// A figure with this many significant digits; `None` if it is not finite.
pub(super) fn round_to_digits(figure: f64, digits: i32) -> Option<f64> {
    if figure == 0.0 {
        return Some(0.0);
    }
    if !figure.is_finite() {
        return None;
    }
    format!("{figure:.*e}", (digits - 1) as usize).parse().ok()
}
