//! Rows as Parquet, and columns of such files.

use crate::rendering::column::{ColumnHead, Field, FieldKind};
use parquet::basic::Compression;
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use std::io::{self, Write};
use std::sync::Arc;

/// Rows of a row group, which is held in memory: as they are written, and the most that are read.
const GROUP: usize = 10_000;
const MAX_GROUP: usize = 100_000;

pub(super) fn render(heads: &[ColumnHead], rows: impl Iterator<Item = Vec<Field>>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let written = write::<io::Error>(heads, rows.map(Ok), &mut bytes);
    written.expect("the columns are of one schema, and memory can be written to");
    bytes
}

pub(super) fn write<E: From<io::Error>>(
    heads: &[ColumnHead],
    mut rows: impl Iterator<Item = std::result::Result<Vec<Field>, E>>,
    to: impl Write + Send,
) -> std::result::Result<(), E> {
    let mut writer = begin(heads, to).map_err(cause)?;
    loop {
        let mut columns: Vec<Vec<Field>> = heads.iter().map(|_| Vec::new()).collect();
        let mut is_empty = true;
        for row in rows.by_ref().take(GROUP) {
            is_empty = false;
            for (column, field) in columns.iter_mut().zip(row?) {
                column.push(field);
            }
        }
        if is_empty {
            break;
        }
        write_group(&mut writer, heads, &columns).map_err(cause)?;
    }
    writer.close().map_err(cause)?;
    Ok(())
}

/// The reason itself: its kind says whether a pipe was closed.
fn cause(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(reason) => reason.downcast().map_or_else(io::Error::other, |reason| *reason),
        other => io::Error::other(other),
    }
}

fn begin<W: Write + Send>(heads: &[ColumnHead], to: W) -> Result<SerializedFileWriter<W>> {
    let mut fields = String::new();
    for ColumnHead { name, kind, .. } in heads {
        fields += &match kind {
            FieldKind::Number => format!("OPTIONAL INT64 {name};\n"),
            FieldKind::Figure => format!("OPTIONAL DOUBLE {name};\n"),
            FieldKind::Text => format!("OPTIONAL BYTE_ARRAY {name} (STRING);\n"),
        };
    }
    let schema = format!("message runs {{\n{fields}}}");
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    SerializedFileWriter::new(to, Arc::new(parse_message_type(&schema)?), Arc::new(properties))
}

fn write_group<W: Write + Send>(
    writer: &mut SerializedFileWriter<W>,
    heads: &[ColumnHead],
    columns: &[Vec<Field>],
) -> Result<()> {
    let mut group = writer.next_row_group()?;
    for (column, head) in columns.iter().zip(heads) {
        let mut target =
            group.next_column()?.ok_or_else(|| ParquetError::General("a column is missing".to_owned()))?;
        match head.kind {
            FieldKind::Number => write_column::<Int64Type>(&mut target, column, |value| match value {
                Field::Number(number) => *number,
                _ => None,
            })?,
            FieldKind::Figure => write_column::<DoubleType>(&mut target, column, |value| match value {
                Field::Figure(figure) => *figure,
                _ => None,
            })?,
            FieldKind::Text => write_column::<ByteArrayType>(&mut target, column, |value| match value {
                Field::Text(text) => text.as_deref().map(ByteArray::from),
                _ => None,
            })?,
        }
        target.close()?;
    }
    group.close()?;
    Ok(())
}

/// Writes the values that there are, with Parquet's definition levels: 1 where there is one.
fn write_column<T: DataType>(
    target: &mut SerializedColumnWriter,
    column: &[Field],
    read: impl Fn(&Field) -> Option<T::T>,
) -> Result<()> {
    let values: Vec<Option<T::T>> = column.iter().map(read).collect();
    let present: Vec<i16> = values.iter().map(|value| value.is_some().into()).collect();
    let values: Vec<T::T> = values.into_iter().flatten().collect();
    target.typed::<T>().write_batch(&values, Some(&present), None)?;
    Ok(())
}

/// The values of a row group's column: one for each row, if there is one.
pub(super) type Values<T> = Vec<Option<T>>;

pub(super) struct Columns<'a>(Box<dyn RowGroupReader + 'a>);

impl<'a> Columns<'a> {
    pub(super) fn of_groups(file: &'a dyn FileReader) -> impl Iterator<Item = Result<Self>> {
        (0..file.num_row_groups()).map(|group| file.get_row_group(group).map(Columns))
    }

    pub(super) fn read<T: DataType>(&self, name: &str) -> Result<Values<T::T>> {
        let lacks = ParquetError::General(format!("it has no column {name} of this kind"));
        let columns = self.0.metadata().columns();
        let place = columns.iter().position(|column| {
            column.column_path().string() == name && column.column_type() == T::get_physical_type()
        });
        let Some(place) = place else { return Err(lacks) };
        let descriptor = columns[place].column_descr();
        if descriptor.max_def_level() != 1 || descriptor.max_rep_level() != 0 {
            return Err(lacks);
        }
        let mut reader = get_typed_column_reader::<T>(self.0.get_column_reader(place)?);
        let mut levels = Vec::new();
        let mut values = Vec::new();
        // No more than this program writes: a file may claim any number of empty rows.
        reader.read_records(MAX_GROUP, Some(&mut levels), None, &mut values)?;
        if usize::try_from(self.0.metadata().num_rows()) != Ok(levels.len()) {
            return Err(ParquetError::General(format!(
                "a group of rows has more than {MAX_GROUP}, or too few"
            )));
        }
        let mut values = values.into_iter();
        Ok(levels.into_iter().map(|level| if level == 1 { values.next() } else { None }).collect())
    }
}
