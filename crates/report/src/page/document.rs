//! The document that the page shows: every figure, word and order in it is made here, so that the page computes nothing.
//!
//! Figures are in the unit that the page prints (shares in per cent) and unrounded, but for those of single runs, which
//! have six digits. Indices point into the lists of the document.

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
    /// What was measured, when, where and how often.
    pub facts: Vec<Fact>,
    /// What intervals and verdicts mean.
    pub legend: String,
    /// Whether every comparison was measured until the stopping rule was content.
    pub finished: bool,
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
    /// What the link carries at most, by the header model.
    pub limits: Vec<LimitView>,
    /// Figures of the published study that this one repeats.
    pub published: Vec<PublishedSeries>,
    /// Every run.
    pub runs: RunsView,
    /// What the hosts saw of runs: of all, or of those that there is room for.
    pub details: Vec<RunDetail>,
    /// The testbed.
    pub testbed: TestbedView,
}

/// A name and what is so called.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Fact {
    /// The name.
    pub name: String,
    /// The text.
    pub text: String,
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
    /// What is compared by what.
    pub label: String,
    /// The comparison at each size.
    pub cells: Vec<Option<usize>>,
}

/// A metric.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct MetricView {
    /// Its name.
    pub name: String,
    /// Unit of its figures.
    pub unit: String,
    /// Unit of differences.
    pub difference_unit: String,
    /// Whether more is better.
    pub higher_is_better: bool,
    /// What it is, with unit and direction.
    pub definition: String,
    /// The probe that takes it.
    pub probe: String,
}

/// A factor.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct FactorView {
    /// Its name.
    pub name: String,
    /// Its levels, as written in study files, in order.
    pub levels: Vec<String>,
    /// The levels as printed.
    pub labels: Vec<String>,
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
    /// `ipv6 against ipv4`.
    pub arms: String,
    /// The answer.
    pub outcome: Outcome,
    /// How large a difference is beside the margin: 1 up to twice, 2 up to five times, 3 more; 0 without a better arm.
    pub strength: u8,
    /// The answer in a few characters: `ipv4 9.8%`, `=`, `?`.
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
    /// The same three, rounded.
    pub shown: String,
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
    /// Its figures, or why there is none.
    pub figures: Vec<Fact>,
    /// What each host saw.
    pub sides: Vec<SideView>,
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
    /// Payload, Mbit/s.
    pub rate: Vec<f64>,
    /// Mean delay, milliseconds.
    pub delay_ms: Vec<Option<f64>>,
    /// Rows of the record in one row here.
    pub joined: usize,
}

/// A histogram of delays with bars of equal width on a logarithmic axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct HistogramView {
    /// What the delays are.
    pub what: String,
    /// Lower end of each bar, and the upper end of the last one, milliseconds.
    pub edges_ms: Vec<f64>,
    /// How many delays are in each.
    pub counts: Vec<f64>,
    /// How many there are in all.
    pub n: f64,
    /// Percentiles of the record's own buckets: name, milliseconds.
    pub percentiles: Vec<(String, f64)>,
    /// Exact mean, milliseconds.
    pub mean_ms: f64,
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

/// The testbed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TestbedView {
    /// In a sentence.
    pub sentence: String,
    /// How hosts are joined: one row for all that are joined alike.
    pub rows: Vec<RowView>,
    /// The hosts, in the order in which they were asked.
    pub hosts: Vec<HostView>,
}

/// Hosts side by side, in the order of the traffic.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct RowView {
    /// The hosts.
    pub hosts: Vec<HostPlace>,
    /// The link after each host but the last.
    pub links: Vec<LinkView>,
}

/// A host's place in a row.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct HostPlace {
    /// Its name.
    pub name: String,
    /// Its system in a few words; empty where no host of that name told it.
    pub system: String,
}

/// A link of a row.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct LinkView {
    /// How packets cross it, one after another, where the study varies that.
    pub mechanisms: Vec<String>,
    /// What is known of it.
    pub facts: Vec<String>,
}

/// A host.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct HostView {
    /// Its name.
    pub name: String,
    /// Where it is: the kind of host, and with routers the mechanism.
    pub kind: String,
    /// Its system in a few words.
    pub system: String,
    /// Its facts.
    pub facts: Vec<Fact>,
    /// What it can do.
    pub abilities: Vec<Fact>,
}

/// The records of a folder.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Listing {
    /// The folder as it was named.
    pub folder: String,
    /// Its records, the last changed first.
    pub campaigns: Vec<CampaignRow>,
    /// How many more there are than are listed.
    pub unlisted: usize,
}

/// A record of a folder.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CampaignRow {
    /// The file's name.
    pub name: String,
    /// Title of the study; of a file that cannot be read, empty.
    pub title: String,
    /// When it began.
    pub started: String,
    /// Runs in it.
    pub runs: usize,
    /// Seconds since it last changed.
    pub changed_s: f64,
    /// Why it cannot be read.
    pub error: Option<String>,
}

/// Two records side by side.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Compared {
    /// The parts of the report, in order.
    pub blocks: Vec<BlockView>,
}

/// A part of a report.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum BlockView {
    /// The title.
    Title {
        /// Its text.
        text: String,
    },
    /// A heading.
    Heading {
        /// Its text.
        text: String,
    },
    /// A paragraph.
    Prose {
        /// Its text.
        text: String,
    },
    /// Named facts.
    Facts {
        /// The facts.
        facts: Vec<Fact>,
    },
    /// A list.
    List {
        /// Its points.
        points: Vec<String>,
    },
    /// A table.
    Table {
        /// Titles of its columns.
        columns: Vec<String>,
        /// Whether each column is of figures.
        figures: Vec<bool>,
        /// Its cells.
        rows: Vec<Vec<String>>,
        /// Its footnotes, from 1.
        notes: Vec<String>,
    },
}

/// A record has changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Changed {
    /// Runs in it; of a folder, records.
    pub count: usize,
}

/// Why a request was not answered.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Refused {
    /// The reason.
    pub error: String,
}
