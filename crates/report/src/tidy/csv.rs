//! Rows as CSV.

use crate::tidy::column::{Field, TidyColumn};

pub fn render(columns: &[TidyColumn], rows: impl Iterator<Item = Vec<Field>>) -> Vec<u8> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let header = columns.iter().map(|column| column.name.to_owned()).collect();
    let write = |field: Field| match field {
        Field::Number(number) => number.to_string(),
        Field::Figure(figure) => figure.map_or_else(String::new, |figure| figure.to_string()),
        Field::Text(text) => text.unwrap_or_default(),
    };
    let lines = rows.map(|row| row.into_iter().map(write).collect::<Vec<String>>());
    for line in std::iter::once(header).chain(lines) {
        writer.write_record(line).expect("every row has the header's columns, and memory can be written to");
    }
    writer.into_inner().expect("memory can be written to")
}
