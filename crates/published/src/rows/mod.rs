//! Rows of a CSV table, with their line numbers.

pub(crate) mod printed;

use std::fmt::Display;

/// An invalid row.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("reference/{file}:{line}: {what}")]
pub struct ReferenceError {
    /// The file, in `reference/`.
    pub file: &'static str,
    /// The line, from 1.
    pub line: u64,
    /// What is wrong.
    pub what: String,
}

/// One row of a file.
pub(crate) struct CsvRow<'a> {
    file: &'static str,
    /// The line that it begins on, from 1.
    pub line: u64,
    columns: &'a [&'static str],
    record: &'a csv::StringRecord,
}

impl CsvRow<'_> {
    /// A column's text; the table's header has been checked.
    pub(crate) fn text(&self, column: &str) -> &str {
        let place = self.columns.iter().position(|name| *name == column);
        place.and_then(|place| self.record.get(place)).unwrap_or_default()
    }

    /// A column's text, which must not be empty.
    pub(crate) fn filled(&self, column: &str) -> Result<String, ReferenceError> {
        match self.text(column) {
            "" => Err(self.wrong(format!("`{column}` is empty"))),
            text => Ok(text.to_owned()),
        }
    }

    /// A parsed column; an error names the column.
    pub(crate) fn read<T, E: Display>(
        &self,
        column: &str,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<T, ReferenceError> {
        read(self.text(column)).map_err(|error| self.wrong(format!("`{column}`: {error}")))
    }

    /// The study, which must be one of the five.
    pub(crate) fn source(&self) -> Result<String, ReferenceError> {
        let name = self.text("source");
        let study =
            crate::studies::study(name).map_err(|reason| self.wrong(format!("`source`: {reason}")))?;
        Ok(study.name.to_owned())
    }

    /// An error at this row.
    pub(crate) fn wrong(&self, what: impl Into<String>) -> ReferenceError {
        ReferenceError { file: self.file, line: self.line, what: what.into() }
    }
}

/// Reads every row of a file; its header must consist of these columns.
pub(crate) fn rows<T>(
    file: &'static str,
    text: &str,
    columns: &[&'static str],
    read: impl Fn(&CsvRow<'_>) -> Result<T, ReferenceError>,
) -> Result<Vec<T>, ReferenceError> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let error = |line, what: String| ReferenceError { file, line, what };
    let header = reader.headers().map_err(|reason| error(1, reason.to_string()))?;
    if header.iter().ne(columns.iter().copied()) {
        return Err(error(1, format!("the columns are not {}", columns.join(","))));
    }
    let mut found = Vec::new();
    for record in reader.records() {
        let record = record
            .map_err(|reason| error(reason.position().map_or(0, csv::Position::line), reason.to_string()))?;
        let line = record.position().map_or(0, csv::Position::line);
        found.push(read(&CsvRow { file, line, columns, record: &record })?);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_file_line_and_column() {
        let read = |text: &str| {
            rows("t.csv", text, &["source", "n"], |row| {
                row.source()?;
                row.read("n", str::parse::<u32>)
            })
        };
        assert_eq!(read("source,n\nkolahi2009lan,7\n").unwrap(), [7]);
        let error = |text| read(text).unwrap_err().to_string();
        assert_eq!(
            error("source,n\nkolahi2009lan,7\nkolahi2009lan,x\n"),
            "reference/t.csv:3: `n`: invalid digit found in string"
        );
        assert_eq!(
            error("source,n\nnobody,7\n"),
            "reference/t.csv:2: `source`: there is no published study `nobody`: expected one of soorty2013linux, sarkar2013winlin, ogunleye2016, kolahi2011wlan, kolahi2009lan"
        );
        assert_eq!(error("n,source\n"), "reference/t.csv:1: the columns are not source,n");
        assert!(error("source,n\nkolahi2009lan\n").starts_with("reference/t.csv:2: "));
    }
}
