//! The document that the page shows: every figure, word and order in it is made here, so that the page computes
//! nothing.
//!
//! Figures are in the unit that the page prints (shares in per cent) and unrounded, but for those of single runs, which
//! have six digits, and of the forest plot, which have four. Indices point into the lists of the document.

mod facts;
mod figures;
mod runs;
mod server;
mod testbed;
mod why;

pub use facts::Fact;
pub use figures::*;
pub use runs::*;
pub use server::*;
pub use testbed::*;
pub use why::*;

use serde::Serialize;

/// Version of the document's shape.
pub const PAGE_FORMAT_VERSION: u32 = 1;

/// A campaign as the page shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Page {
    /// [`PAGE_FORMAT_VERSION`].
    pub format: u32,
    /// Title of the study.
    pub title: String,
    /// The answer in a few sentences; `None` where nothing is compared.
    pub answer: Option<String>,
    /// What was measured, when, where and how often.
    pub facts: Vec<Fact>,
    /// What intervals and verdicts mean.
    pub legend: String,
    /// Whether every comparison was measured until the stopping rule was content.
    pub finished: bool,
    /// How many comparisons have an answer.
    pub answered: String,
    /// What is compared: `IPv6 vs IPv4`.
    pub pairs: Vec<String>,
    /// Each difference over all cells, as a forest plot.
    pub forest: Vec<ForestRow>,
    /// Why arms differ, where that was asked.
    pub why: Vec<WhyView>,
    /// A sentence for each group of comparisons.
    pub sentences: Vec<Sentence>,
    /// All verdicts at a glance.
    pub matrix: Matrix,
    /// What a reader should know besides.
    pub notes: Vec<String>,
    /// The metrics that the study takes.
    pub metrics: Vec<MetricView>,
    /// The factors that tell cells apart, transport first.
    pub factors: Vec<FactorView>,
    /// The cells of the study.
    pub cells: Vec<CellView>,
    /// Every cell and metric.
    pub estimates: Vec<EstimateView>,
    /// Every comparison.
    pub comparisons: Vec<ComparisonView>,
    /// What the testbed carries at most, by the model of headers or airtime.
    pub limits: Vec<LimitView>,
    /// Which of them: `headers`, or `airtime`.
    pub limited_by: String,
    /// Figures of the published study that this one repeats.
    pub published: Vec<PublishedSeries>,
    /// Every run.
    pub runs: RunsView,
    /// What the hosts saw of runs: of all, or of those that there is room for.
    pub details: Vec<RunDetail>,
    /// The testbed.
    pub testbed: TestbedView,
}

/// A metric's difference over all cells in which it was asked.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ForestRow {
    /// The pair that is compared.
    pub pair: usize,
    /// The metric.
    pub metric: String,
    /// The transport if it is not what differs.
    pub transport: Option<String>,
    /// Unit of all figures of the row.
    pub unit: String,
    /// Whether figures are ratios, as per cent more or less: as far down as up on a logarithmic axis.
    pub is_ratio: bool,
    /// Whether the metric is better where it is higher.
    pub higher_is_better: bool,
    /// The answer over all cells.
    pub outcome: Outcome,
    /// How large the difference is beside the margin, as in [`ComparisonView`].
    pub strength: u8,
    /// The answer in words.
    pub words: String,
    /// The difference over all cells, with its 95 % interval, where each cell has one.
    pub whole: Option<Span>,
    /// The same, rounded, with its unit; above 100 % as a factor.
    pub shown: String,
    /// The difference in each cell.
    pub parts: Vec<Span>,
    /// The margin: ends of the differences that count as none.
    pub margin: [f64; 2],
}

/// An estimate with its interval.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Span {
    /// The estimate.
    pub middle: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The verdict over a group of comparisons.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Sentence {
    /// The sentence.
    pub text: String,
    /// Whether any comparison of it has a better arm.
    pub differs: bool,
    /// The comparison that stands for the group.
    pub comparison: usize,
    /// The pair that is compared.
    pub pair: usize,
}

/// Verdicts by size.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Matrix {
    /// Sizes, bytes.
    pub columns: Vec<u32>,
    /// Everything else.
    pub rows: Vec<MatrixRow>,
}

/// One row of verdicts.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct MatrixRow {
    /// The pair that is compared.
    pub pair: usize,
    /// By what, and where.
    pub label: String,
    /// The comparison at each size.
    pub cells: Vec<Option<usize>>,
}
