//! A fact with its name.

use serde::Serialize;

/// A name and what is so called.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Fact {
    /// The name.
    pub name: String,
    /// The text.
    pub text: String,
}
