//! Instructions per message beside time and memory, of the comparisons that ask for them.

use crate::findings::comparisons::means;
use crate::findings::counted_pairs::{group_pairs, is_of_cells, list_row_factors, push_pairs, push_time};
use crate::findings::groups::{label_cells, level_alone};
use crate::findings::program_instructions;
use crate::rendering::document::{Block, Footnotes, Table, plain};
use crate::rendering::numbers::{DisplayUnit, NONE, decimals};
use crate::stage_costs::find_exact_counts;
use stacklab_model::{
    Cell, Comparison, Estimate, Explanation, Findings, Metric, Table as RouterTable, Uncounted, count,
    once_each, quote_file,
};

/// The metrics that may stand for time beside instructions, the best one first.
const TIMES: [Metric; 5] = [
    Metric::SenderCpuPerMessage,
    Metric::ReceiverCpuPerMessage,
    Metric::Throughput,
    Metric::MessageRate,
    Metric::Rtt,
];

const ABOUT: &str = "instructions per message of sender, receiver and what is between them, counted in an emulated machine: exact, and \
     without caches. Stages and functions: stacklab report --stages";

/// A table of each pair of levels, with a row for each pair of cells: IPv4 beside IPv6.
pub(crate) fn blocks(findings: &Findings) -> Vec<Block> {
    let counted = findings.explanations.iter().filter(|one| find_exact_counts(one).is_some());
    let pairs = group_pairs(counted);
    if pairs.is_empty() {
        return program_instructions::blocks(findings);
    }
    let mut blocks = vec![Block::Heading("Instructions, beside time and memory".to_owned())];
    blocks.extend(list_machines(findings).into_iter().map(Block::Text));
    push_pairs(&mut blocks, pairs, |rows| table(findings, rows));
    blocks
}

/// What instructions are, and the machines that counted them: one, unless a campaign was resumed with another version.
fn list_machines(findings: &Findings) -> Vec<String> {
    let counts = findings.explanations.iter().filter_map(|one| Some(find_exact_counts(one)?.0));
    let machines = once_each(counts.map(crate::exact::machine));
    machines.iter().map(|machine| plain(&format!("{ABOUT}. {machine}"))).collect()
}

fn table(findings: &Findings, rows: &[&Explanation]) -> Table {
    let factor = rows[0].factor;
    let cells: Vec<&Cell> = rows.iter().map(|row| &row.baseline).collect();
    let mut table = label_cells(&cells, &list_row_factors(findings, &cells, factor));
    let mut notes = Footnotes::default();
    push_time(&mut table, findings, rows, &TIMES);
    for (arm, cell) in [&rows[0].baseline, &rows[0].candidate].into_iter().enumerate() {
        let column = rows.iter().map(|row| write_instructions(row, arm)).collect();
        table.push(format!("instructions, {}", level_alone(cell, factor)), true, column);
    }
    table.push("more", true, rows.iter().map(|row| write_difference(row)).collect());
    push_memory(&mut table, findings, rows, &mut notes);
    table.footnotes = notes;
    table
}

/// The instructions per message or request of a comparison's cells, if they were counted.
pub(crate) fn find_counts(findings: &Findings, comparison: &Comparison) -> Option<[f64; 2]> {
    for row in findings.explanations.iter().filter(|row| is_of_cells(row, comparison)) {
        if let Some((_, cell)) = find_exact_counts(row) {
            return Some(cell.total.map(|total| cell.per_message(total)));
        }
        if let Some(counts) = &row.programs {
            return program_instructions::find_pair(counts, comparison.question.metric);
        }
    }
    None
}

fn write_instructions(row: &Explanation, arm: usize) -> String {
    let Some((_, cell)) = find_exact_counts(row) else { return NONE.to_owned() };
    format!("{:.0}", cell.per_message(cell.total[arm]))
}

fn write_difference(row: &Explanation) -> String {
    let Some((_, cell)) = find_exact_counts(row) else { return NONE.to_owned() };
    format!("{:+.0}", cell.difference(cell.total))
}

/// What an entry of the compared table takes of the kernel's memory, if that was measured.
fn push_memory(table: &mut Table, findings: &Findings, rows: &[&Explanation], notes: &mut Footnotes) {
    let Some(of) = RouterTable::of(rows[0].factor) else { return };
    let metric = of.metric();
    let mut estimates = Vec::new();
    for row in rows {
        let mut cells = findings.cells.iter().filter(|one| one.metric == metric);
        let found = cells.find(|one| one.cell == row.candidate);
        estimates.push(found.map_or_else(Estimate::default, |one| one.estimate.clone()));
    }
    if estimates.iter().all(|estimate| estimate.mean.is_none()) {
        return;
    }
    let unit = DisplayUnit::of(metric);
    let figures = estimates.iter().filter_map(|estimate| estimate.mean);
    let places = decimals(figures, std::iter::empty());
    let all: Vec<&Estimate> = estimates.iter().collect();
    table.push(format!("memory, {}", unit.unit), true, means(&all, &unit, places, notes));
}

/// What has no count, and what would give it one.
pub(crate) fn list_missing_counts(findings: &Findings) -> Vec<String> {
    let mut points = Vec::new();
    for Uncounted { pairs, reason, failure } in &findings.uncounted {
        let pairs = format!("the instructions of {} of cells", count(*pairs, "pair"));
        points.push(match (reason, failure) {
            (Some(reason), _) => format!("{pairs} cannot be counted ({reason})"),
            (None, Some(failure)) => plain(&format!("{pairs} were not counted: {failure}")),
            (None, None) => format!("{pairs} were not counted{}", advise_counting(findings)),
        });
    }
    points
}

fn advise_counting(findings: &Findings) -> String {
    if !findings.is_resumable {
        return String::new();
    }
    let is_of_programs = findings.cells.iter().any(|one| one.cell.settings.program.is_some());
    let record = findings.record_name.as_deref().map_or_else(|| "RECORD".to_owned(), quote_file);
    if is_of_programs {
        // A record does not run the commands that it holds.
        return format!(
            "; stacklab run STUDY --resume --out {record}, with the study's name and the record's --set and --scale, counts \
             them, with qemu-x86_64 (stacklab doctor says what is missing)"
        );
    }
    format!(
        "; stacklab run --resume --out {record} counts them, with QEMU and the image linux-6.1 (stacklab doctor says what is \
         missing)"
    )
}
