//! A figure of a run, or the reason why it is absent.

use serde::{Deserialize, Serialize};

/// A figure in its metric's unit, or the reason for its absence; never NaN, never a silent zero.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Value {
    /// The figure, finite.
    Measured(f64),
    /// The figure cannot be measured here; the text gives the reason.
    Missing(String),
    /// The figure was measured but must not be used; the text gives the reason.
    Invalid(String),
}

impl Value {
    /// A measured figure, or `Missing` with the reason if the arithmetic gave none (an empty window, 0/0).
    pub fn finite(figure: f64, otherwise: &str) -> Self {
        if figure.is_finite() { Value::Measured(figure) } else { Value::Missing(otherwise.to_owned()) }
    }

    /// The figure, if there is one.
    pub fn measured(&self) -> Option<f64> {
        match self {
            Value::Measured(figure) => Some(*figure),
            Value::Missing(_) | Value::Invalid(_) => None,
        }
    }
}
