//! Findings as bytes: text for the terminal, Markdown, CSV and JSON.
//!
//! One pure function, [`render`]: the same findings always give the same bytes. Nothing is computed here but what
//! printing needs (percentages, rounding); every statistic comes with the findings.
//!
//! Text and Markdown are two renderings of one document: heading, tables, notes, and the verdicts last, where readers
//! look first. CSV and JSON contain the figures unrounded. A single run has its own text and JSON ([`measurement`],
//! [`measurement_json`]); two compared records have theirs too ([`between`]).

mod figure;
mod findings;
mod measurement;
pub mod page;
mod paper;
mod records;
mod rendering;
mod stage_costs;
mod tidy;

#[cfg(test)]
mod tests;

pub use figure::{FigureFormat, figure, figures};
pub use findings::answer::difference;
pub use findings::heading::time;
pub use findings::json::FORMAT_VERSION;
pub use measurement::json::{MEASUREMENT_FORMAT_VERSION, measurement_json};
pub use measurement::{MeasurementText, measurement};
pub use paper::{PaperFormat, paper};
pub use records::{BETWEEN_FORMAT_VERSION, between};
pub use rendering::document::{Block, Footnotes, Table};
pub use rendering::format::Format;
pub use rendering::json::versioned_json;
pub use stage_costs::{STAGE_COSTS_FORMAT_VERSION, stage_costs};
pub use tidy::{TidyFormat, tidy, tidy_slices};

use crate::findings::groups::Group;
use crate::findings::{
    bias, comparisons, csv, estimates, groups, heading, json, levels, matrix, notes, properties, summary,
};
use crate::rendering::csv_cells::Cells;
use crate::rendering::numbers::DisplayUnit;
use crate::rendering::{columns, markdown, text};
use stacklab_model::{Findings, Metric};

/// Default text width if the terminal does not report one.
pub const WIDTH: usize = 110;

/// Renders findings. `width` is the number of columns for the prose and the closing matrix of text and Markdown;
/// tables take what they need.
pub fn render(findings: &Findings, format: Format, width: usize) -> String {
    match format {
        Format::Text => text::render(&document(findings, width), width),
        Format::Markdown => markdown::render(&document(findings, width)),
        Format::Csv => csv::render(findings, Cells::Guarded),
        Format::RawCsv => csv::render(findings, Cells::Raw),
        Format::Json => json::render(findings),
    }
}

/// A figure in a unit that fits it: `9.12 us`, `2.38 Gbit/s`.
pub fn figure_text(metric: Metric, figure: f64) -> String {
    DisplayUnit::figure(metric, figure)
}

/// Renders any document as text for a terminal of so many columns.
pub fn text(blocks: &[Block], width: usize) -> String {
    text::render(blocks, width)
}

fn document(findings: &Findings, width: usize) -> Vec<Block> {
    let (groups, is_many): (Vec<Group>, Vec<bool>) = groups::merged(findings).into_iter().unzip();
    let of =
        |many: bool| groups.iter().zip(&is_many).filter(move |(_, is)| **is == many).map(|(group, _)| group);
    let mut blocks = heading::blocks(findings);
    blocks.extend(comparisons::all(&groups, findings.cpu_scope));
    blocks.extend(properties::blocks(findings));
    blocks.extend(estimates::blocks(findings));
    blocks.extend(stage_costs::blocks(&findings.explanations, false));
    blocks.extend(bias::blocks(findings));
    blocks.extend(notes::blocks(findings));
    blocks.extend(summary::blocks(&groups));
    blocks.extend(matrix::blocks(&of(false).collect::<Vec<_>>(), width));
    blocks.extend(levels::blocks(&of(true).collect::<Vec<_>>()));
    blocks
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
