//! The report of two records compared.

use crate::findings::claims::{Claimed, of_figure};
use crate::findings::comparisons::{at, definition, push_pair};
use crate::findings::csv::scale;
use crate::findings::groups::{by_table, label_cells, list_varied_factors, margin_text, row_factors};
use crate::findings::heading::time;
use crate::rendering::column::{
    Column, Compares, Subject, cell_columns, estimate_columns, interval_columns, metric_columns,
    setting_columns,
};
use crate::rendering::csv;
use crate::rendering::document::{Block, Footnotes, Table, Width};
use crate::rendering::format::{OutputFormat, versioned_json};
use crate::rendering::numbers::{DisplayUnit, Distance, NONE, p_value};
use crate::rendering::text::render;
use serde::Serialize;
use stacklab_model::{
    Apart, Cell, Change, Estimate, Factor, Lacking, MIN_UNPAIRED_RUNS, Metric, MetricDiff, OnlyInOne,
    RecordDiff, RecordFacts, RecordLoads, count,
};
use std::collections::BTreeSet;

#[cfg(test)]
pub(crate) mod tests;

const BETWEEN_FORMAT_VERSION: u32 = 1;

/// A comparison as JSON.
#[derive(Serialize)]
struct BetweenJson<'a> {
    #[serde(flatten)]
    found: &'a RecordDiff,
    loads: &'a RecordLoads,
    /// Why the records are not comparable.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

/// Renders the comparison of two records, A being the first one. `width` is the number of columns for prose.
pub fn between(found: &RecordDiff, loads: &RecordLoads, format: OutputFormat, width: Width) -> String {
    match format {
        OutputFormat::Csv | OutputFormat::RawCsv => csv::render(&columns(), found.figures.iter(), format),
        OutputFormat::Json => {
            versioned_json(BETWEEN_FORMAT_VERSION, &BetweenJson { found, loads, warning: loads.warning() })
        }
        _ => render(&document(found, loads), format, width),
    }
}

pub(crate) fn document(found: &RecordDiff, loads: &RecordLoads) -> Vec<Block> {
    let tables = tables(found);
    let a = &found.a.title;
    let b = &found.b.title;
    let title = if a == b { format!("B against A: {a}") } else { "B against A".to_owned() };
    // A list, since sentences do not fit columns: `testbed.rate: 100 Mbit/s in A, 50 Mbit/s in B`.
    let differences: Vec<String> =
        found.differences.iter().map(|Apart { what, a, b }| format!("{what}: {a} in A, {b} in B")).collect();
    let mut blocks = vec![Block::Title(title), Block::Text(answer(found))];
    if let Some(warning) = loads.warning() {
        blocks.push(Block::Text(format!("Not comparable: {warning}.")));
    }
    blocks.extend([
        Block::Facts(vec![
            ("A", format_record(&found.a)),
            ("", loads.a.to_string()),
            ("B", format_record(&found.b)),
            ("", loads.b.to_string()),
        ]),
        Block::Text(
            "± is half the 95 % interval of a mean over runs. The runs of A and B are not paired: a difference is between 20 % trimmed means, with its 95 % interval by Yuen and Welch, and p is that of no difference, adjusted for all figures here (Benjamini \
             and Hochberg). At most one in twenty of the claims (better, worse, equivalent) is expected to be \
             false. Intervals cover the spread within each campaign, not other changes between the two."
                .to_owned(),
        ),
        Block::Heading("Differences between A and B".to_owned()),
        match differences.is_empty() {
            true => Block::Text("none recorded: hosts, testbed, probes and other load are alike".to_owned()),
            false => Block::List(differences),
        },
    ]);
    blocks.extend(tables.iter().flat_map(|table| table.blocks(found)));
    let alone = alone(found);
    if !alone.is_empty() {
        blocks.push(Block::Heading("Not compared".to_owned()));
        blocks.push(Block::List(alone));
    }
    blocks.push(Block::Heading("Summary".to_owned()));
    blocks.push(Block::List(tables.iter().map(DiffTable::summary).chain(failing(found, loads)).collect()));
    blocks
}

fn format_record(record: &RecordFacts) -> String {
    let RecordFacts { name, title, version, started_unix_ns, seed, valid_runs, invalid_runs, .. } = record;
    format!(
        "{name}: {title}; {} by stacklab {version}, seed {seed}, {}, {invalid_runs} invalid; {}",
        time(*started_unix_ns),
        count(*valid_runs, "valid run"),
        record.testbed_description
    )
}

fn alone(found: &RecordDiff) -> Vec<String> {
    let mut points = Vec::new();
    for (name, OnlyInOne { cells, metrics }) in [("A", &found.only_a), ("B", &found.only_b)] {
        let cells: Vec<String> = cells.iter().map(Cell::label).collect();
        let metrics: Vec<String> = metrics.iter().map(|metric| metric.label()).collect();
        for (what, labels) in
            [("cell", cells), ("metric", metrics)].into_iter().filter(|(_, all)| !all.is_empty())
        {
            points.push(format!("only {name} has {}: {}", count(labels.len(), what), labels.join(", ")));
        }
    }
    points
}

fn answer(found: &RecordDiff) -> String {
    let mut parts = Vec::new();
    for (name, words) in [
        ("worse", "worse"),
        ("better", "better"),
        ("equivalent", "equivalent"),
        ("inconclusive", "too uncertain"),
        ("nothing", "without figures in one of them"),
    ] {
        let n = count_changes(found, name);
        if n > 0 {
            parts.push(format!("{n} {words}"));
        }
    }
    let none = if count_changes(found, "worse") == 0 { "no figure of B is surely worse: " } else { "" };
    format!("Of {}, {none}{}.", count(found.figures.len(), "figure"), parts.join(", "))
}

fn count_changes(found: &RecordDiff, name: &str) -> usize {
    found.figures.iter().filter(|row| row.change.name() == name).count()
}

/// The allowance, and the figures that fail it.
fn failing(found: &RecordDiff, loads: &RecordLoads) -> Option<String> {
    let allowed = 100.0 * found.allowed?;
    let allowed = (allowed * 1e6).round() / 1e6;
    let failing = found.figures.iter().filter(|row| row.fails);
    let failing: Vec<String> =
        failing.map(|row| format!("{} {}", row.metric.label(), row.cell.label())).collect();
    let figures = count(failing.len(), "figure");
    let names = failing.join(", ");
    let undecided = found.figures.iter().filter(|row| row.lacking == Some(Lacking::Disturbed)).count();
    Some(match failing.len() {
        0 if undecided > 0 => format!(
            "no figure of B is surely worse by more than {allowed} %, and {} cannot be decided: other load disturbed the runs that lack {}",
            count(undecided, "figure"),
            if undecided == 1 { "it" } else { "them" }
        ),
        0 if loads.warning().is_some() => {
            format!(
                "no figure fails for being worse by more than {allowed} %: other load differs between A and B"
            )
        }
        0 => format!("no figure of B is surely worse by more than {allowed} %"),
        _ => format!("{figures} of B worse by more than {allowed} %, or gone: {names}"),
    })
}

struct DiffTable<'a> {
    metric: Metric,
    place: String,
    rows: Vec<&'a MetricDiff>,
    factors: Vec<Factor>,
}

fn tables(found: &RecordDiff) -> Vec<DiffTable<'_>> {
    let cells = || found.figures.iter().map(|row| &row.cell);
    let varied = list_varied_factors(cells());
    let sizes_of = cells().map(|cell| cell.size_of).collect::<BTreeSet<_>>();
    let mut tables = Vec::new();
    for (metric, place, rows) in by_table(&found.figures, |row| (row.metric, &row.cell), sizes_of.len() > 1) {
        let factors = row_factors(rows.iter().map(|row: &&MetricDiff| &row.cell), &varied, None);
        tables.push(DiffTable { metric, place, rows, factors });
    }
    tables
}

impl DiffTable<'_> {
    fn blocks(&self, found: &RecordDiff) -> [Block; 3] {
        let figures = self.rows.iter().flat_map(|row| [row.a.mean, row.b.mean]).flatten();
        let shown = DisplayUnit::fitting(self.metric, figures);
        let margin = margin_text(self.metric, self.rows[0].margin, &shown);
        [
            Block::Heading(format!("{}, {}: B vs A", self.metric.label(), self.place)),
            Block::Text(format!("in {}{margin}", definition(self.metric, &shown, found.a.cpu_scope))),
            Block::Table(self.table(&shown)),
        ]
    }

    fn table(&self, shown: &DisplayUnit) -> Table {
        let rows = &self.rows;
        let mut notes = Footnotes::default();
        let cells: Vec<&Cell> = rows.iter().map(|row| &row.cell).collect();
        let mut table = label_cells(&cells, &self.factors);
        let fitted: Vec<[Estimate; 2]> =
            rows.iter().map(|row| at([row.a.clone(), row.b.clone()], row.fitted, self.metric)).collect();
        let distances: Vec<_> = rows.iter().map(|row| row.effect.as_ref().map(Distance::from)).collect();
        push_pair(&mut table, ["A", "B"], &fitted, &distances, shown, &mut notes);
        table.push_optional("n", rows.iter().map(|row| format!("{}, {}", row.a.n, row.b.n)).collect());
        table.push_optional("p", rows.iter().map(|row| adjusted_p(row)).collect());
        table.push("verdict", false, rows.iter().map(|row| verdict(row, &mut notes)).collect());
        table.footnotes = notes;
        table
    }

    /// How often which verdict, and by how much: `throughput, udp segment: B worse at 2 of 4 (by 3.1 to 4.0 %)`.
    fn summary(&self) -> String {
        let mut parts = Vec::new();
        for name in ["worse", "better", "equivalent", "inconclusive", "nothing"] {
            let rows: Vec<&&MetricDiff> = self.rows.iter().filter(|row| row.change.name() == name).collect();
            if rows.is_empty() {
                continue;
            }
            let by = rows.iter().filter_map(|row| of_figure(row)).reduce(Claimed::with);
            let by = by.map_or_else(String::new, |by| format!(" (by {by})"));
            let name = match name {
                "worse" | "better" => format!("B {name}"),
                "nothing" => "nothing to compare".to_owned(),
                name => name.to_owned(),
            };
            parts.push(format!("{name} at {} of {}{by}", rows.len(), self.rows.len()));
        }
        format!("{}, {}: {}", self.metric.label(), self.place, parts.join(", "))
    }
}

fn adjusted_p(row: &MetricDiff) -> String {
    match &row.effect {
        Some(effect) => p_value(effect.adjusted_p),
        None => NONE.to_owned(),
    }
}

fn verdict(row: &MetricDiff, notes: &mut Footnotes) -> String {
    let verdict = match &row.change {
        change @ (Change::Better | Change::Worse) => format!("B {}", change.name()),
        Change::Nothing(reason) => format!("nothing {}", notes.mark(reason)),
        Change::Inconclusive if row.a.n.min(row.b.n) < MIN_UNPAIRED_RUNS => {
            let reason =
                format!("nothing is claimed of fewer than {MIN_UNPAIRED_RUNS} runs of either record");
            format!("too few {}", notes.mark(&reason))
        }
        change => change.name().to_owned(),
    };
    if row.fails { format!("{verdict} (not allowed)") } else { verdict }
}

pub(crate) fn columns<'a>() -> Vec<Column<'a, &'a MetricDiff>> {
    let mut columns: Vec<Column<&MetricDiff>> = Vec::from(metric_columns(
        "unit of means, and of effects on the difference scale",
        |row: &&MetricDiff| row.metric,
    ));
    columns.extend(cell_columns(Compares::Nothing, find_subject));
    columns.push(Column::figure(
        "margin",
        "the largest difference that does not matter: a ratio (0.02 is 2 %), or in the unit",
        |row: &&MetricDiff| Some(row.margin),
    ));
    columns.extend(setting_columns(Compares::Nothing, find_subject));
    columns.extend(estimate_columns("a", None, |row: &&MetricDiff| Some(&row.a)));
    columns.extend(estimate_columns("b", Some("record A"), |row: &&MetricDiff| Some(&row.b)));
    columns.extend(effect_columns());
    columns.extend(interval_columns(
        "claimed",
        [
            "lower end of the effect's range where the verdict is `better`, `worse` or `equivalent`, after selection",
            "upper end of that range",
        ],
        |row: &&MetricDiff| row.effect.as_ref()?.claimed_interval,
    ));
    columns.extend(verdict_columns());
    columns
}

fn find_subject<'a>(row: &'a &MetricDiff) -> Subject<'a> {
    Subject { cell: &row.cell, compared: None }
}

fn effect_columns<'a>() -> [Column<'a, &'a MetricDiff>; 8] {
    [
        Column::text("effect_scale", "`ratio`: B over A; `difference`: B minus A", |row: &&MetricDiff| {
            Some(scale(row.effect.as_ref()?.scale))
        }),
        Column::figure("effect", "how far B is from A", |row: &&MetricDiff| {
            Some(row.effect.as_ref()?.estimate)
        }),
        Column::figure(
            "low95",
            "lower end of the effect's 95 % interval (Yuen-Welch)",
            |row: &&MetricDiff| Some(row.effect.as_ref()?.interval95.low),
        ),
        Column::figure(
            "high95",
            "upper end of the effect's 95 % interval (Yuen-Welch)",
            |row: &&MetricDiff| Some(row.effect.as_ref()?.interval95.high),
        ),
        Column::figure(
            "p",
            "two-sided p of no difference: the larger one of Yuen-Welch and of the rank-sum test",
            |row: &&MetricDiff| Some(row.effect.as_ref()?.p),
        ),
        Column::figure(
            "adjusted_p",
            "the same, adjusted for the number of figures (Benjamini and Hochberg)",
            |row: &&MetricDiff| Some(row.effect.as_ref()?.adjusted_p),
        ),
        Column::figure(
            "equivalence_p",
            "p of a difference as large as the margin or larger (two one-sided tests)",
            |row: &&MetricDiff| Some(row.effect.as_ref()?.equivalence_p),
        ),
        Column::figure("adjusted_equivalence_p", "the same, adjusted likewise", |row: &&MetricDiff| {
            Some(row.effect.as_ref()?.adjusted_equivalence_p)
        }),
    ]
}

fn verdict_columns<'a>() -> [Column<'a, &'a MetricDiff>; 3] {
    [
        Column::text(
            "verdict",
            "of record B: `better`, `worse`, `equivalent`, `inconclusive` or `nothing`",
            |row: &&MetricDiff| Some(row.change.name()),
        ),
        Column::text(
            "reason",
            "why there is nothing to compare, where the verdict is `nothing`",
            |row: &&MetricDiff| match &row.change {
                Change::Nothing(reason) => Some(reason.as_str()),
                _ => None,
            },
        ),
        Column::text(
            "fails",
            "`yes` if record B is worse by more than allowed, or lacks a figure that A has",
            |row: &&MetricDiff| Some(if row.fails { "yes" } else { "no" }),
        ),
    ]
}
