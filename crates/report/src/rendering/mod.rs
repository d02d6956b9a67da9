//! Documents of headings, prose and tables, and their formats.

pub mod columns;
pub mod csv_cells;
pub mod csv_tables;
pub mod document;
pub mod format;
pub mod json;
pub mod latex;
pub mod markdown;
pub mod numbers;
pub mod text;
