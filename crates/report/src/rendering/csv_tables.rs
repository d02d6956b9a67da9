//! A document's tables as CSV (RFC 4180), one after the other.

use crate::rendering::csv_cells::{self, Cells};
use crate::rendering::document::{Block, Table, plain};

/// Renders each table below a line `# heading`, a blank line between them; prose is left out.
pub(crate) fn render(blocks: &[Block]) -> String {
    let mut text = String::new();
    for block in blocks {
        match block {
            Block::Heading(heading) if text.is_empty() => text = format!("# {}\n", plain(heading)),
            Block::Heading(heading) => text += &format!("\n# {}\n", plain(heading)),
            Block::Table(found) => text += &table(found),
            Block::Title(_) | Block::Text(_) | Block::Facts(_) | Block::List(_) => {}
        }
    }
    text
}

fn table(table: &Table) -> String {
    let head = table.columns.iter().map(|(title, _)| title.clone()).collect();
    csv_cells::render(std::iter::once(head).chain(table.rows.iter().cloned()), Cells::Guarded)
}
