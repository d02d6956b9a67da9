//! A table drawn with characters.

use crate::rendering::document::Table;
use comfy_table::{CellAlignment, TableStyle};

/// The table in a style, with this many spaces before and after each cell, every cell passed through `write`. No line
/// ends in spaces.
pub(super) fn draw_table(
    table: &Table,
    style: TableStyle,
    padding: (u16, u16),
    write: impl Fn(&str) -> String,
) -> String {
    let mut drawn = comfy_table::Table::new();
    drawn.load_style(style);
    drawn.set_header(table.columns.iter().map(|(title, _)| write(title)));
    for row in &table.rows {
        drawn.add_row(row.iter().map(|cell| write(cell)));
    }
    for (column, (_, right)) in drawn.column_iter_mut().zip(&table.columns) {
        column.set_padding(padding);
        column.set_cell_alignment(if *right { CellAlignment::Right } else { CellAlignment::Left });
    }
    drawn.trim_fmt() + "\n"
}
