//! A campaign's findings: the parts of the document, and CSV and JSON.

pub mod answer;
pub mod bias;
pub mod columns;
pub mod comparisons;
pub mod csv;
pub mod estimates;
pub mod groups;
pub mod heading;
pub mod json;
pub mod matrix;
pub mod notes;
pub mod summary;
pub mod why;
