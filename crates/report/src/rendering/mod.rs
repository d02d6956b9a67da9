//! Documents of headings, prose and tables, and their formats.

pub(crate) mod columns;
pub(crate) mod csv_cells;
pub(crate) mod csv_tables;
pub(crate) mod document;
pub(crate) mod format;
pub(crate) mod json;
pub(crate) mod latex;
pub(crate) mod markdown;
pub(crate) mod numbers;
pub(crate) mod text;
pub(crate) mod width;
