//! A program that drove traffic, and what it said.

use crate::{IntervalRow, Role};
use serde::{Deserialize, Serialize};

/// A program of others at one end of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolReport {
    /// The program and its version, as it tells them.
    pub version: String,
    /// Its command line.
    pub command: String,
    /// What it printed, at most [`ToolReport::MOST_OUTPUT_BYTES`], without control characters.
    pub output: String,
}

/// The intervals of a test of another program, as one end reported them.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSeries {
    /// The end that counted.
    pub role: Role,
    /// The intervals. Those without a number of messages have 0.
    pub rows: Vec<IntervalRow>,
}

impl ToolReport {
    /// Most bytes of a program's output that a record keeps.
    pub const MOST_OUTPUT_BYTES: usize = 64 << 10;
}
