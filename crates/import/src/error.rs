//! Why a file cannot be read, and where.

use crate::value::MOST_TESTS;
use stacklab_model::printable_text;
use std::fmt;

/// A place in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// The whole file.
    File,
    /// This line, from 1.
    Line(usize),
    /// This line and column, from 1.
    Column(usize, usize),
    /// This byte, from 0.
    Byte(usize),
    /// This byte of the content that was compressed.
    Inflated(usize),
}

/// Why a file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{at}{reason}")]
pub struct ImportError {
    /// Where.
    pub at: At,
    /// Why, without control characters.
    pub reason: String,
}

impl ImportError {
    /// At a place. Reasons quote the file, which is anybody's.
    pub(super) fn new(at: At, reason: impl AsRef<str>) -> Self {
        ImportError { at, reason: printable_text(reason.as_ref()) }
    }

    pub(super) fn of_file(reason: impl AsRef<str>) -> Self {
        ImportError::new(At::File, reason)
    }

    /// If a file has more tests than are read.
    pub(super) fn too_many(count: usize, line: usize) -> Result<(), Self> {
        if count < MOST_TESTS { Ok(()) } else { Err(ImportError::of_line(line, "there are too many tests")) }
    }

    /// In a line, counted from 0.
    pub(super) fn of_line(line: usize, reason: impl AsRef<str>) -> Self {
        ImportError::new(At::Line(line + 1), reason)
    }
}

/// Ends with a colon if there is anything.
impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            At::File => Ok(()),
            At::Line(line) => write!(f, "line {line}: "),
            At::Column(line, column) => write!(f, "line {line}, column {column}: "),
            At::Byte(byte) => write!(f, "byte {byte}: "),
            At::Inflated(byte) => write!(f, "byte {byte} of the content: "),
        }
    }
}
