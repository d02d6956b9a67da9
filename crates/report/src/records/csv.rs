//! The comparison of two records as CSV: a row for each figure, unrounded, in the metric's unit; an empty field is an
//! absent figure.

use crate::findings::csv::{MARGIN, Subject, claimed_fields, estimate, scale};
use crate::rendering::csv::{self, Field, field};
use crate::rendering::format::OutputFormat;
use stacklab_model::{Change, MetricDiff, RecordDiff};

pub(crate) fn render(found: &RecordDiff, format: OutputFormat) -> String {
    csv::render(&fields(None), found.figures.iter().map(|row| fields(Some(row))), format)
}

/// A figure's row; without one, the columns.
pub(crate) fn fields(row: Option<&MetricDiff>) -> Vec<Field> {
    let subject = Subject {
        metric: row.map(|row| row.metric),
        cell: row.map(|row| &row.cell),
        compared: None,
        compares: false,
    };
    let effect = row.and_then(|row| row.effect.as_ref());
    let mut fields = subject.fields();
    fields.push(field("margin", MARGIN, row.map(|row| row.margin)));
    fields.extend(subject.settings());
    fields.extend(estimate("a_", None, row.map(|row| &row.a)));
    fields.extend(estimate("b_", Some("record A"), row.map(|row| &row.b)));
    fields.extend([
        field(
            "effect_scale",
            "`ratio`: B over A; `difference`: B minus A",
            effect.map(|effect| scale(effect.scale)),
        ),
        field("effect", "how far B is from A", effect.map(|effect| effect.estimate)),
        field(
            "low95",
            "lower end of the effect's 95 % interval (Welch)",
            effect.map(|effect| effect.interval95.low),
        ),
        field(
            "high95",
            "upper end of the effect's 95 % interval (Welch)",
            effect.map(|effect| effect.interval95.high),
        ),
        field("p", "two-sided p of no difference (Welch's t)", effect.map(|effect| effect.p)),
        field(
            "adjusted_p",
            "the same, adjusted for the number of figures (Benjamini and Hochberg)",
            effect.map(|effect| effect.adjusted_p),
        ),
        field(
            "equivalence_p",
            "p of a difference as large as the margin or larger (two one-sided tests)",
            effect.map(|effect| effect.equivalence_p),
        ),
        field(
            "adjusted_equivalence_p",
            "the same, adjusted likewise",
            effect.map(|effect| effect.adjusted_equivalence_p),
        ),
    ]);
    let claimed = effect.and_then(|effect| effect.claimed_interval);
    fields.extend(claimed_fields("`better`, `worse` or `equivalent`", claimed));
    let reason = row.and_then(|row| match &row.change {
        Change::Nothing(reason) => Some(reason.as_str()),
        _ => None,
    });
    fields.extend([
        field(
            "verdict",
            "of record B: `better`, `worse`, `equivalent`, `inconclusive` or `nothing`",
            row.map(|row| row.change.name()),
        ),
        field("reason", "why there is nothing to compare, where the verdict is `nothing`", reason),
        field(
            "fails",
            "`yes` if record B is worse by more than allowed, or lacks a figure that A has",
            row.map(|row| if row.fails { "yes" } else { "no" }),
        ),
    ]);
    fields
}
