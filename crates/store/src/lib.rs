//! The record: one SQLite file per campaign, append only. Each run is committed when it ends.
//!
//! Killing the program at any moment loses at most the current run. The tables are plain and documented in
//! `docs/record.md`; other programs may read them. A file that is not a record, is damaged, or was written by a newer
//! stacklab is refused with an error message.

mod campaign;
mod earlier;
mod error;
mod explanations;
mod files;
pub mod fuzzing;
mod limits;
mod open;
mod packed;
mod programs;
mod replace;
mod runs;
mod series;
mod shared;

pub use campaign::{Campaign, HostRow, Imported, Origin};
pub use error::StoreError;
pub use files::{check_files, lock_alone};
pub use limits::{distrust, find_other_objects};
pub use open::{FIRST_FORMAT, FORMAT, Record};
pub use replace::{replace, replace_with};
