//! Result files of other tools. What a file does not tell is missing.

mod assemble;
mod formats;
mod json;
mod same;
mod test;
#[cfg(test)]
mod tests;
mod value;

pub use assemble::{EmptyMetrics, ImportedRun, leave_out_empty, runs};
pub use formats::{PlainText, read, read_plain, read_rows, starts_rows};
pub use same::leave_out_repeats;
pub use test::{Content, Format, ToolFile, ToolTest, Untold};
pub use value::{At, ImportError, MAX_BYTES};
