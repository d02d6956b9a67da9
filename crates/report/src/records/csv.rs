//! The comparison of two records as CSV: a row for each figure, unrounded, in the metric's unit; an empty field is an
//! absent figure.

use crate::findings::columns::{Subject, estimate, settings, subject};
use crate::findings::csv::scale;
use crate::rendering::columns::{self, Column, figure};
use crate::rendering::csv_cells::Cells;
use stacklab_model::{Change, MetricDiff, RecordDiff, Unpaired};

/// Header and rows.
pub(crate) fn render(found: &RecordDiff, texts: Cells) -> String {
    columns::render(&columns(), found.figures.iter().cloned(), texts)
}

/// The columns.
pub(crate) fn columns() -> Vec<Column<MetricDiff>> {
    let mut columns = subject(subject_of, false);
    columns.push(Column::new(
        "margin",
        "the largest difference that does not matter: a ratio (0.02 is 2 %), or in the unit",
        |row: &MetricDiff| row.margin.to_string(),
    ));
    columns.extend(settings(subject_of, false));
    columns.extend(estimate("a_", None, |row: &MetricDiff| Some(&row.a)));
    columns.extend(estimate("b_", Some("record A"), |row: &MetricDiff| Some(&row.b)));
    columns.extend(effect());
    columns.extend([
        Column::new(
            "verdict",
            "of record B: `better`, `worse`, `equivalent`, `inconclusive` or `nothing`",
            |row: &MetricDiff| row.change.name().to_owned(),
        ),
        Column::new(
            "reason",
            "why there is nothing to compare, where the verdict is `nothing`",
            |row: &MetricDiff| match &row.change {
                Change::Nothing(reason) => reason.clone(),
                _ => String::new(),
            },
        ),
        Column::new(
            "fails",
            "`yes` if record B is worse by more than allowed, or lacks a figure that A has",
            |row: &MetricDiff| if row.fails { "yes" } else { "no" }.to_owned(),
        ),
    ]);
    columns
}

fn subject_of(row: &MetricDiff) -> Subject<'_> {
    Subject { metric: row.metric, cell: &row.cell, compared: None }
}

/// The effect, its interval and tests.
fn effect() -> [Column<MetricDiff>; 10] {
    let column = |name: &str, doc: &str, value: fn(&Unpaired) -> String| {
        Column::new(name, doc, move |row: &MetricDiff| row.effect.as_ref().map(value).unwrap_or_default())
    };
    [
        column("effect_scale", "`ratio`: B over A; `difference`: B minus A", |effect| scale(effect.scale)),
        column("effect", "how far B is from A", |effect| effect.estimate.to_string()),
        column("low95", "lower end of the effect's 95 % interval (Welch)", |effect| {
            effect.interval95.low.to_string()
        }),
        column("high95", "upper end of the effect's 95 % interval (Welch)", |effect| {
            effect.interval95.high.to_string()
        }),
        column("p", "two-sided p of no difference (Welch's t)", |effect| effect.p.to_string()),
        column(
            "adjusted_p",
            "the same, adjusted for the number of figures (Benjamini and Hochberg)",
            |effect| effect.adjusted_p.to_string(),
        ),
        column(
            "equivalence_p",
            "p of a difference as large as the margin or larger (two one-sided tests)",
            |effect| effect.equivalence_p.to_string(),
        ),
        column("adjusted_equivalence_p", "the same, adjusted likewise", |effect| {
            effect.adjusted_equivalence_p.to_string()
        }),
        column(
            "claimed_low",
            "lower end of the effect's range where the verdict is `better`, `worse` or `equivalent`, after selection",
            |effect| figure(effect.claimed_interval.map(|range| range.low)),
        ),
        column("claimed_high", "upper end of that range", |effect| {
            figure(effect.claimed_interval.map(|range| range.high))
        }),
    ]
}
