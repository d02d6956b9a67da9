//! Findings as bytes: text, Markdown, CSV, JSON, LaTeX, figures and the page. The same findings always give the same
//! bytes. Nothing is computed here but what printing needs (percentages, rounding).
//!
//! Text and Markdown are two renderings of one document: answer, verdicts, tables, and technical notes last.

mod exact;
mod figure;
mod findings;
mod fleet;
mod measurement;
pub mod page;
mod paper;
mod program_counts;
pub mod prometheus;
mod records;
mod rendering;
mod stage_costs;
mod tidy;

#[cfg(test)]
mod tests;

pub use exact::exact_counts;
pub use figure::{figure, figures};
pub use findings::answer::difference;
pub use findings::claims::worse;
pub use findings::csv::scale;
pub use findings::heading::time;
pub use findings::notes::{estimate_seconds_to_settle, list_warnings};
pub use findings::verdicts::verdict_name;
pub use fleet::{fleet_json, fleet_text};
pub use measurement::{MeasurementText, measurement, measurement_json};
pub use paper::paper;
pub use program_counts::program_counts;
pub use records::between;
pub use rendering::document::{Block, Footnotes, Table, WIDTH, Width, escape_text as escape_markup};
pub use rendering::format::{OutputFormat, versioned_json};
pub use rendering::html::document_html;
pub use rendering::numbers::figure_text;
pub use rendering::text::text;
pub use stage_costs::stage_costs;
pub use tidy::{HAS_PARQUET, tidy, tidy_slices, write_tidy, write_tidy_slices};
#[cfg(feature = "parquet")]
pub use tidy::{LakePair, comparisons_file, lake_files, read_comparisons};

use crate::findings::empty::without_empty;
use crate::findings::groups::Group;
use crate::findings::{
    comparisons, csv, estimates, frame_loss, groups, heading, instructions, levels, loss_by_load, matrix,
    notes, rfc8219, verdicts,
};
use crate::rendering::text::render as render_document;
use stacklab_model::Findings;

/// Version of the JSON report's shape, its field `format`: raised when a field changes its meaning or goes.
pub const FORMAT_VERSION: u32 = 1;

/// Renders findings in one of [`OutputFormat::DOCUMENTS`]. `width` is that of text, and of the matrix of Markdown.
pub fn render(findings: &Findings, format: OutputFormat, width: Width) -> String {
    match format {
        OutputFormat::Csv | OutputFormat::RawCsv => csv::render(findings, format),
        OutputFormat::Json => versioned_json(FORMAT_VERSION, findings),
        _ => render_document(&document(&without_empty(findings), width), format, width),
    }
}

/// A document of another crate as text, or as Markdown.
pub fn document_text(blocks: &[Block], is_markdown: bool, width: Width) -> String {
    let format = if is_markdown { OutputFormat::Markdown } else { OutputFormat::Text };
    render_document(blocks, format, width)
}

/// The answer for one screen: the sentence, the verdicts and the notes that change what is made of them. The complete
/// text has tables, hosts and checks.
pub fn brief(findings: &Findings, width: Width) -> String {
    let findings = &*without_empty(findings);
    let (groups, is_many): (Vec<Group>, Vec<bool>) = groups::merge_groups(findings).into_iter().unzip();
    let mut blocks = heading::short(findings);
    blocks.extend(matrices(findings, &groups, &is_many, width));
    if groups.is_empty() {
        blocks.extend(estimates::blocks(findings));
    }
    blocks.extend(instructions::blocks(findings));
    blocks.extend(notes::short(findings));
    text(&blocks, width)
}

/// The answer of a campaign of one cell for each arm: the sentence, a row for each metric, and what was not counted.
pub fn compact(findings: &Findings, width: Width) -> String {
    let answer = heading::answer_text(findings);
    let rows = comparisons::one_table(&groups::groups(findings));
    let notes = notes::list_uncounted_runs(findings);
    text(&[answer, rows, notes].concat(), width)
}

fn document(findings: &Findings, width: Width) -> Vec<Block> {
    let (groups, is_many): (Vec<Group>, Vec<bool>) = groups::merge_groups(findings).into_iter().unzip();
    [
        heading::short(findings),
        matrices(findings, &groups, &is_many, width),
        instructions::blocks(findings),
        comparisons::all(&groups, findings.cpu_scope),
        estimates::properties(findings),
        estimates::blocks(findings),
        rfc8219::blocks(findings),
        frame_loss::blocks(findings),
        loss_by_load::blocks(findings),
        verdicts::blocks(&groups),
        stage_costs::blocks_of_samples(&findings.explanations),
        estimates::bias_of_generators(findings),
        notes::blocks(findings),
        heading::technical(findings),
    ]
    .concat()
}

/// The matrix of the pairs of levels, and the tables of many levels.
fn matrices(findings: &Findings, groups: &[Group], is_many: &[bool], width: Width) -> Vec<Block> {
    let mut of_two_levels = Vec::new();
    for (group, is_many) in groups.iter().zip(is_many) {
        if !is_many {
            of_two_levels.push(group);
        }
    }
    let matrix = matrix::blocks(&of_two_levels, width.tables.min(WIDTH.prose));
    [matrix, levels::blocks(findings)].concat()
}
