//! Rows as CSV.

use crate::rendering::csv_cells::{self, Cells};
use crate::tidy::column::{Field, TidyColumn};

pub(super) fn render(
    columns: &[TidyColumn],
    rows: impl Iterator<Item = Vec<Field>>,
    cells: Cells,
) -> Vec<u8> {
    let header = columns.iter().map(|column| column.name.to_owned()).collect();
    let write = |field: Field| match field {
        Field::Number(number) => number.map_or_else(String::new, |number| number.to_string()),
        Field::Figure(figure) => figure.map_or_else(String::new, |figure| figure.to_string()),
        Field::Text(text) => text.unwrap_or_default(),
    };
    let lines = rows.map(|row| row.into_iter().map(write).collect::<Vec<String>>());
    csv_cells::render(std::iter::once(header).chain(lines), cells).into_bytes()
}
