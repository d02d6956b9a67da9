//! The formats of a report.

use stacklab_model::UnknownName;
use std::fmt;
use std::str::FromStr;

/// The format of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Plain text for a terminal.
    Text,
    /// Markdown with pipe tables.
    Markdown,
    /// One row per comparison, and per cell that is in none (`docs/columns.md`).
    Csv,
    /// The same with texts as they are, for programs: spreadsheets may take some for formulas.
    RawCsv,
    /// All findings, unrounded ([`crate::FORMAT_VERSION`]).
    Json,
}

impl Format {
    /// Every format.
    pub const ALL: &'static [Format] =
        &[Format::Text, Format::Markdown, Format::Csv, Format::RawCsv, Format::Json];
    /// Every name, in the same order.
    pub const NAMES: &'static [&'static str] = &["text", "markdown", "csv", "raw-csv", "json"];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Text => "text",
            Format::Markdown => "markdown",
            Format::Csv => "csv",
            Format::RawCsv => "raw-csv",
            Format::Json => "json",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        let found = Format::ALL.iter().copied().find(|format| format.name() == text);
        found.ok_or_else(|| UnknownName { found: text.to_owned(), set: "format", valid: Format::NAMES })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back() {
        for (format, name) in Format::ALL.iter().zip(Format::NAMES) {
            assert_eq!((format.name(), name.parse().as_ref()), (*name, Ok(format)));
        }
        let error = "jsn".parse::<Format>().unwrap_err().to_string();
        assert!(error.contains("did you mean `json`?"), "{error}");
    }
}
