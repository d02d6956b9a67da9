//! Exact counts of instructions, as `stacklab explain --exact` prints them.

use crate::rendering::csv::{self, Field, field};
use crate::rendering::document::{Block, Table, Width, plain};
use crate::rendering::format::{OutputFormat, render, versioned_json};
use stacklab_model::{ExactCell, ExactCounts, ExactRow};

const EXACT_FORMAT_VERSION: u32 = 1;
/// Rows that show less than this in both families and as difference are one row, instructions per message.
const LEAST: f64 = 0.05;

const LEGEND: &str = "These are instructions, not time: caches, branch prediction and waiting for memory do not count. \
     One emulated CPU runs sender and receiver. Figures are rounded; the sum is that of the unrounded rows, and every \
     instruction is in one row. The same program and kernel give the same counts on any machine.";

/// Renders counts; `functions` adds all functions.
pub fn exact_counts(counts: &ExactCounts, format: OutputFormat, functions: bool, width: Width) -> String {
    match format {
        OutputFormat::Csv | OutputFormat::RawCsv => csv(counts, functions, format),
        OutputFormat::Json => versioned_json(EXACT_FORMAT_VERSION, counts),
        _ => render(&blocks(counts, functions), format, width),
    }
}

fn blocks(counts: &ExactCounts, functions: bool) -> Vec<Block> {
    let mut blocks = vec![
        Block::Title("Instructions per message".to_owned()),
        Block::Text(plain(&format!(
            "Linux {} in QEMU {}, send and receive over loopback.",
            counts.kernel, counts.qemu
        ))),
    ];
    for cell in &counts.cells {
        let [ipv4, ipv6] = cell.total.map(|total| cell.per_message(total));
        blocks.push(Block::Heading(format!(
            "{}, {} B payload",
            cell.transport.to_string().to_uppercase(),
            cell.size
        )));
        blocks.push(Block::Text(format!(
            "IPv6 takes {:+.1} instructions per message ({:+.1} %): {ipv6:.1} against {ipv4:.1}, over {} messages of each family.",
            cell.difference(cell.total),
            100.0 * (ipv6 / ipv4 - 1.0),
            cell.messages
        )));
        blocks.push(Block::Table(table(cell, "stage", &cell.stages)));
        if functions {
            blocks.push(Block::Table(table(cell, "function", &cell.functions)));
        }
    }
    blocks.push(Block::Text(LEGEND.to_owned()));
    blocks
}

fn table(cell: &ExactCell, what: &str, rows: &[ExactRow]) -> Table {
    let is_large = |row: &&ExactRow| row.instructions.iter().any(|count| cell.per_message(*count) >= LEAST);
    let (large, small): (Vec<&ExactRow>, Vec<&ExactRow>) = rows.iter().partition(is_large);
    let sum_of = |rows: &[&ExactRow]| {
        [0, 1].map(|family| rows.iter().map(|row| row.instructions[family]).sum::<u64>())
    };
    let mut all: Vec<(String, [u64; 2])> =
        large.iter().map(|row| (plain(&row.name), row.instructions)).collect();
    if !small.is_empty() {
        all.push((format!("{} more below {LEAST}", small.len()), sum_of(&small)));
    }
    all.push(("sum".to_owned(), sum_of(&rows.iter().collect::<Vec<_>>())));
    let column = |of: &dyn Fn([u64; 2]) -> String| all.iter().map(|(_, counts)| of(*counts)).collect();
    let mut table = Table::default();
    table.push(what, false, all.iter().map(|(name, _)| name.clone()).collect());
    table.push("IPv4", true, column(&|counts| format!("{:.1}", cell.per_message(counts[0]))));
    table.push("IPv6", true, column(&|counts| format!("{:.1}", cell.per_message(counts[1]))));
    table.push("difference", true, column(&|counts| format!("{:+.1}", cell.difference(counts))));
    table
}

fn csv(counts: &ExactCounts, functions: bool, format: OutputFormat) -> String {
    let rows = counts.cells.iter().flat_map(|cell| {
        let row = move |kind: &'static str| move |row| fields(Some((cell, kind, row)));
        let listed = cell.functions.iter().filter(move |_| functions);
        let whole = ExactRow { name: "sum".to_owned(), stage: None, instructions: cell.total };
        let stages = cell.stages.iter().map(row("stage"));
        stages.chain([fields(Some((cell, "whole", &whole)))]).chain(listed.map(row("function")))
    });
    csv::render(&fields(None), rows, format)
}

/// The row of a stage or function, which is of a kind; without one, the columns.
pub(crate) fn fields(row: Option<(&ExactCell, &str, &ExactRow)>) -> Vec<Field> {
    let cell = row.map(|(cell, ..)| cell);
    let kind = row.map(|(_, kind, _)| kind);
    let name = row.map(|(.., row)| row.name.as_str());
    let stage = row.and_then(|(.., row)| row.stage.as_deref());
    let of = |family: usize| row.map(|(cell, _, row)| cell.per_message(row.instructions[family]));
    vec![
        field("transport", "transport protocol", cell.map(|cell| cell.transport.to_string())),
        field("size", "payload bytes of a message", cell.map(|cell| cell.size.to_string())),
        field("kind", "`stage`, `function`, or `whole`: the sum", kind),
        field("name", "the stage or function", name),
        field("stage", "the stage of a function", stage),
        field("ipv4", "instructions per message of IPv4", of(0)),
        field("ipv6", "the same of IPv6", of(1)),
        field("difference", "IPv6 minus IPv4", row.map(|(cell, _, row)| cell.difference(row.instructions))),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rendering::document::WIDTH;
    use stacklab_model::Transport;

    fn counts() -> ExactCounts {
        let row = |name: &str, stage: Option<&str>, instructions| ExactRow {
            name: name.to_owned(),
            stage: stage.map(str::to_owned),
            instructions,
        };
        let cell = ExactCell {
            transport: Transport::Udp,
            size: 128,
            messages: 10_000,
            total: [30_000_123, 40_000_456],
            rounds: vec![[30_000_123, 40_000_456]],
            stages: vec![
                row("ip output", None, [20_000_000, 30_000_330]),
                row("copy", None, [10_000_000, 10_000_000]),
                row("interrupt", None, [123, 126]),
            ],
            functions: vec![row("ip_output / ip6_output", Some("ip output"), [20_000_000, 30_000_330])],
        };
        ExactCounts { qemu: "7.2.22".to_owned(), kernel: "6.1.0".to_owned(), cells: vec![cell] }
    }

    #[test]
    fn text_has_the_difference_and_the_sum() {
        let text = exact_counts(&counts(), OutputFormat::Text, false, WIDTH);
        assert!(text.contains("Linux 6.1.0 in QEMU 7.2.22"), "{text}");
        assert!(text.contains("IPv6 takes +1000.0 instructions per message (+33.3 %)"), "{text}");
        let words: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert!(words.contains(&vec!["ip", "output", "2000.0", "3000.0", "+1000.0"]), "{text}");
        assert!(words.contains(&vec!["1", "more", "below", "0.05", "0.0", "0.0", "+0.0"]), "{text}");
        assert!(words.contains(&vec!["sum", "3000.0", "4000.0", "+1000.0"]), "{text}");
        assert!(text.contains("not time") && !text.contains("ip6_output"), "{text}");
        let markdown = exact_counts(&counts(), OutputFormat::Markdown, true, WIDTH);
        assert!(markdown.lines().filter(|line| line.starts_with("| sum")).count() == 2, "{markdown}");
    }

    #[test]
    fn csv_is_unrounded() {
        let csv = exact_counts(&counts(), OutputFormat::Csv, true, WIDTH);
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines[0], "transport,size,kind,name,stage,ipv4,ipv6,difference");
        assert_eq!(lines[1], "udp,128,stage,ip output,,2000,3000.033,1000.033");
        assert_eq!(lines[4], "udp,128,whole,sum,,3000.0123,4000.0456,1000.0333");
        assert_eq!(lines[5], "udp,128,function,ip_output / ip6_output,ip output,2000,3000.033,1000.033");
    }
}
