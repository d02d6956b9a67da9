//! Content as JSON.

use serde::Serialize;

#[derive(Serialize)]
struct Versioned<'a, T> {
    format: u32,
    #[serde(flatten)]
    content: &'a T,
}

/// The fields of the content after the version of their meaning, `format`: pretty-printed, unrounded, one newline at
/// the end. The content is a struct of names and finite numbers.
///
/// # Panics
/// For other content: a map without text for keys, or a value that is not a struct.
pub fn versioned_json(format: u32, content: &impl Serialize) -> String {
    let versioned = Versioned { format, content };
    serde_json::to_string_pretty(&versioned).expect("names and finite numbers become JSON") + "\n"
}
