//! The language of study files: one table of keys, the check of a file against it, and its JSON Schema.

pub mod check;
pub mod leaf;
pub mod schema;
mod sentences;
pub mod table;
mod wifi;
