//! The language of study files: one table of keys, the check of a file against it, and its JSON Schema.

pub(crate) mod check;
pub(crate) mod key;
pub(crate) mod leaf;
pub(crate) mod reference;
pub(crate) mod schema;
pub(crate) mod sentences;
pub(crate) mod table;
mod wifi;
