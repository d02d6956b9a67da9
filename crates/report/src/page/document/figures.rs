//! Metrics, factors, cells, estimates and comparisons.

use serde::Serialize;

/// A metric.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct MetricView {
    /// Its key.
    pub name: String,
    /// What people call it: `sender CPU per message`.
    pub label: String,
    /// Unit of all its figures in the document.
    pub unit: String,
    /// Unit of differences.
    pub difference_unit: String,
    /// Whether more is better.
    pub higher_is_better: bool,
    /// Whether figures below zero mean something: axes of others begin at zero or above.
    pub can_be_negative: bool,
    /// What it is, with unit and direction.
    pub definition: String,
    /// The probe that takes it.
    pub probe: String,
}

impl MetricView {
    /// The end of an interval, as far as the metric reaches.
    pub(crate) fn physical(&self, end: f64) -> f64 {
        if self.can_be_negative { end } else { end.max(0.0) }
    }
}

/// A factor.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct FactorView {
    /// Its key.
    pub name: String,
    /// What people call it: `receive buffer`.
    pub label: String,
    /// Its levels, as written in study files, in order.
    pub levels: Vec<String>,
    /// The levels as printed below the factor's label: `IPv6`, `1280`.
    pub labels: Vec<String>,
    /// The levels as printed alone: `IPv6`, `MTU 1280`.
    pub alone: Vec<String>,
    /// The levels as numbers, where all are.
    pub numbers: Option<Vec<f64>>,
}

/// A cell: one level of every factor.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CellView {
    /// The cell in words.
    pub label: String,
    /// Its level of each factor.
    pub levels: Vec<usize>,
}

/// One cell's runs of one metric.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct EstimateView {
    /// The cell.
    pub cell: usize,
    /// The metric.
    pub metric: usize,
    /// Valid runs with a figure.
    pub n: usize,
    /// Mean over runs.
    pub mean: Option<f64>,
    /// Lower end of its 95 % interval.
    pub low: Option<f64>,
    /// Upper end of its 95 % interval.
    pub high: Option<f64>,
    /// Standard deviation over runs.
    pub sd: Option<f64>,
    /// Median over runs.
    pub median: Option<f64>,
    /// Why runs have no figure, where any has none.
    pub missing: Option<String>,
    /// Mean and half the interval, rounded alike for the metric and transport.
    pub shown: String,
}

/// Which arm is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum Outcome {
    /// The one compared with.
    Baseline,
    /// The one compared.
    Candidate,
    /// The difference is inside the margin.
    Equivalent,
    /// Neither arm had an event.
    Unseen,
    /// The runs do not tell.
    Inconclusive,
    /// There is nothing to compare.
    Nothing,
}

/// A comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ComparisonView {
    /// The metric.
    pub metric: usize,
    /// What is compared.
    pub factor: usize,
    /// The cell compared with.
    pub baseline: usize,
    /// The cell compared.
    pub candidate: usize,
    /// `IPv6 vs IPv4`.
    pub arms: String,
    /// The answer.
    pub outcome: Outcome,
    /// How large a difference is beside the margin: 1 up to twice, 2 up to five times, 3 more; 0 without a better arm.
    pub strength: u8,
    /// The answer in a few characters: `IPv4 9.8%`, `=`, `?`.
    pub sign: String,
    /// The answer in words, with why no more was measured where that was not the interval's doing.
    pub words: String,
    /// Why there is nothing to compare.
    pub reason: Option<String>,
    /// How far the candidate is from the baseline, in the metric's difference unit.
    pub difference: Option<f64>,
    /// Lower end of its 95 % interval.
    pub low: Option<f64>,
    /// Upper end of its 95 % interval.
    pub high: Option<f64>,
    /// The same three, rounded; above 100 % as factors.
    pub shown: String,
    /// The margin in the same unit: ends of the differences that count as none.
    pub margin: [f64; 2],
    /// Blocks in which both arms have a figure.
    pub pairs: usize,
    /// Two-sided p of no difference, adjusted for the number of comparisons, as reports write it.
    pub adjusted_p: Option<String>,
    /// What headers explain, and what they leave.
    pub headers: Option<String>,
}

/// The most that the link carries of a cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct LimitView {
    /// The cell.
    pub cell: usize,
    /// The metric.
    pub metric: usize,
    /// The figure.
    pub value: f64,
}

/// Published figures that belong together.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct PublishedSeries {
    /// Systems and place in the publication.
    pub label: String,
    /// The metric.
    pub metric: usize,
    /// The transport's level, where the figures are of one.
    pub transport: Option<String>,
    /// Sizes, bytes, and figures.
    pub points: Vec<(f64, f64)>,
}
