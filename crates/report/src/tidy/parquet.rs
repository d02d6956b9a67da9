//! Rows as Parquet.

use crate::tidy::column::{Field, Kind, TidyColumn};
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::sync::Arc;

/// Rows of a row group, which is held in memory.
const GROUP: usize = 100_000;

pub(super) fn render(columns: &[TidyColumn], rows: impl Iterator<Item = Vec<Field>>) -> Vec<u8> {
    written(columns, rows).expect("the columns are of one schema, and memory can be written to")
}

fn written(columns: &[TidyColumn], rows: impl Iterator<Item = Vec<Field>>) -> Result<Vec<u8>, ParquetError> {
    let fields: String = columns
        .iter()
        .map(|TidyColumn { name, kind, .. }| match kind {
            Kind::Number => format!("OPTIONAL INT64 {name};\n"),
            Kind::Figure => format!("OPTIONAL DOUBLE {name};\n"),
            Kind::Text => format!("OPTIONAL BYTE_ARRAY {name} (STRING);\n"),
        })
        .collect();
    let schema = Arc::new(parse_message_type(&format!("message runs {{\n{fields}}}"))?);
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties))?;
    let mut rows = rows.peekable();
    while rows.peek().is_some() {
        let mut values: Vec<Vec<Field>> = columns.iter().map(|_| Vec::new()).collect();
        for row in rows.by_ref().take(GROUP) {
            for (column, field) in values.iter_mut().zip(row) {
                column.push(field);
            }
        }
        let mut group = writer.next_row_group()?;
        for column in values {
            let mut target = group
                .next_column()?
                .ok_or_else(|| ParquetError::General("a column is missing".to_owned()))?;
            match column.first() {
                Some(Field::Number(_)) => {
                    let number =
                        |field: &Field| if let Field::Number(number) = field { *number } else { None };
                    let numbers: Vec<i64> = column.iter().filter_map(number).collect();
                    let present = present(column.iter().map(|field| number(field).is_some()));
                    target.typed::<Int64Type>().write_batch(&numbers, Some(&present), None)?;
                }
                Some(Field::Figure(_)) => {
                    let figure =
                        |field: &Field| if let Field::Figure(figure) = field { *figure } else { None };
                    let figures: Vec<f64> = column.iter().filter_map(figure).collect();
                    let present = present(column.iter().map(|field| figure(field).is_some()));
                    target.typed::<DoubleType>().write_batch(&figures, Some(&present), None)?;
                }
                _ => {
                    let text = |field: &Field| match field {
                        Field::Text(Some(text)) => Some(ByteArray::from(text.as_str())),
                        _ => None,
                    };
                    let texts: Vec<ByteArray> = column.iter().filter_map(text).collect();
                    let present = present(column.iter().map(|field| matches!(field, Field::Text(Some(_)))));
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
fn present(fields: impl Iterator<Item = bool>) -> Vec<i16> {
    fields.map(i16::from).collect()
}
