//! The formats of every output.

use serde::Serialize;
use stacklab_model::UnknownName;

/// A format of output; each output has some of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputFormat {
    /// Plain text for a terminal.
    Text,
    /// Markdown with pipe tables.
    Markdown,
    /// RFC 4180, safe for spreadsheets (`docs/columns.md`).
    Csv,
    /// RFC 4180 with texts as they are: spreadsheets may take some for formulas.
    RawCsv,
    /// Everything, unrounded.
    Json,
    /// One self-contained page.
    Html,
    /// Tables with `booktabs` rules.
    Latex,
    /// A figure with text, scalable by any program.
    Svg,
    /// A figure for LaTeX.
    Pdf,
    /// Apache Parquet with Snappy compression.
    Parquet,
}

impl OutputFormat {
    /// The formats of documents: reports, comparisons of records, explanations.
    pub const DOCUMENTS: [Self; 5] = [Self::Text, Self::Markdown, Self::Csv, Self::RawCsv, Self::Json];
    const ALL: [(Self, &'static str); 10] = [
        (Self::Text, "text"),
        (Self::Markdown, "markdown"),
        (Self::Csv, "csv"),
        (Self::RawCsv, "raw-csv"),
        (Self::Json, "json"),
        (Self::Html, "html"),
        (Self::Latex, "latex"),
        (Self::Svg, "svg"),
        (Self::Pdf, "pdf"),
        (Self::Parquet, "parquet"),
    ];

    /// The format of this name, if it is one of `valid`.
    pub fn among(name: &str, valid: &'static [&'static str]) -> Result<Self, UnknownName> {
        let found = Self::ALL.into_iter().find(|(_, known)| *known == name && valid.contains(known));
        match found {
            Some((format, _)) => Ok(format),
            None => Err(UnknownName { found: name.to_owned(), set: "format", valid }),
        }
    }

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// The fields of the content after the version of their meaning, `format`, pretty-printed and unrounded.
///
/// # Panics
/// For a map without text for keys, or a value that is not a struct.
pub fn versioned_json(format: u32, content: &impl Serialize) -> String {
    #[derive(Serialize)]
    struct Versioned<'a, T> {
        format: u32,
        #[serde(flatten)]
        content: &'a T,
    }
    let versioned = Versioned { format, content };
    serde_json::to_string_pretty(&versioned).expect("names and finite numbers become JSON") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &[&str] =
        &["text", "markdown", "csv", "raw-csv", "json", "html", "latex", "svg", "pdf", "parquet"];

    #[test]
    fn reads_every_name_back() {
        for (format, name) in OutputFormat::ALL {
            assert_eq!((format.name(), OutputFormat::among(name, ALL)), (name, Ok(format)));
        }
        let error = OutputFormat::among("jsn", &["text", "json"]).unwrap_err().to_string();
        assert!(error.contains("did you mean `json`?"), "{error}");
        assert!(OutputFormat::among("pdf", &["text", "json"]).is_err());
    }
}
