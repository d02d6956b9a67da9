//! Facts and rounded figures of the document.

use crate::page::document::Fact;

/// Names and texts as facts.
pub(super) fn facts<N: Into<String>>(facts: impl IntoIterator<Item = (N, String)>) -> Vec<Fact> {
    facts.into_iter().map(|(name, text)| Fact { name: name.into(), text }).collect()
}

/// A figure with this many significant digits; `None` if it is not finite.
pub(super) fn rounded(figure: f64, digits: i32) -> Option<f64> {
    if figure == 0.0 {
        return Some(0.0);
    }
    if !figure.is_finite() {
        return None;
    }
    format!("{figure:.*e}", (digits - 1) as usize).parse().ok()
}
