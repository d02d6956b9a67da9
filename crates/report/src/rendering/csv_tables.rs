//! A document's tables as CSV (RFC 4180), one after the other.

use crate::rendering::document::{Block, Table, plain};

/// Renders each table below a line `# heading`, a blank line between them; prose is left out.
pub fn render(blocks: &[Block]) -> String {
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
    let mut writer = csv::Writer::from_writer(Vec::new());
    let head = table.columns.iter().map(|(title, _)| title);
    writer.write_record(head).expect("memory can be written to");
    for row in &table.rows {
        writer.write_record(row).expect("every row has the header's columns, and memory can be written to");
    }
    let bytes = writer.into_inner().expect("memory can be written to");
    String::from_utf8(bytes).expect("CSV of strings is a string")
}
