//! Rows of a CSV table, with their line numbers.

use serde::de::DeserializeOwned;

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

/// Reads every row of a file, and checks it. Only `optional` columns may be empty; `source` is a study.
pub(crate) fn rows<T: DeserializeOwned>(
    file: &'static str,
    text: &str,
    optional: &[&str],
    check: impl Fn(&T) -> Result<(), String>,
) -> Result<Vec<T>, ReferenceError> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let wrong = |error: csv::Error| ReferenceError {
        file,
        line: error.position().map_or(1, csv::Position::line),
        what: match error.kind() {
            csv::ErrorKind::Deserialize { err, .. } => err.to_string(),
            _ => error.to_string(),
        },
    };
    let header = reader.headers().map_err(wrong)?.clone();
    let mut found = Vec::new();
    for record in reader.records() {
        let record = record.map_err(wrong)?;
        let filled = header.iter().zip(&record).try_for_each(|(column, text)| match (column, text) {
            ("source", name) => crate::study(name).map(drop),
            (column, "") if !optional.contains(&column) => Err(format!("`{column}` is empty")),
            _ => Ok(()),
        });
        let row: T = record.deserialize(Some(&header)).map_err(wrong)?;
        let line = record.position().map_or(0, csv::Position::line);
        filled.and_then(|()| check(&row)).map_err(|what| ReferenceError { file, line, what })?;
        found.push(row);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    struct Row {
        #[serde(rename = "source")]
        _source: String,
        n: u32,
    }

    #[test]
    fn an_error_says_file_line_and_reason() {
        let check = |row: &Row| if row.n > 9 { Err("`n` is above 9".to_owned()) } else { Ok(()) };
        let read = |text: &str| rows("t.csv", text, &[], check);
        assert_eq!(read("source,n\nkolahi2009lan,7\n").unwrap()[0].n, 7);
        for (rows, reason) in [
            ("n\nkolahi2009lan,7\nkolahi2009lan,x", "3: field 1: invalid digit found in string"),
            ("n\nkolahi2009lan,10", "2: `n` is above 9"),
            ("m\nkolahi2009lan,7", "2: missing field `n`"),
        ] {
            let error = read(&format!("source,{rows}\n")).unwrap_err().to_string();
            assert_eq!(error, format!("reference/t.csv:{reason}"));
        }
        let unknown = read("source,n\nnobody,7\n").unwrap_err().to_string();
        assert!(
            unknown.starts_with("reference/t.csv:2: there is no published study `nobody`: "),
            "{unknown}"
        );
        let short = read("source,n\nkolahi2009lan\n").unwrap_err().to_string();
        assert!(short.starts_with("reference/t.csv:2: "), "{short}");
    }
}
