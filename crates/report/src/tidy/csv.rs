//! Rows as CSV.

use super::{Entry, columns};

pub fn render(rows: impl Iterator<Item = Vec<Entry>>) -> Vec<u8> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let header = columns().into_iter().map(|(name, _)| name.to_owned()).collect();
    let write = |entry: Entry| match entry {
        Entry::Number(number) => number.to_string(),
        Entry::Figure(figure) => figure.map_or_else(String::new, |figure| figure.to_string()),
        Entry::Text(text) => text.unwrap_or_default(),
    };
    let lines = rows.map(|row| row.into_iter().map(write).collect::<Vec<String>>());
    for line in std::iter::once(header).chain(lines) {
        writer.write_record(line).expect("every row has the header's columns, and memory can be written to");
    }
    writer.into_inner().expect("memory can be written to")
}
