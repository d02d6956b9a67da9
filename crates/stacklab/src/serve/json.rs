//! JSON answers.

use serde::Serialize;

/// A value as JSON text.
pub(super) fn to_json(what: &impl Serialize) -> String {
    serde_json::to_string(what).expect("names and finite numbers become JSON")
}
