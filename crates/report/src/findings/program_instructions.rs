//! Instructions per request of programs beside time, of the comparisons that ask for them.

use crate::findings::counted_pairs::{group_pairs, list_row_factors, push_pairs, push_time};
use crate::findings::groups::{label_cells, level_alone};
use crate::rendering::document::{Block, Table, plain};
use stacklab_model::{Cell, Explanation, Findings, Metric, ProgramCounts, ProgramEnd, once_each};

const ABOUT: &str = "instructions per request in user space of all processes of client and server, counted under an emulator: the \
     mean of the rounds, with half of their range; the kernel's are not among them. Functions: stacklab report --stages";
/// What stands for time beside instructions.
const TIMES: [Metric; 3] = [Metric::CpuServer, Metric::CpuClient, Metric::Duration];

/// A table of each pair of levels, with a row for each pair of cells.
pub(super) fn blocks(findings: &Findings) -> Vec<Block> {
    let counted = findings.explanations.iter().filter(|one| one.programs.is_some());
    let pairs = group_pairs(counted);
    if pairs.is_empty() {
        return Vec::new();
    }
    let mut blocks = vec![Block::Heading("Instructions, beside time".to_owned())];
    let counts = findings.explanations.iter().filter_map(|one| one.programs.as_deref());
    for emulator in once_each(counts.map(describe_emulator)) {
        blocks.push(Block::Text(plain(&format!("{ABOUT}. {emulator}"))));
    }
    push_pairs(&mut blocks, pairs, |rows| table(findings, rows));
    blocks
}

pub(crate) fn describe_emulator(counts: &ProgramCounts) -> String {
    let [shorter, longer] = counts.requests;
    format!(
        "QEMU {} with its processor `{}`, runs with {shorter} and with {longer} requests.",
        counts.qemu, counts.cpu
    )
}

fn table(findings: &Findings, rows: &[&Explanation]) -> Table {
    let factor = rows[0].factor;
    let cells: Vec<&Cell> = rows.iter().map(|row| &row.baseline).collect();
    let mut table = label_cells(&cells, &list_row_factors(findings, &cells, factor));
    push_time(&mut table, findings, rows, &TIMES);
    for end in ProgramEnd::ALL {
        for (arm, cell) in [&rows[0].baseline, &rows[0].candidate].into_iter().enumerate() {
            let column = rows.iter().map(|row| write_instructions(row, *end, arm)).collect();
            // A narrow page keeps only the differences.
            table.push_optional(format!("{end}, {}", level_alone(cell, factor)), column);
        }
        table.push(format!("{end}, more"), true, rows.iter().map(|row| write_more(row, *end)).collect());
    }
    table
}

fn write_instructions(row: &Explanation, end: ProgramEnd, arm: usize) -> String {
    let Some(counts) = &row.programs else { return String::new() };
    format!("{:.0}", counts.per_request(counts.cells[arm].end(end)))
}

/// How much more the candidate takes, with half of both ranges of rounds.
fn write_more(row: &Explanation, end: ProgramEnd) -> String {
    let Some(counts) = &row.programs else { return String::new() };
    let [baseline, candidate] = [0, 1].map(|arm| counts.cells[arm].end(end));
    let more = counts.per_request(candidate) - counts.per_request(baseline);
    format!("{more:+.0} \u{b1} {:.0}", counts.spread(baseline) + counts.spread(candidate))
}

/// The instructions per request of the two cells that belong to a metric: those of the end whose CPU time it is, or of
/// both ends.
pub(super) fn find_pair(counts: &ProgramCounts, metric: Metric) -> Option<[f64; 2]> {
    let [baseline, candidate] = counts.cells.as_slice() else { return None };
    Some([baseline, candidate].map(|cell| match metric {
        Metric::CpuClient => counts.per_request(&cell.client),
        Metric::CpuServer => counts.per_request(&cell.server),
        _ => counts.per_request(&cell.client) + counts.per_request(&cell.server),
    }))
}
