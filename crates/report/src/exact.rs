//! Exact counts of instructions, as `stacklab explain --exact` prints them.

use crate::rendering::column::Column;
use crate::rendering::csv;
use crate::rendering::document::{Block, Table, Width, plain};
use crate::rendering::format::{OutputFormat, versioned_json};
use crate::rendering::text::render;
use stacklab_model::{ExactCell, ExactCounts, ExactRow, count};

const EXACT_FORMAT_VERSION: u32 = 1;
/// Rows that show less than this in both families and as difference are one row, instructions per message.
pub(crate) const MIN_SHOWN: f64 = 0.05;
pub(crate) const TITLE: &str = "Instructions per message";

pub(crate) const LEGEND: &str = "These are instructions, not time: caches, branch prediction and waiting for memory do not count. \
     One emulated CPU runs sender and receiver. Figures are rounded; the sum is that of the unrounded rows, and every \
     instruction is in one row. The same program and kernel give the same counts on any machine.";

const ALL_FUNCTIONS: &str =
    "Functions of both arms that differ by less than 0.05 are one row; `--format csv` and `json` list each.";

/// Renders counts; `functions` adds the functions that differ, or as CSV all of them.
pub fn exact_counts(counts: &ExactCounts, format: OutputFormat, functions: bool, width: Width) -> String {
    match format {
        OutputFormat::Csv | OutputFormat::RawCsv => csv(counts, functions, format),
        OutputFormat::Json => versioned_json(EXACT_FORMAT_VERSION, counts),
        _ => render(&blocks(counts, functions), format, width),
    }
}

fn blocks(counts: &ExactCounts, functions: bool) -> Vec<Block> {
    let mut blocks = vec![Block::Title(TITLE.to_owned()), Block::Text(plain(&machine(counts)))];
    for cell in &counts.cells {
        blocks.push(Block::Heading(plain(&cell.context())));
        blocks.extend(cell_blocks(cell, functions));
    }
    blocks.push(Block::Text(LEGEND.to_owned()));
    blocks
}

pub(crate) fn cell_blocks(cell: &ExactCell, functions: bool) -> Vec<Block> {
    let mut blocks =
        vec![Block::Text(plain(&answer(cell))), Block::Table(table(cell, "stage", &cell.stages))];
    if functions {
        blocks.push(Block::Table(table_of_functions(cell)));
        blocks.push(Block::Text(ALL_FUNCTIONS.to_owned()));
    }
    blocks
}

/// Where instructions were counted.
pub(crate) fn machine(counts: &ExactCounts) -> String {
    format!("Linux {} in QEMU {}, one emulated CPU for all hosts.", counts.kernel, counts.qemu)
}

pub(crate) fn answer(cell: &ExactCell) -> String {
    let [before, after] = cell.total.map(|total| cell.per_message(total));
    let [baseline, candidate] = cell.levels();
    let unit = cell.probe.unit();
    format!(
        "{candidate} takes {:+.1} instructions per {unit} ({:+.1} %) compared with {baseline}: {after:.1} against {before:.1}, over {} {unit}s of each.",
        cell.difference(cell.total),
        100.0 * (after / before - 1.0),
        cell.messages
    )
}

fn table(cell: &ExactCell, what: &str, rows: &[ExactRow]) -> Table {
    table_with_rest(
        cell,
        what,
        rows,
        |row| row.instructions.iter().any(|count| cell.per_message(*count) >= MIN_SHOWN),
        |n| format!("{n} more below {MIN_SHOWN}"),
    )
}

/// The functions that differ: most of them take the same in both arms, and hide the others.
fn table_of_functions(cell: &ExactCell) -> Table {
    table_with_rest(
        cell,
        "function",
        &cell.functions,
        |row| cell.difference(row.instructions).abs() >= MIN_SHOWN,
        |n| format!("{} alike within {MIN_SHOWN}", count(n, "function")),
    )
}

/// The rows that `shows` picks, one with the number and sum of all others, and the sum.
fn table_with_rest(
    cell: &ExactCell,
    what: &str,
    rows: &[ExactRow],
    shows: impl Fn(&ExactRow) -> bool,
    describe_rest: impl Fn(usize) -> String,
) -> Table {
    let (large, small): (Vec<&ExactRow>, Vec<&ExactRow>) = rows.iter().partition(|row| shows(row));
    let mut rows_shown = Vec::new();
    for row in &large {
        rows_shown.push(write_row(cell, plain(&row.name), row.instructions));
    }
    if !small.is_empty() {
        rows_shown.push(write_row(cell, describe_rest(small.len()), sum_instructions(&small)));
    }
    rows_shown.push(write_row(cell, "sum".to_owned(), sum_instructions(&[large, small].concat())));
    let [baseline, candidate] = cell.levels().map(|level| plain(&level));
    let right = [baseline, candidate, "difference".to_owned()].map(|title| (title, true));
    let columns = [(what.to_owned(), false)].into_iter().chain(right).collect();
    Table { columns, rows: rows_shown, ..Table::default() }
}

fn sum_instructions(rows: &[&ExactRow]) -> [u64; 2] {
    [0, 1].map(|arm| rows.iter().map(|row| row.instructions[arm]).sum())
}

fn write_row(cell: &ExactCell, name: String, counts: [u64; 2]) -> Vec<String> {
    let [baseline, candidate] = counts.map(|count| format!("{:.1}", cell.per_message(count)));
    vec![name, baseline, candidate, format!("{:+.1}", cell.difference(counts))]
}

/// A row of the CSV: a stage, the sum or a function of two arms.
pub(crate) struct CountRow<'a> {
    cell: &'a ExactCell,
    kind: &'static str,
    name: &'a str,
    stage: Option<&'a str>,
    instructions: [u64; 2],
}

impl<'a> CountRow<'a> {
    fn new(cell: &'a ExactCell, kind: &'static str, row: &'a ExactRow) -> Self {
        CountRow { cell, kind, name: &row.name, stage: row.stage.as_deref(), instructions: row.instructions }
    }

    fn per_message(&self, arm: usize) -> f64 {
        self.cell.per_message(self.instructions[arm])
    }
}

fn csv(counts: &ExactCounts, functions: bool, format: OutputFormat) -> String {
    let mut rows = Vec::new();
    for cell in &counts.cells {
        rows.extend(cell.stages.iter().map(|row| CountRow::new(cell, "stage", row)));
        rows.push(CountRow { cell, kind: "whole", name: "sum", stage: None, instructions: cell.total });
        if functions {
            rows.extend(cell.functions.iter().map(|row| CountRow::new(cell, "function", row)));
        }
    }
    csv::render(&columns(), rows.into_iter(), format)
}

pub(crate) fn columns<'a>() -> Vec<Column<'a, CountRow<'a>>> {
    vec![
        Column::new_text("probe", "the traffic: udp, tcp, echo or connect", |row: &CountRow| {
            Some(row.cell.probe.to_string())
        }),
        Column::new_text("context", "everything that both arms have in common", |row: &CountRow| {
            Some(row.cell.context())
        }),
        Column::new_text("baseline", "the baseline's level", |row: &CountRow| {
            let [baseline, _] = row.cell.levels();
            Some(baseline)
        }),
        Column::new_text("candidate", "the candidate's level", |row: &CountRow| {
            let [_, candidate] = row.cell.levels();
            Some(candidate)
        }),
        Column::text("kind", "`stage`, `function`, or `whole`: the sum", |row: &CountRow| Some(row.kind)),
        Column::text("name", "the stage or function", |row: &CountRow| Some(row.name)),
        Column::text("stage", "the stage of a function", |row: &CountRow| row.stage),
        Column::figure(
            "baseline_instructions",
            "instructions per message of the baseline",
            |row: &CountRow| Some(row.per_message(0)),
        ),
        Column::figure("candidate_instructions", "the same of the candidate", |row: &CountRow| {
            Some(row.per_message(1))
        }),
        Column::figure("difference", "candidate minus baseline", |row: &CountRow| {
            Some(row.cell.difference(row.instructions))
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rendering::document::WIDTH;
    use crate::tests::fixtures::exact_counts as counts;

    #[test]
    fn text_has_the_difference_and_the_sum() {
        let text = exact_counts(&counts(), OutputFormat::Text, false, WIDTH);
        assert!(text.contains("Linux 6.1.0 in QEMU 7.2.22"), "{text}");
        assert!(
            text.contains("IPv6 takes +1000.0 instructions per message (+33.3 %) compared with IPv4"),
            "{text}"
        );
        let words: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert!(words.contains(&vec!["ip", "output", "2000.0", "3000.0", "+1000.0"]), "{text}");
        assert!(words.contains(&vec!["1", "more", "below", "0.05", "0.0", "0.0", "+0.0"]), "{text}");
        assert!(words.contains(&vec!["sum", "3000.0", "4000.0", "+1000.0"]), "{text}");
        assert!(text.contains("not time") && !text.contains("ip6_output"), "{text}");
        let markdown = exact_counts(&counts(), OutputFormat::Markdown, true, WIDTH);
        assert!(markdown.lines().filter(|line| line.starts_with("| sum")).count() == 2, "{markdown}");
    }

    #[test]
    fn equal_functions_share_a_text_row_but_not_a_csv_row() {
        let mut counts = counts();
        let cell = &mut counts.cells[0];
        for name in ["udp_sendmsg", "udp_recvmsg"] {
            let instructions = [10_000_000, 10_000_010];
            cell.functions.push(ExactRow { name: name.to_owned(), stage: None, instructions });
        }
        let text = exact_counts(&counts, OutputFormat::Text, true, WIDTH);
        assert!(text.contains("2 functions alike within 0.05") && !text.contains("udp_sendmsg"), "{text}");
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains("ip_output / ip6_output") && flat.contains("`--format csv`"), "{text}");
        let csv = exact_counts(&counts, OutputFormat::Csv, true, WIDTH);
        assert!(csv.contains("udp_sendmsg") && csv.contains("udp_recvmsg"), "{csv}");
    }

    #[test]
    fn csv_is_unrounded() {
        let csv = exact_counts(&counts(), OutputFormat::Csv, true, WIDTH);
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(
            lines[0],
            "probe,context,baseline,candidate,kind,name,stage,baseline_instructions,candidate_instructions,difference"
        );
        assert_eq!(
            lines[1],
            "udp,\"UDP, 128 B, loopback\",IPv4,IPv6,stage,ip output,,2000,3000.033,1000.033"
        );
        assert_eq!(
            lines[4],
            "udp,\"UDP, 128 B, loopback\",IPv4,IPv6,whole,sum,,3000.0123,4000.0456,1000.0333"
        );
        assert_eq!(
            lines[5],
            "udp,\"UDP, 128 B, loopback\",IPv4,IPv6,function,ip_output / ip6_output,ip output,2000,3000.033,1000.033"
        );
    }
}
