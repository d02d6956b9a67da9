//! Comparisons and searches as bytes.

mod protocols;
mod tables;

use crate::bisect::Bisection;
use crate::comparison::Comparison;
use stacklab_report::{Width, document_text, versioned_json};
use std::fmt;
use std::str::FromStr;

/// Version of the JSON's shape.
const FORMAT_VERSION: u32 = 1;

/// A format of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegressFormat {
    /// For a terminal.
    Text,
    /// For a mail or a pull request.
    Markdown,
    /// Everything, unrounded.
    Json,
    /// The kernel's Test Anything Protocol, version 1.
    Ktap,
    /// For continuous integration.
    Junit,
}

const NAMES: [(&str, RegressFormat); 5] = [
    ("text", RegressFormat::Text),
    ("markdown", RegressFormat::Markdown),
    ("json", RegressFormat::Json),
    ("ktap", RegressFormat::Ktap),
    ("junit", RegressFormat::Junit),
];

impl FromStr for RegressFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = NAMES.iter().find(|(name, _)| *name == text);
        found
            .map(|(_, format)| *format)
            .ok_or_else(|| format!("unknown format `{text}`: use {}", NAMES.map(|(name, _)| name).join(", ")))
    }
}

impl fmt::Display for RegressFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAMES[*self as usize].0)
    }
}

/// Renders a comparison.
pub fn comparison(comparison: &Comparison, format: RegressFormat, width: Width) -> String {
    match format {
        RegressFormat::Json => versioned_json(FORMAT_VERSION, comparison),
        RegressFormat::Ktap => protocols::ktap(comparison),
        RegressFormat::Junit => protocols::junit(comparison),
        RegressFormat::Text | RegressFormat::Markdown => {
            document_text(&tables::comparison(comparison), format == RegressFormat::Markdown, width)
        }
    }
}

/// Renders a search, as text, Markdown or JSON.
pub fn bisection(bisection: &Bisection, format: RegressFormat, width: Width) -> String {
    match format {
        RegressFormat::Json => versioned_json(FORMAT_VERSION, bisection),
        _ => document_text(&tables::bisection(bisection), format == RegressFormat::Markdown, width),
    }
}
