//! Documents of headings, prose and tables, and their formats.

pub(crate) mod column;
pub(crate) mod csv;
pub(crate) mod distance;
pub(crate) mod document;
pub(crate) mod format;
mod grid;
pub(crate) mod html;
pub(crate) mod latex;
mod markdown;
pub(crate) mod numbers;
pub(crate) mod text;
