//! Rows as Parquet.

use super::{Entry, Kind, columns};
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::sync::Arc;

/// Rows that stand together: what is held in memory beside the runs.
const GROUP: usize = 100_000;

pub fn render(rows: impl Iterator<Item = Vec<Entry>>) -> Vec<u8> {
    written(rows).expect("the columns are of one schema, and memory can be written to")
}

fn written(rows: impl Iterator<Item = Vec<Entry>>) -> Result<Vec<u8>, ParquetError> {
    let fields: String = columns()
        .iter()
        .map(|(name, kind)| match kind {
            Kind::Number => format!("REQUIRED INT64 {name};\n"),
            Kind::Figure => format!("OPTIONAL DOUBLE {name};\n"),
            Kind::Text => format!("OPTIONAL BYTE_ARRAY {name} (STRING);\n"),
        })
        .collect();
    let schema = Arc::new(parse_message_type(&format!("message runs {{\n{fields}}}"))?);
    let properties =
        WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties))?;
    let mut rows = rows.peekable();
    while rows.peek().is_some() {
        let mut columns: Vec<Vec<Entry>> = columns().iter().map(|_| Vec::new()).collect();
        for row in rows.by_ref().take(GROUP) {
            for (column, entry) in columns.iter_mut().zip(row) {
                column.push(entry);
            }
        }
        let mut group = writer.next_row_group()?;
        for column in columns {
            let mut target = group
                .next_column()?
                .ok_or_else(|| ParquetError::General("a column is missing".to_owned()))?;
            match column.first() {
                Some(Entry::Number(_)) => {
                    let numbers: Vec<i64> = column
                        .iter()
                        .filter_map(
                            |entry| if let Entry::Number(number) = entry { Some(*number) } else { None },
                        )
                        .collect();
                    target.typed::<Int64Type>().write_batch(&numbers, None, None)?;
                }
                Some(Entry::Figure(_)) => {
                    let figure =
                        |entry: &Entry| if let Entry::Figure(figure) = entry { *figure } else { None };
                    let figures: Vec<f64> = column.iter().filter_map(figure).collect();
                    let present = present(column.iter().map(|entry| figure(entry).is_some()));
                    target.typed::<DoubleType>().write_batch(&figures, Some(&present), None)?;
                }
                _ => {
                    let text = |entry: &Entry| match entry {
                        Entry::Text(Some(text)) => Some(ByteArray::from(text.as_str())),
                        _ => None,
                    };
                    let texts: Vec<ByteArray> = column.iter().filter_map(text).collect();
                    let present = present(column.iter().map(|entry| matches!(entry, Entry::Text(Some(_)))));
                    target.typed::<ByteArrayType>().write_batch(&texts, Some(&present), None)?;
                }
            }
            target.close()?;
        }
        group.close()?;
    }
    writer.close()?;
    Ok(bytes)
}

/// Parquet's definition levels: 1 where there is something.
fn present(entries: impl Iterator<Item = bool>) -> Vec<i16> {
    entries.map(i16::from).collect()
}
