//! Answers as JSON.

use serde::Serialize;

/// An answer's text.
pub fn to_json(what: &impl Serialize) -> String {
    serde_json::to_string(what).expect("names and finite numbers become JSON")
}
