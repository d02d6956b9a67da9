//! CSV (RFC 4180) that spreadsheets show as it is. They take a field that begins with `=`, `+`, `-` or `@` for a
//! formula, which may call other programs; such texts are written behind an apostrophe. Control characters, which
//! change terminals, become spaces. Figures, and everything in [`OutputFormat::RawCsv`], are as they are.

use crate::rendering::column::{Column, ColumnHead, Field, read_fields};
use crate::rendering::document::{Block, plain};
use crate::rendering::format::OutputFormat;
use std::io::{self, Write};

/// Renders a table with its header.
pub(crate) fn render<Row>(
    columns: &[Column<'_, Row>],
    rows: impl Iterator<Item = Row>,
    format: OutputFormat,
) -> String {
    let header = columns.iter().map(|column| column.head.name.to_string()).collect();
    let rows = rows.map(|row| read_fields(columns, &row).into_iter().map(Field::into_text).collect());
    lines(std::iter::once::<Vec<String>>(header).chain(rows), format)
}

/// Writes rows as they come; few are in memory at a time.
pub(crate) fn write<E: From<io::Error>>(
    heads: &[ColumnHead],
    rows: impl Iterator<Item = Result<Vec<Field>, E>>,
    format: OutputFormat,
    to: impl Write,
) -> Result<(), E> {
    let mut writer = csv::Writer::from_writer(to);
    writer.write_record(heads.iter().map(|head| head.name.as_bytes())).map_err(cause)?;
    for row in rows {
        let fields = row?.into_iter().map(|field| format_field(field.into_text(), format));
        writer.write_record(fields).map_err(cause)?;
    }
    Ok(writer.flush()?)
}

/// The reason itself: its kind says whether a pipe was closed.
fn cause(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(reason) => reason,
        other => io::Error::other(format!("{other:?}")),
    }
}

/// Each table of a document below a line `# heading`, a blank line between them, without prose.
pub(crate) fn tables(blocks: &[Block], format: OutputFormat) -> String {
    let mut text = String::new();
    for block in blocks {
        match block {
            Block::Heading(heading) => {
                let gap = if text.is_empty() { "" } else { "\n" };
                text += &format!("{gap}# {}\n", plain(heading));
            }
            Block::Table(table) => {
                let head = table.columns.iter().map(|(title, _)| title.clone()).collect();
                text += &lines(std::iter::once(head).chain(table.rows.iter().cloned()), format);
            }
            _ => {}
        }
    }
    text
}

fn lines(lines: impl Iterator<Item = Vec<String>>, format: OutputFormat) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for line in lines {
        let line = line.into_iter().map(|field| format_field(field, format));
        writer.write_record(line).expect("every row has the header's columns, and memory can be written to");
    }
    let bytes = writer.into_inner().expect("memory can be written to");
    String::from_utf8(bytes).expect("CSV of strings is a string")
}

fn format_field(field: String, format: OutputFormat) -> String {
    if format == OutputFormat::RawCsv { field } else { guard_field(field) }
}

fn guard_field(field: String) -> String {
    // The wide characters of East Asian keyboards, too.
    let begins_a_formula = field
        .starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}']);
    let field = plain(&field);
    let is_figure = field.chars().all(|c| c.is_ascii_digit() || ".,+-±%[]() e".contains(c));
    if begins_a_formula && !is_figure { format!("'{field}") } else { field }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_is_a_formula_and_figures_are_figures() {
        for hidden in ["\t=1", "\r=1", "\n=1"] {
            assert_eq!(guard_field(hidden.to_owned()), "' =1");
        }
        for formula in ["=1+1", "+cmd|' /C calc'!A0", "-2+3+cmd|x", "@SUM(A1)", "\u{ff1d}1+1", "\u{ff20}A1"] {
            assert_eq!(guard_field(formula.to_owned()), format!("'{formula}"));
        }
        for plain in ["", "-1.5", "-1.5e-7", "+0.3 [-0.1, +0.7]", "-5.9 ± 0.3", "-4 %", "ipv4", "a=b", "a-b"]
        {
            assert_eq!(guard_field(plain.to_owned()), plain);
        }
        assert_eq!(guard_field("a\u{1b}[31m\nb".to_owned()), "a [31m b");
        let all = [vec!["name".to_owned()], vec!["=x".to_owned()]];
        assert_eq!(lines(all.clone().into_iter(), OutputFormat::Csv), "name\n'=x\n");
        assert_eq!(lines(all.into_iter(), OutputFormat::RawCsv), "name\n=x\n");
    }
}
