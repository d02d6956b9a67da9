//! Result files of other tools. What a file does not tell is missing.

mod assemble;
mod error;
mod file;
mod formats;
mod json;
mod read;
mod series;
mod test;
#[cfg(test)]
mod tests;
mod value;

pub use assemble::{ImportedRun, runs};
pub use error::{At, ImportError};
pub use file::{Content, Format, ToolFile};
pub use read::read;
pub use test::{ToolTest, Untold};
pub use value::MOST_BYTES;
