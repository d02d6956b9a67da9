//! The text of a file: unpacked, decoded, and without what stands before each line.

use super::{foreign, prefix, terminal};
use crate::value::{At, ImportError, MAX_BYTES};
use stacklab_model::{NotText, read_text};
use std::io::Read;

/// The first bytes of what gzip compressed.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// Marks of byte order: where files were joined, within a text.
const MARK: char = '\u{feff}';

/// A file's text, the same whether the file is compressed, in UTF-16, or has times before each line.
#[derive(Debug, Clone, PartialEq)]
pub struct PlainText {
    text: String,
    prefix: Option<String>,
}

impl PlainText {
    /// Unpacks a file.
    /// Fails if it is not text, damaged, or longer than 64 MiB.
    pub fn unpack(file: &[u8]) -> Result<Self, ImportError> {
        if file.len() > MAX_BYTES {
            return Err(ImportError::of_file(format!("it is longer than {} MiB", MAX_BYTES >> 20)));
        }
        let content = inflate(file)?;
        let bytes = content.as_deref().unwrap_or(file);
        if let Some(kind) = foreign::binary(bytes) {
            return Err(ImportError::of_file(kind));
        }
        let decoded = read_text(bytes).map_err(|NotText { at, is_wide }| {
            let encoding = if is_wide { "UTF-16" } else { "UTF-8, or UTF-16 with a byte order mark" };
            ImportError::new(At::Byte(at), format!("this is not text ({encoding})"))
        })?;
        let mut text = decoded.into_owned();
        if text.contains(MARK) {
            text = text.replace(MARK, "");
        }
        if let Some(bare) = terminal::take_off(&text) {
            text = bare;
        }
        let mut stood_before = None;
        if let Some(bare) = prefix::take_off(&text) {
            if let Some([one, other]) = bare.mixed {
                return Err(ImportError::of_file(format!(
                    "lines of two programs are mixed, `{one}` and `{other}`: write those of each to a file (grep)"
                )));
            }
            text = bare.text;
            stood_before = Some(bare.prefix);
        }
        if text.trim().is_empty() {
            return Err(ImportError::of_file("it is empty"));
        }
        Ok(PlainText { text, prefix: stood_before })
    }

    /// The text. Ends of its lines are those of the file.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What stood before the first line, and before others in its form; `None` if nothing did.
    pub(super) fn prefix(&self) -> Option<&str> {
        self.prefix.as_deref()
    }
}

/// The content of a file that gzip compressed; `None` of another one.
fn inflate(file: &[u8]) -> Result<Option<Vec<u8>>, ImportError> {
    if !file.starts_with(&GZIP) {
        return Ok(None);
    }
    let mut content = Vec::new();
    let mut reader = flate2::read::MultiGzDecoder::new(file).take(MAX_BYTES as u64 + 1);
    let read = reader.read_to_end(&mut content);
    if content.len() > MAX_BYTES {
        return Err(ImportError::of_file(format!("its content is longer than {} MiB", MAX_BYTES >> 20)));
    }
    read.map_err(|error| {
        let reason = format!("gzip cannot be read on ({error}): the file is damaged or cut short");
        ImportError::new(At::Inflated(content.len()), reason)
    })?;
    if content.starts_with(&GZIP) {
        return Err(ImportError::of_file("it is compressed by gzip twice: unpack it once first"));
    }
    Ok(Some(content))
}
