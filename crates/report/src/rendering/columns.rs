//! CSV (RFC 4180) from a list of columns, which documents it too.

use crate::rendering::csv_cells::{self, Cells};

/// A CSV column. Its rows are made from an `R`.
pub(crate) struct Column<R> {
    /// Its name in the header.
    pub name: String,
    /// Its content, for `docs/columns.md`.
    pub doc: String,
    /// A row's field.
    pub value: Box<dyn Fn(&R) -> String>,
}

impl<R> Column<R> {
    /// A column.
    pub(crate) fn new(
        name: impl Into<String>,
        doc: impl Into<String>,
        value: impl Fn(&R) -> String + 'static,
    ) -> Self {
        Column { name: name.into(), doc: doc.into(), value: Box::new(value) }
    }
}

/// Header and rows.
pub(crate) fn render<R>(columns: &[Column<R>], rows: impl Iterator<Item = R>, cells: Cells) -> String {
    let header = columns.iter().map(|column| column.name.clone()).collect();
    let rows = rows.map(|row| columns.iter().map(|column| (column.value)(&row)).collect());
    csv_cells::render(std::iter::once::<Vec<String>>(header).chain(rows), cells)
}

/// The columns as a Markdown table.
pub(crate) fn documentation<R>(columns: &[Column<R>]) -> String {
    let rows = columns.iter().map(|column| format!("| `{}` | {} |\n", column.name, column.doc));
    format!("| column | content |\n|---|---|\n{}", rows.collect::<String>())
}

/// A figure unrounded; empty if there is none.
pub(crate) fn figure(figure: Option<f64>) -> String {
    figure.filter(|figure| figure.is_finite()).map(|figure| figure.to_string()).unwrap_or_default()
}
