//! Figures for monitoring systems.

mod prometheus;

pub use prometheus::{CONTENT_TYPE, exposition};

/// Figures of one name and meaning, each with its labels.
#[derive(Debug, Clone, PartialEq)]
pub struct Gauge {
    /// Its name: letters, digits and underscores.
    pub name: &'static str,
    /// What it is, in one sentence.
    pub help: &'static str,
    /// Labels and value. No two have the same labels.
    pub samples: Vec<(Vec<(&'static str, String)>, f64)>,
}
