//! Columns that the CSV of a campaign and of two records share: a cell and its estimate.

use crate::rendering::columns::{Column, figure};
use stacklab_model::{Cell, Estimate, Factor, Metric};

/// The subject of a row.
pub(crate) struct Subject<'a> {
    pub metric: Metric,
    pub cell: &'a Cell,
    /// The factor that the row compares. Its level has separate columns.
    pub compared: Option<Factor>,
}

impl Subject<'_> {
    fn level(&self, factor: Factor) -> String {
        if self.compared == Some(factor) { String::new() } else { self.cell.level(factor) }
    }
}

/// Metric, unit, and the cell's levels. `compares` says whether rows can compare levels of a factor.
pub(crate) fn subject<R: 'static>(of: fn(&R) -> Subject<'_>, compares: bool) -> Vec<Column<R>> {
    let empty = if compares { "; empty if it is the compared factor" } else { "" };
    let replica = if compares { ", or it is what is compared" } else { "" };
    let factors = [
        (Factor::Transport, format!("transport protocol{empty}")),
        (Factor::SizeOf, format!("what size means{empty}")),
        (Factor::Family, format!("address family{empty}")),
        (Factor::Size, format!("bytes{empty}")),
        (Factor::Replica, format!("replica; empty where there is none{replica}")),
    ];
    let mut columns = vec![
        Column::new("metric", "the metric", move |row| of(row).metric.to_string()),
        Column::new("unit", "unit of means, and of effects on the difference scale", move |row| {
            of(row).metric.unit().symbol().to_owned()
        }),
    ];
    columns.extend(
        factors.map(|(factor, doc)| Column::new(factor.name(), doc, move |row| of(row).level(factor))),
    );
    columns
}

/// The cell's settings.
pub(crate) fn settings<R: 'static>(of: fn(&R) -> Subject<'_>, compares: bool) -> Vec<Column<R>> {
    let compared = if compares { ", or is what is compared" } else { "" };
    let first = format!("level of this setting; empty if the default applies{compared}");
    let factors = Factor::ALL.iter().copied().filter(|factor| factor.is_setting());
    let docs = std::iter::once(first).chain(std::iter::repeat("as for os".to_owned()));
    factors
        .zip(docs)
        .map(|(factor, doc)| Column::new(factor.name(), doc, move |row| of(row).level(factor)))
        .collect()
}

/// A name's ending, its content, and the field.
type EstimateField = (&'static str, &'static str, fn(&Estimate) -> String);

/// The fields of an estimate.
const ESTIMATE: [EstimateField; 7] = [
    ("n", "valid runs with a figure", |estimate| estimate.n.to_string()),
    ("mean", "mean over runs", |estimate| figure(estimate.mean)),
    ("sd", "standard deviation over runs (n - 1)", |estimate| figure(estimate.sd)),
    ("median", "median over runs", |estimate| figure(estimate.median)),
    ("low", "lower end of the mean's 95 % interval", |estimate| {
        figure(estimate.interval.map(|interval| interval.low))
    }),
    ("high", "upper end of the mean's 95 % interval", |estimate| {
        figure(estimate.interval.map(|interval| interval.high))
    }),
    ("missing", "why runs have no figure, if any has none", |estimate| {
        estimate.missing.clone().unwrap_or_default()
    }),
];

/// The fields of an estimate's median interval.
const MEDIAN: [EstimateField; 2] = [
    ("median_low", "lower end of the median's 95 % interval", |estimate| {
        figure(estimate.median_interval.map(|interval| interval.low))
    }),
    ("median_high", "upper end of the median's 95 % interval", |estimate| {
        figure(estimate.median_interval.map(|interval| interval.high))
    }),
];

/// An estimate's columns, each name with a prefix. With `as_for`, their documentation refers to the columns of that
/// name.
pub(crate) fn estimate<R: 'static>(
    prefix: &str,
    as_for: Option<&str>,
    of: fn(&R) -> Option<&Estimate>,
) -> Vec<Column<R>> {
    fields(&ESTIMATE, prefix, as_for, of)
}

/// The columns of an estimate's median interval.
pub(crate) fn median_interval<R: 'static>(
    prefix: &str,
    as_for: Option<&str>,
    of: fn(&R) -> Option<&Estimate>,
) -> Vec<Column<R>> {
    fields(&MEDIAN, prefix, as_for, of)
}

fn fields<R: 'static>(
    fields: &[EstimateField],
    prefix: &str,
    as_for: Option<&str>,
    of: fn(&R) -> Option<&Estimate>,
) -> Vec<Column<R>> {
    fields
        .iter()
        .map(|(name, doc, field)| {
            let doc = as_for.map_or_else(|| (*doc).to_owned(), |other| format!("as for {other}"));
            let field = *field;
            Column::new(format!("{prefix}{name}"), doc, move |row| of(row).map(field).unwrap_or_default())
        })
        .collect()
}
