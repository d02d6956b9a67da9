//! Findings as bytes: text for the terminal, Markdown, CSV and JSON.
//!
//! One pure function, [`render`]: the same findings always give the same bytes. Nothing is computed here but what
//! printing needs (percentages, rounding); every statistic comes with the findings.
//!
//! Text and Markdown are two renderings of one document: heading, tables, notes, and the verdicts last, where readers
//! look first. [`brief`] is the answer alone, and [`compact`] that of a campaign of few cells. CSV and JSON contain the
//! figures unrounded. A single run has its own text and JSON ([`measurement`],
//! [`measurement_json`]); two compared records have theirs too ([`between`]).

mod figure;
mod findings;
mod measurement;
pub mod page;
mod paper;
pub mod prometheus;
mod records;
mod rendering;
mod stage_costs;
mod tidy;

#[cfg(test)]
mod tests;

pub use figure::{figure, figures};
pub use findings::answer::difference;
pub use findings::heading::time;
pub use findings::json::FORMAT_VERSION;
pub use measurement::json::{MEASUREMENT_FORMAT_VERSION, measurement_json};
pub use measurement::{MeasurementText, measurement};
pub use paper::paper;
pub use records::{BETWEEN_FORMAT_VERSION, between};
pub use rendering::document::{Block, Footnotes, Table};
pub use rendering::format::OutputFormat;
pub use rendering::json::versioned_json;
pub use rendering::width::{WIDTH, Width};
pub use stage_costs::{STAGE_COSTS_FORMAT_VERSION, stage_costs};
pub use tidy::{tidy, tidy_slices};

use crate::findings::groups::Group;
use crate::findings::{
    bias, comparisons, csv, estimates, groups, heading, json, levels, matrix, notes, properties, summary,
};
use crate::rendering::numbers::DisplayUnit;
use crate::rendering::{columns, markdown, text};
use stacklab_model::{Findings, Metric};

/// Renders findings. `width` is that of text, and of the closing matrix of Markdown.
pub fn render(findings: &Findings, format: OutputFormat, width: Width) -> String {
    match format {
        OutputFormat::Text => text::render(&document(findings, width), width),
        OutputFormat::Markdown => markdown::render(&document(findings, width)),
        OutputFormat::Csv | OutputFormat::RawCsv => csv::render(findings, format.cells()),
        OutputFormat::Json => json::render(findings),
        _ => format.unsupported(),
    }
}

/// A figure in a unit that fits it: `9.12 us`, `2.38 Gbit/s`.
pub fn figure_text(metric: Metric, figure: f64) -> String {
    DisplayUnit::figure(metric, figure)
}

/// Renders any document as text for a terminal of this many columns.
pub fn text(blocks: &[Block], width: Width) -> String {
    text::render(blocks, width)
}

/// The answer for one screen: the sentence, the verdicts and the notes that change what is made of them. The complete
/// text has tables, hosts and checks.
pub fn brief(findings: &Findings, width: Width) -> String {
    let (groups, is_many): (Vec<Group>, Vec<bool>) = groups::merged(findings).into_iter().unzip();
    let mut blocks = heading::short(findings);
    blocks.extend(verdicts(&groups, &is_many, width));
    if groups.is_empty() {
        blocks.extend(estimates::blocks(findings));
    }
    blocks.extend(notes::short(findings));
    text::render(&blocks, width)
}

/// The answer of a campaign of one cell for each arm: the sentence, a row for each metric, and what was not counted.
pub fn compact(findings: &Findings, width: Width) -> String {
    let answer = heading::answer_text(findings);
    let rows = comparisons::one_table(&groups::groups(findings));
    let notes = notes::uncounted(findings);
    text::render(&[answer, rows, notes].concat(), width)
}

/// Seconds that a campaign like this needs in all to settle half of its open comparisons, at the current variance.
pub fn seconds_needed(findings: &Findings) -> Option<f64> {
    let [half, _] = notes::more_blocks(findings)?;
    Some(notes::seconds(findings, findings.blocks.saturating_add(half)))
}

fn document(findings: &Findings, width: Width) -> Vec<Block> {
    let (groups, is_many): (Vec<Group>, Vec<bool>) = groups::merged(findings).into_iter().unzip();
    let mut blocks = heading::blocks(findings);
    blocks.extend(comparisons::all(&groups, findings.cpu_scope));
    blocks.extend(properties::blocks(findings));
    blocks.extend(estimates::blocks(findings));
    blocks.extend(stage_costs::blocks(&findings.explanations, false));
    blocks.extend(bias::blocks(findings));
    blocks.extend(notes::blocks(findings));
    blocks.extend(summary::blocks(&groups));
    blocks.extend(verdicts(&groups, &is_many, width));
    if !groups.is_empty() {
        blocks.extend([Block::Heading("Terms".to_owned()), Block::Text(heading::TERMS.to_owned())]);
    }
    blocks
}

/// The matrix of verdicts, and the tables of many levels.
fn verdicts(groups: &[Group], is_many: &[bool], width: Width) -> Vec<Block> {
    let of = |many: bool| {
        let these = groups.iter().zip(is_many).filter(|(_, is)| **is == many);
        these.map(|(group, _)| group).collect::<Vec<_>>()
    };
    [matrix::blocks(&of(false), width.tables.min(WIDTH.prose)), levels::blocks(&of(true))].concat()
}

/// `docs/columns.md`: the columns of every CSV of figures.
pub fn column_docs() -> String {
    format!(
        "# Columns of CSV\n\n\
         Figures are unrounded and in the metric's unit (shares from 0 to 1). An empty field is an absent figure, never zero. CSV is\n\
         RFC 4180 in UTF-8. The columns of `stacklab export` are in [export](export.md).\n\n\
         ## `stacklab report --format csv`\n\n\
         A row is a comparison, or a cell and metric that no comparison shows: then `factor` is empty, `baseline_*` hold its\n\
         estimate, and everything about a comparison is empty.\n\n\
         {}\n\
         ## `stacklab compare --format csv`\n\n\
         A row is one metric of one cell that both records have.\n\n\
         {}\n\
         ## `stacklab explain --format csv`\n\n\
         A row is a stage of the network stack, or a function, in two arms.\n\n\
         {}",
        columns::documentation(&findings::csv::columns()),
        columns::documentation(&records::csv::columns()),
        columns::documentation(&stage_costs::csv_columns())
    )
}
