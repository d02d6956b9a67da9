//! The report of two records compared.

use crate::findings::claims::{Claimed, of_figure};
use crate::findings::comparisons::{at, definition, push_pair};
use crate::findings::csv::{estimate, interval, metric_fields, scale};
use crate::findings::groups::{by_table, labelled, margin_text, row_factors, varied};
use crate::findings::heading::time;
use crate::rendering::csv::{self, Field, cell_fields, field, setting_fields};
use crate::rendering::document::{Block, Footnotes, Table, Width};
use crate::rendering::format::{OutputFormat, versioned_json};
use crate::rendering::numbers::{DisplayUnit, Distance, NONE, p_value};
use crate::rendering::text::render;
use serde::Serialize;
use stacklab_model::{
    Apart, Cell, Change, Estimate, Factor, Lacking, MIN_UNPAIRED_RUNS, Metric, MetricDiff, OnlyInOne,
    RecordDiff, RecordLoads, Recorded, count,
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
        OutputFormat::Csv | OutputFormat::RawCsv => {
            csv::render(&fields(None), found.figures.iter().map(|row| fields(Some(row))), format)
        }
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
            ("A", recorded(&found.a)),
            ("", loads.a.to_string()),
            ("B", recorded(&found.b)),
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

fn recorded(record: &Recorded) -> String {
    let Recorded { name, title, version, started_unix_ns, seed, valid_runs, invalid_runs, .. } = record;
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
    let of = |name: &str| found.figures.iter().filter(|row| row.change.name() == name).count();
    let all = found.figures.len();
    let counts = [
        ("worse", of("worse")),
        ("better", of("better")),
        ("equivalent", of("equivalent")),
        ("too uncertain", of("inconclusive")),
        ("without figures in one of them", of("nothing")),
    ];
    let said: Vec<String> =
        counts.into_iter().filter(|(_, n)| *n > 0).map(|(what, n)| format!("{n} {what}")).collect();
    let none = if of("worse") == 0 { "no figure of B is surely worse: " } else { "" };
    format!("Of {}, {none}{}.", count(all, "figure"), said.join(", "))
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
    let varied = varied(cells());
    let sizes_of = cells().map(|cell| cell.size_of).collect::<BTreeSet<_>>();
    let tables = by_table(&found.figures, |row| (row.metric, &row.cell), sizes_of.len() > 1);
    let table = |(metric, place, rows): (Metric, String, Vec<_>)| {
        let factors = row_factors(rows.iter().map(|row: &&MetricDiff| &row.cell), &varied, None);
        DiffTable { metric, place, rows, factors }
    };
    tables.into_iter().map(table).collect()
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
        let mut table = labelled(&cells, &self.factors);
        let fitted = |row: &&MetricDiff| at([row.a.clone(), row.b.clone()], row.fitted, self.metric);
        let fitted: Vec<[Estimate; 2]> = rows.iter().map(fitted).collect();
        let distances: Vec<_> = rows.iter().map(|row| row.effect.as_ref().map(Distance::from)).collect();
        push_pair(&mut table, ["A", "B"], &fitted, &distances, shown, &mut notes);
        table.push_optional("n", rows.iter().map(|row| format!("{}, {}", row.a.n, row.b.n)).collect());
        let p = |row: &&MetricDiff| {
            row.effect.as_ref().map_or(NONE.to_owned(), |effect| p_value(effect.adjusted_p))
        };
        table.push_optional("p", rows.iter().map(p).collect());
        table.push("verdict", false, rows.iter().map(|row| verdict(row, &mut notes)).collect());
        table.footnotes = notes;
        table
    }

    /// How often which verdict, and by how much: `throughput, udp segment: B worse at 2 of 4 (by 3.1 to 4.0 %)`.
    fn summary(&self) -> String {
        let verdicts = ["worse", "better", "equivalent", "inconclusive", "nothing"];
        let sentences = verdicts.into_iter().filter_map(|name| {
            let rows: Vec<&&MetricDiff> = self.rows.iter().filter(|row| row.change.name() == name).collect();
            let by = rows.iter().filter_map(|row| of_figure(row)).reduce(Claimed::with);
            let by = by.map_or_else(String::new, |by| format!(" (by {by})"));
            let name = match name {
                "worse" | "better" => format!("B {name}"),
                "nothing" => "nothing to compare".to_owned(),
                name => name.to_owned(),
            };
            (!rows.is_empty()).then(|| format!("{name} at {} of {}{by}", rows.len(), self.rows.len()))
        });
        format!("{}, {}: {}", self.metric.label(), self.place, sentences.collect::<Vec<_>>().join(", "))
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

/// A figure's row; without one, the columns.
pub(crate) fn fields(row: Option<&MetricDiff>) -> Vec<Field> {
    let cell = row.map(|row| &row.cell);
    let effect = row.and_then(|row| row.effect.as_ref());
    let reason = row.and_then(|row| match &row.change {
        Change::Nothing(reason) => Some(reason.as_str()),
        _ => None,
    });
    let mut fields = metric_fields(row.map(|row| row.metric)).to_vec();
    fields.extend(cell_fields(cell, None));
    fields.push(field("margin", row.map(|row| row.margin)));
    fields.extend(setting_fields(cell, None));
    fields.extend(estimate("a_", row.map(|row| &row.a)));
    fields.extend(estimate("b_", row.map(|row| &row.b)));
    fields.extend([
        field("effect_scale", effect.map(|effect| scale(effect.scale))),
        field("effect", effect.map(|effect| effect.estimate)),
        field("low95", effect.map(|effect| effect.interval95.low)),
        field("high95", effect.map(|effect| effect.interval95.high)),
        field("p", effect.map(|effect| effect.p)),
        field("adjusted_p", effect.map(|effect| effect.adjusted_p)),
        field("equivalence_p", effect.map(|effect| effect.equivalence_p)),
        field("adjusted_equivalence_p", effect.map(|effect| effect.adjusted_equivalence_p)),
    ]);
    fields.extend(interval("claimed", effect.and_then(|effect| effect.claimed_interval)));
    fields.extend([
        field("verdict", row.map(|row| row.change.name())),
        field("reason", reason),
        field("fails", row.map(|row| if row.fails { "yes" } else { "no" })),
    ]);
    fields
}
