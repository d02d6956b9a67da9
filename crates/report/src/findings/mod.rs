//! A campaign's findings: the parts of the document, and CSV and JSON.

pub(crate) mod answer;
pub(crate) mod claims;
pub(crate) mod comparisons;
pub(crate) mod control;
pub(crate) mod counted_pairs;
pub(crate) mod csv;
pub(crate) mod empty;
pub(crate) mod estimates;
pub(crate) mod frame_loss;
pub(crate) mod groups;
pub(crate) mod heading;
pub(crate) mod instructions;
pub(crate) mod levels;
pub(crate) mod loss_by_load;
pub(crate) mod matrix;
pub(crate) mod notes;
pub(crate) mod program_instructions;
pub(crate) mod rfc8219;
pub(crate) mod so_far;
pub(crate) mod verdicts;
pub(crate) mod why;
