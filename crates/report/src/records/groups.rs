//! The tables of two compared records: one for each metric, transport and meaning of size.

use crate::findings::claims::{Claimed, of_figure};
use crate::findings::comparisons::{at, definition, mean_decimals, means};
use crate::findings::groups::{is_number, level_alone, place, row_factors, sort_key, varied};
use crate::rendering::document::{Block, Footnotes, Table};
use crate::rendering::numbers::{
    DisplayUnit, NONE, aligned, difference_decimals, difference_heading, difference_parts, is_factor, p_value,
};
use stacklab_model::{
    Change, CpuScope, Estimate, Factor, Metric, MetricDiff, RecordDiff, Scale, SizeOf, Transport,
};
use std::collections::{BTreeMap, BTreeSet};

/// The figures of one table.
pub(super) struct Group<'a> {
    metric: Metric,
    place: String,
    rows: Vec<&'a MetricDiff>,
    factors: Vec<Factor>,
}

/// All figures in groups, by metric, transport and size_of.
pub(super) fn groups(found: &RecordDiff) -> Vec<Group<'_>> {
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
        groups.push(Group {
            metric,
            place: place(Some(transport), Some(size_of).filter(|_| sizes_of > 1)),
            rows,
            factors,
        });
    }
    groups
}

impl Group<'_> {
    pub(super) fn blocks(&self, found: &RecordDiff) -> [Block; 3] {
        let figures = self.rows.iter().flat_map(|row| [row.a.mean, row.b.mean]).flatten();
        let shown = DisplayUnit::fitting(self.metric, figures);
        let margin = match (self.metric.scale(), self.rows[0].margin) {
            (Scale::Ratio, margin) => 100.0 * margin,
            (Scale::Difference, margin) => shown.factor * margin,
        };
        let margin = format!("; margin {} {}", (margin * 1e6).round() / 1e6, shown.difference_unit);
        [
            Block::Heading(format!("{}, {}: B vs A", self.metric.label(), self.place)),
            Block::Text(format!("in {}{margin}", definition(self.metric, &shown, scope(found)))),
            Block::Table(self.table(&shown)),
        ]
    }

    fn table(&self, shown: &DisplayUnit) -> Table {
        let rows = &self.rows;
        let mut notes = Footnotes::default();
        let mut table = Table::default();
        for factor in &self.factors {
            let cells: Vec<String> = rows.iter().map(|row| level_alone(&row.cell, *factor)).collect();
            table.push(factor.label(), is_number(&cells), cells);
        }
        let fitted: Vec<[Estimate; 2]> = rows
            .iter()
            .map(|row| at([row.a.clone(), row.b.clone()], row.fitted, self.metric.scale()))
            .collect();
        let [a, b]: [Vec<&Estimate>; 2] =
            [0, 1].map(|place| fitted.iter().map(|pair| &pair[place]).collect());
        let places = mean_decimals(a.iter().chain(&b).copied(), shown);
        table.push("A", true, means(&a, shown, places, &mut notes));
        table.push("B", true, means(&b, shown, places, &mut notes));
        let cells = distances(rows, shown);
        table.push(difference_heading(shown.difference_unit, &cells), true, cells);
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
        let told = verdicts.into_iter().filter_map(|name| {
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
        format!("{}, {}: {}", self.metric.label(), self.place, told.collect::<Vec<_>>().join(", "))
    }
}

/// Figures of different scopes are not compared.
fn scope(found: &RecordDiff) -> CpuScope {
    found.a.cpu_scope
}

/// `-8.41 [-8.43, -8.39]`.
fn distances(rows: &[&MetricDiff], shown: &DisplayUnit) -> Vec<String> {
    let effects = || rows.iter().map(|row| row.effect.as_ref());
    let percents = effects().flatten().filter(|effect| !is_factor(effect.scale, effect.estimate));
    let places = difference_decimals(percents.map(|effect| {
        let [low, high] =
            [effect.interval95.low, effect.interval95.high].map(|end| shown.difference(effect.scale, end));
        (high - low) / 2.0
    }));
    let parts: Vec<Option<[String; 3]>> = effects()
        .map(|effect| {
            let effect = effect?;
            let ends = [effect.estimate, effect.interval95.low, effect.interval95.high];
            Some(difference_parts(shown, effect.scale, ends, places))
        })
        .collect();
    aligned(&parts).into_iter().map(|cell| cell.unwrap_or_else(|| NONE.to_owned())).collect()
}

fn verdict(row: &MetricDiff, notes: &mut Footnotes) -> String {
    let verdict = match &row.change {
        change @ (Change::Better | Change::Worse) => format!("B {}", change.name()),
        Change::Nothing(reason) => format!("nothing {}", notes.mark(reason)),
        change => change.name().to_owned(),
    };
    if row.fails { format!("{verdict} (not allowed)") } else { verdict }
}
