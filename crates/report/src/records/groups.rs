//! The tables of two compared records: one for each metric, transport and meaning of size.

use crate::findings::claims::{Claimed, of_figure};
use crate::findings::comparisons::{at, definition, push_pair};
use crate::findings::groups::{labelled, place, row_factors, sort_key, varied};
use crate::rendering::document::{Block, Footnotes, Table};
use crate::rendering::numbers::{DisplayUnit, Distance, NONE, p_value};
use stacklab_model::{Cell, Change, Estimate, Factor, Metric, MetricDiff, RecordDiff, SizeOf, Transport};
use std::collections::{BTreeMap, BTreeSet};

/// The figures of one table.
pub(super) struct DiffTable<'a> {
    metric: Metric,
    place: String,
    rows: Vec<&'a MetricDiff>,
    factors: Vec<Factor>,
}

pub(super) fn groups(found: &RecordDiff) -> Vec<DiffTable<'_>> {
    let varied = varied(found.figures.iter().map(|row| &row.cell));
    let mut sorted: BTreeMap<(Metric, Transport, SizeOf), Vec<&MetricDiff>> = BTreeMap::new();
    for row in &found.figures {
        sorted.entry((row.metric, row.cell.transport, row.cell.size_of)).or_default().push(row);
    }
    let sizes_of = found.figures.iter().map(|row| row.cell.size_of).collect::<BTreeSet<_>>().len();
    let mut groups = Vec::new();
    for ((metric, transport, size_of), mut rows) in sorted {
        rows.sort_by_key(|row| sort_key(&row.cell));
        let factors = row_factors(rows.iter().map(|row| &row.cell), &varied, None);
        groups.push(DiffTable {
            metric,
            place: place(Some(transport), Some(size_of).filter(|_| sizes_of > 1)),
            rows,
            factors,
        });
    }
    groups
}

impl DiffTable<'_> {
    pub(super) fn blocks(&self, found: &RecordDiff) -> [Block; 3] {
        let figures = self.rows.iter().flat_map(|row| [row.a.mean, row.b.mean]).flatten();
        let shown = DisplayUnit::fitting(self.metric, figures);
        let margin = shown.margin(self.metric.scale(), self.rows[0].margin);
        let margin = format!("; margin {} {}", (margin * 1e6).round() / 1e6, shown.difference_unit);
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
        let fitted = |row: &&MetricDiff| at([row.a.clone(), row.b.clone()], row.fitted, self.metric.scale());
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
    pub(super) fn summary(&self) -> String {
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
        change => change.name().to_owned(),
    };
    if row.fails { format!("{verdict} (not allowed)") } else { verdict }
}
