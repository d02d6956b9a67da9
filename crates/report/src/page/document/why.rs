//! Why arms differ: costs by stage, and call chains.

use serde::Serialize;

/// Why two cells differ, or why that is not known.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct WhyView {
    /// What both cells have in common.
    pub label: String,
    /// The levels that differ: baseline, candidate.
    pub arms: [String; 2],
    /// The answer, or the reason why there is none.
    pub sentence: String,
    /// What speaks against the figures, and what is left out.
    pub remarks: Vec<String>,
    /// What says whether the samples describe the stack; empty without costs.
    pub health: String,
    /// From the baseline's cost to the candidate's, stage by stage; empty without costs.
    pub waterfall: Vec<WaterfallRow>,
    /// The call chains of both arms.
    pub flame: Option<FlameView>,
}

/// A step from one arm's cost to the other's, nanoseconds a message.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct WaterfallRow {
    /// The stage, or the arm.
    pub name: String,
    /// Whether it is the whole cost of an arm.
    pub is_whole: bool,
    /// The cost before this step; of a whole, 0.
    pub from: f64,
    /// The cost after it.
    pub to: f64,
    /// Half of the step's 95 % interval; of a whole, 0.
    pub half: f64,
    /// Whether the arms differ here, with all stages taken into account.
    pub differs: bool,
    /// The figure as printed.
    pub shown: String,
}

/// Call chains as a tree of functions, by column: each function stands before those that it calls.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct FlameView {
    /// Names of functions.
    pub names: Vec<String>,
    /// Each function's name.
    pub name: Vec<usize>,
    /// How many functions called it, one another.
    pub depth: Vec<usize>,
    /// Nanoseconds a message in the baseline, with all that it calls.
    pub baseline: Vec<f64>,
    /// The same in the candidate.
    pub candidate: Vec<f64>,
    /// How large the difference is among all: -3 to 3, positive where the candidate has more.
    pub tone: Vec<i8>,
}
