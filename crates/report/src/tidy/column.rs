//! Columns of rows, and what they hold.

use stacklab_model::{Metric, Role, RunRecord, Slice, Value};

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A whole number.
    Number,
    /// A figure.
    Figure,
    /// A text.
    Text,
}

/// A column. An absent figure or text is null in Parquet and an empty field in CSV.
pub(super) struct TidyColumn {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// The same in words, for `docs/export.md`.
    #[cfg_attr(not(test), expect(dead_code, reason = "read by the test that compares docs/export.md"))]
    pub doc: &'static str,
    /// A row's field.
    pub value: Box<dyn Fn(&TidyRow<'_>) -> Field>,
}

/// A row of a run.
pub(super) struct TidyRow<'a> {
    pub run: &'a RunRecord,
    pub of: RowOf<'a>,
}

/// What of its run a row is.
pub(super) enum RowOf<'a> {
    /// A metric.
    Metric(Metric, &'a Value),
    /// A slice, as the host in this role counted it.
    Slice(Role, &'a Slice),
}

/// A field of a row.
pub(super) enum Field {
    Number(Option<i64>),
    Figure(Option<f64>),
    Text(Option<String>),
}
