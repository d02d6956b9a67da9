//! Findings as bytes: text for the terminal, Markdown, CSV and JSON.
//!
//! One pure function, [`render`]: the same findings always give the same bytes. Nothing is computed here but what
//! printing needs (percentages, rounding); every statistic comes with the findings.
//!
//! Text and Markdown are two renderings of one document: heading, tables, notes, and the verdicts last, where the
//! eye falls. CSV and JSON carry the figures unrounded. A single run has a text and a JSON of its own ([`measurement`],
//! [`measurement_json`]); so have two records side by side ([`between`]).

mod between;
mod comparisons;
mod csv;
mod csv_tables;
mod document;
mod estimates;
mod figure;
mod figures;
mod format;
mod groups;
mod heading;
mod json;
mod latex;
mod markdown;
mod matrix;
mod measurement;
mod measurement_json;
mod notes;
pub mod page;
mod paper;
mod summary;
mod text;
mod tidy;

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod measurement_tests;

pub use between::{BETWEEN_FORMAT_VERSION, between};
pub use csv::COLUMNS;
pub use document::{Block, Footnotes, Table};
pub use figure::{FigureFormat, figure, figures};
pub use format::Format;
pub use heading::time;
pub use json::FORMAT_VERSION;
pub use measurement::{MeasurementText, measurement};
pub use measurement_json::{MEASUREMENT_FORMAT_VERSION, measurement_json};
pub use paper::{PaperFormat, paper};
pub use tidy::{Kind, TIDY_COLUMNS, TidyFormat, tidy};

use stacklab_model::Findings;

/// Columns that text is made for where the terminal does not say.
pub const WIDTH: usize = 110;

/// Renders findings. `width` is the number of columns for the prose and the closing matrix of text and Markdown;
/// tables take what they need.
pub fn render(findings: &Findings, format: Format, width: usize) -> String {
    match format {
        Format::Text => text::render(&document(findings, width), width),
        Format::Markdown => markdown::render(&document(findings, width)),
        Format::Csv => csv::render(findings),
        Format::Json => json::render(findings),
    }
}

/// Renders any document as text for a terminal of so many columns.
pub fn text(blocks: &[Block], width: usize) -> String {
    text::render(blocks, width)
}

fn document(findings: &Findings, width: usize) -> Vec<Block> {
    let groups = groups::groups(findings);
    let mut blocks = heading::blocks(findings);
    blocks.extend(groups.iter().flat_map(|group| comparisons::blocks(group, findings.cpu_scope)));
    blocks.extend(estimates::blocks(findings));
    blocks.extend(notes::blocks(findings));
    blocks.extend(summary::blocks(&groups));
    blocks.extend(matrix::blocks(&groups, width));
    blocks
}
