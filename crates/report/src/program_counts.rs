//! Instructions that requests take in programs, as `stacklab explain --exact STUDY` prints them.

use crate::rendering::column::Column;
use crate::rendering::csv;
use crate::rendering::document::{Block, Table, Width, plain};
use crate::rendering::format::{OutputFormat, versioned_json};
use crate::rendering::text::render;
use stacklab_model::{EndCounts, FunctionCount, ProgramCell, ProgramCounts, ProgramEnd, capitalize, count};
use std::collections::BTreeMap;

const FORMAT_VERSION: u32 = 1;
/// Rows of functions without `--functions`.
const MAX_ROWS: usize = 12;
/// A function with less in all cells has no row, instructions per request.
const MIN_SHOWN: f64 = 0.05;
pub(crate) const TITLE: &str = "Instructions per request, in user space";

/// Longest name of a function in a table without `--functions`, characters: names of generic functions are long.
const MAX_NAME_CHARS: usize = 60;

const LEGEND: &str = "These are instructions, not time, and those of the kernel are not among them. A figure is the mean of the \
     rounds, with half of their range: 0.0 means that all rounds were alike. A difference has both ranges. What a program \
     takes to start and to end is in a column, and in no other figure.";

/// Renders counts; `functions` shows every function, not only those that take most.
pub fn program_counts(counts: &ProgramCounts, format: OutputFormat, functions: bool, width: Width) -> String {
    match format {
        OutputFormat::Csv | OutputFormat::RawCsv => csv(counts, format),
        OutputFormat::Json => versioned_json(FORMAT_VERSION, counts),
        _ => render(&blocks(counts, functions), format, width),
    }
}

fn blocks(counts: &ProgramCounts, functions: bool) -> Vec<Block> {
    let [shorter, longer] = counts.requests;
    let rounds = counts.cells.first().map_or(0, |cell| cell.client.rounds.len());
    let mut blocks = vec![
        Block::Title(TITLE.to_owned()),
        Block::Text(format!(
            "Runs with {shorter} and with {longer} requests, {}, under QEMU {} with its processor `{}`.",
            count(rounds, "round"),
            counts.qemu,
            counts.cpu
        )),
    ];
    let answers = counts.pairs.iter().map(|pair| answer(counts, *pair)).collect::<Vec<_>>();
    if !answers.is_empty() {
        blocks.push(Block::List(answers));
    }
    blocks.push(Block::Table(table_of_cells(counts)));
    for end in ProgramEnd::ALL {
        blocks.push(Block::Heading(format!("{}, by function", capitalize(end.name()))));
        blocks.push(Block::Table(table_of_functions(counts, *end, functions)));
    }
    blocks.push(Block::Text(LEGEND.to_owned()));
    blocks
}

/// What a record has of two programs: how they differ, and by function.
pub(crate) fn pair_blocks(counts: &ProgramCounts, functions: bool) -> Vec<Block> {
    let mut blocks = Vec::new();
    for pair in &counts.pairs {
        blocks.push(Block::Text(answer(counts, *pair)));
    }
    blocks.push(Block::Table(table_of_cells(counts)));
    for end in ProgramEnd::ALL {
        blocks.push(Block::Text(format!("{}, by function", capitalize(end.name()))));
        blocks.push(Block::Table(table_of_functions(counts, *end, functions)));
    }
    blocks
}

/// The differences of functions of both ends, the largest first, with the end before the name.
pub(crate) fn list_differences(counts: &ProgramCounts) -> Vec<(String, f64)> {
    let mut differences = Vec::new();
    for end in ProgramEnd::ALL {
        for row in list_functions(counts, *end) {
            if let [baseline, candidate] = row.per_request.as_slice() {
                differences.push((format!("{end}: {}", row.name), candidate - baseline));
            }
        }
    }
    differences.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    differences
}

/// How a pair of cells differs: `IPv4 new compared with IPv4 old: server +500.0 (+12.3 %), client +0.0 (+0.0 %)`.
pub(crate) fn answer(counts: &ProgramCounts, pair: [usize; 2]) -> String {
    let [baseline, candidate] = pair.map(|place| &counts.cells[place]);
    let mut parts = Vec::new();
    for end in ProgramEnd::ALL {
        let [before, after] = [baseline, candidate].map(|cell| counts.per_request(cell.end(*end)));
        let spread = counts.spread(baseline.end(*end)) + counts.spread(candidate.end(*end));
        let percent = 100.0 * (after / before - 1.0);
        let percent = if percent.is_finite() { format!(", {percent:+.1} %") } else { String::new() };
        parts.push(format!("{end} {:+.1} \u{b1} {spread:.1}{percent}", after - before));
    }
    plain(&format!("{} compared with {}: {}", candidate.label, baseline.label, parts.join("; ")))
}

fn table_of_cells(counts: &ProgramCounts) -> Table {
    let titles = ["program", "client", "server", "both", "client's start and end", "server's"];
    let columns = titles.iter().map(|title| ((*title).to_owned(), *title != "program")).collect();
    let mut rows = Vec::new();
    for cell in &counts.cells {
        let both = counts.per_request(&cell.client) + counts.per_request(&cell.server);
        rows.push(vec![
            plain(&cell.label),
            write_with_spread(counts, &cell.client),
            write_with_spread(counts, &cell.server),
            format!("{both:.1}"),
            format!("{:.0}", counts.start_and_end(&cell.client)),
            format!("{:.0}", counts.start_and_end(&cell.server)),
        ]);
    }
    Table { columns, rows, optional: vec![5, 4], ..Table::default() }
}

fn write_with_spread(counts: &ProgramCounts, end: &EndCounts) -> String {
    format!("{:.1} \u{b1} {:.1}", counts.per_request(end), counts.spread(end))
}

/// A function in all cells, by its name and that of its file: those of two builds of a program are one row.
struct FunctionRow {
    name: String,
    file: String,
    offsets: Option<[u64; 2]>,
    per_request: Vec<f64>,
}

impl FunctionRow {
    /// One without instructions so far.
    fn new(name: &str, file: &str, cells: usize) -> Self {
        let per_request = vec![0.0; cells];
        FunctionRow { name: name.to_owned(), file: file.to_owned(), offsets: None, per_request }
    }

    fn largest(&self) -> f64 {
        self.per_request.iter().fold(0.0, |largest, count| largest.max(count.abs()))
    }

    /// Includes the offsets of another cell.
    fn widen(&mut self, offsets: Option<[u64; 2]>) {
        if let Some([first, last]) = offsets {
            let [own_first, own_last] = self.offsets.unwrap_or([first, last]);
            self.offsets = Some([own_first.min(first), own_last.max(last)]);
        }
    }

    fn add(&mut self, other: &FunctionRow) {
        for (sum, count) in self.per_request.iter_mut().zip(&other.per_request) {
            *sum += count;
        }
    }
}

/// The functions of an end, those that take most in any cell first.
fn list_functions(counts: &ProgramCounts, end: ProgramEnd) -> Vec<FunctionRow> {
    let mut rows: BTreeMap<(&str, &str), FunctionRow> = BTreeMap::new();
    for (place, cell) in counts.cells.iter().enumerate() {
        for function in &cell.end(end).functions {
            let file = function.file_name();
            let row = rows
                .entry((&function.name, file))
                .or_insert_with(|| FunctionRow::new(&function.name, file, counts.cells.len()));
            row.widen(function.offsets);
            row.per_request[place] += counts.function_per_request(cell.end(end), function);
        }
    }
    let mut rows: Vec<FunctionRow> = rows.into_values().collect();
    rows.sort_by(|a, b| b.largest().total_cmp(&a.largest()).then_with(|| a.name.cmp(&b.name)));
    rows
}

fn table_of_functions(counts: &ProgramCounts, end: ProgramEnd, all: bool) -> Table {
    let most = if all { usize::MAX } else { MAX_ROWS };
    let cells = counts.cells.len();
    let mut rest = FunctionRow::new("", "", cells);
    let mut sum = FunctionRow::new("sum", "", cells);
    let mut rows = Vec::new();
    let mut left = 0;
    for row in list_functions(counts, end) {
        sum.add(&row);
        if rows.len() < most && row.largest() >= MIN_SHOWN {
            rows.push(write_row(&row, all));
        } else {
            rest.add(&row);
            left += 1;
        }
    }
    if left > 0 {
        rest.name = format!("{left} more");
        rows.push(write_row(&rest, all));
    }
    rows.push(write_row(&sum, all));
    let mut columns = vec![("function".to_owned(), false), ("file".to_owned(), false)];
    columns.extend(counts.cells.iter().map(|cell| (plain(&cell.label), true)));
    Table { columns, rows, keys: 2, ..Table::default() }
}

fn write_row(row: &FunctionRow, is_whole: bool) -> Vec<String> {
    let mut name = plain(&row.name);
    if !is_whole && name.chars().count() > MAX_NAME_CHARS {
        name = name.chars().take(MAX_NAME_CHARS).chain("..".chars()).collect();
    }
    if let Some([first, last]) = row.offsets {
        name += &format!(" ({first:#x} to {last:#x})");
    }
    let mut cells = vec![name, plain(&row.file)];
    // Without a sign where it rounds to zero.
    cells.extend(row.per_request.iter().map(|count| format!("{:.1}", (count * 10.0).round() / 10.0 + 0.0)));
    cells
}

/// A row of the CSV: an end of a program, or a function of it.
pub(crate) struct ProgramRow<'a> {
    counts: &'a ProgramCounts,
    cell: &'a ProgramCell,
    end: ProgramEnd,
    function: Option<&'a FunctionCount>,
}

impl ProgramRow<'_> {
    fn end_counts(&self) -> &EndCounts {
        self.cell.end(self.end)
    }

    fn per_request(&self) -> f64 {
        match self.function {
            Some(function) => self.counts.function_per_request(self.end_counts(), function),
            None => self.counts.per_request(self.end_counts()),
        }
    }
}

fn csv(counts: &ProgramCounts, format: OutputFormat) -> String {
    let mut rows = Vec::new();
    for cell in &counts.cells {
        for end in ProgramEnd::ALL.iter().copied() {
            rows.push(ProgramRow { counts, cell, end, function: None });
            for function in &cell.end(end).functions {
                rows.push(ProgramRow { counts, cell, end, function: Some(function) });
            }
        }
    }
    csv::render(&columns(), rows.into_iter(), format)
}

pub(crate) fn columns<'a>() -> Vec<Column<'a, ProgramRow<'a>>> {
    vec![
        Column::new_text("program", "the name of the `[[program]]`", |row: &ProgramRow| {
            Some(row.cell.program.clone())
        }),
        Column::new_text("family", "ipv4 or ipv6", |row: &ProgramRow| Some(row.cell.family.to_string())),
        Column::new_text("cell", "both, and the other levels of the cell", |row: &ProgramRow| {
            Some(row.cell.label.clone())
        }),
        Column::text("end", "`client` or `server`", |row: &ProgramRow| Some(row.end.name())),
        Column::text("kind", "`function`, or `whole`: the sum", |row: &ProgramRow| {
            Some(if row.function.is_some() { "function" } else { "whole" })
        }),
        Column::new_text("name", "the function", |row: &ProgramRow| {
            row.function.map(|function| function.name.clone())
        }),
        Column::new_text("file", "the path of the file with its code", |row: &ProgramRow| {
            row.function.map(|function| function.file.clone())
        }),
        Column::figure("instructions", "instructions per request", |row: &ProgramRow| {
            Some(row.per_request())
        }),
        Column::figure("spread", "half of the range of the rounds, for `whole`", |row: &ProgramRow| {
            row.function.is_none().then(|| row.counts.spread(row.end_counts()))
        }),
        Column::figure(
            "start_and_end",
            "instructions that do not depend on requests, for `whole`",
            |row: &ProgramRow| row.function.is_none().then(|| row.counts.start_and_end(row.end_counts())),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rendering::document::WIDTH;
    use stacklab_model::Family;

    fn function(name: &str, file: &str, instructions: i64) -> FunctionCount {
        FunctionCount { name: name.to_owned(), file: file.to_owned(), offsets: None, instructions }
    }

    fn cell(program: &str, folder: &str, more: u64) -> ProgramCell {
        let client = EndCounts {
            rounds: vec![[1_000, 2_000], [1_000, 2_000]],
            functions: vec![function("ask", "/bin/client", 2_000)],
        };
        let file = format!("/{folder}/server");
        let server = EndCounts {
            rounds: vec![[5_000, 6_000 + more], [5_000, 6_020 + more]],
            functions: vec![
                function("answer", &file, 2_000 + 2 * more as i64),
                FunctionCount { offsets: Some([more, 0x300]), ..function("no symbol", "/lib/libc.so", 20) },
            ],
        };
        let label = format!("IPv4 {program}");
        ProgramCell { program: program.to_owned(), family: Family::Ipv4, label, client, server }
    }

    fn counts() -> ProgramCounts {
        ProgramCounts {
            qemu: "7.2.22".to_owned(),
            cpu: "max".to_owned(),
            requests: [10, 20],
            cells: vec![cell("old", "a", 0), cell("new", "b", 500)],
            pairs: vec![[0, 1]],
        }
    }

    fn words_of(text: &str) -> Vec<String> {
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    }

    #[test]
    fn text_has_both_programs_and_their_functions() {
        let text = program_counts(&counts(), OutputFormat::Text, false, WIDTH);
        let words = words_of(&text);
        for expected in [
            "IPv4 old 100.0 \u{b1} 0.0 101.0 \u{b1} 1.0 201.0 0 3990",
            "IPv4 new 100.0 \u{b1} 0.0 151.0 \u{b1} 1.0 251.0 0 3490",
            "answer server 100.0 150.0",
            "no symbol (0x0 to 0x300) libc.so 1.0 1.0",
            "sum 101.0 151.0",
        ] {
            assert!(words.iter().any(|line| line == expected), "{expected}: {text}");
        }
        let flat = words.join(" ");
        let answer = "IPv4 new compared with IPv4 old: client +0.0 \u{b1} 0.0, +0.0 %; server +50.0 \u{b1} 2.0, +49.5 %";
        assert!(flat.contains(answer), "{text}");
    }

    #[test]
    fn many_functions_have_one_row_for_the_rest() {
        let mut counts = counts();
        for number in 0..30 {
            counts.cells[0].client.functions.push(function(&format!("more{number}"), "/bin/client", 20));
        }
        let rest = "19 more 19.0 0.0";
        let text = program_counts(&counts, OutputFormat::Text, false, WIDTH);
        assert!(words_of(&text).iter().any(|line| line == rest), "{text}");
        let text = program_counts(&counts, OutputFormat::Text, true, WIDTH);
        assert!(text.contains("more29") && !words_of(&text).iter().any(|line| line == rest), "{text}");
    }

    #[test]
    fn other_functions_of_both_arms_are_one_row() {
        let mut counts = counts();
        for (cell, instructions) in counts.cells.iter_mut().zip([100, 300]) {
            cell.client.functions.push(function("other functions", "", instructions));
        }
        let text = program_counts(&counts, OutputFormat::Text, false, WIDTH);
        assert!(words_of(&text).iter().any(|line| line == "other functions 5.0 15.0"), "{text}");
    }

    #[test]
    fn csv_and_json_have_all() {
        let csv = program_counts(&counts(), OutputFormat::Csv, false, WIDTH);
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines[0], "program,family,cell,end,kind,name,file,instructions,spread,start_and_end");
        assert_eq!(lines[1], "old,ipv4,IPv4 old,client,whole,,,100,0,0");
        assert_eq!(lines[2], "old,ipv4,IPv4 old,client,function,ask,/bin/client,100,,");
        assert_eq!(lines.len(), 1 + 2 * 5);
        let json = program_counts(&counts(), OutputFormat::Json, false, WIDTH);
        assert!(json.contains("\"rounds\"") && json.contains("\"answer\""), "{json}");
    }
}
