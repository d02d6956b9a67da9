//! Why arms differ, and what `serve` gives besides a campaign: the list of records, two records side by side, changes,
//! and fleets.
#![expect(missing_docs, reason = "their names say what fields hold")]

use crate::page::document::{Fact, Outcome};
use crate::rendering::document::Block;
use serde::Serialize;

/// Why two cells differ, or why that is not known.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct WhyView {
    pub label: String,
    pub arms: [String; 2],
    pub sentence: String,
    pub remarks: Vec<String>,
    /// What says whether the samples describe the stack; empty without costs.
    pub health: String,
    /// From the baseline's cost to the candidate's, stage by stage; empty without costs.
    pub waterfall: Vec<WaterfallRow>,
    pub flame: Option<FlameView>,
    /// The unit of costs: `ns` or `instructions`.
    pub unit: String,
}

/// A step from one arm's cost per message to the other's.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct WaterfallRow {
    pub name: String,
    pub is_whole: bool,
    /// The cost before this step; of a whole, 0.
    pub from: f64,
    pub to: f64,
    /// Half of the step's 95 % interval; of a whole, 0.
    pub half: f64,
    pub differs: bool,
    pub shown: String,
}

/// Call chains as a tree of functions, by column: each function stands before those that it calls.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct FlameView {
    pub names: Vec<String>,
    pub name: Vec<usize>,
    pub depth: Vec<usize>,
    /// The cost per message in the baseline, with everything that it calls.
    pub baseline: Vec<f64>,
    pub candidate: Vec<f64>,
    /// How large the difference is among all: -3 to 3, positive where the candidate has more.
    pub tone: Vec<i8>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Listing {
    pub folder: String,
    pub campaigns: Vec<CampaignRow>,
    pub unlisted: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CampaignRow {
    pub name: String,
    /// Title of the study; of a file that cannot be read, empty.
    pub title: String,
    pub started: String,
    pub runs: usize,
    pub running: bool,
    /// Seconds since it last changed.
    pub changed_s: f64,
    pub error: Option<String>,
}

/// What a record says, in a line.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Headline {
    pub(crate) text: String,
    pub(crate) finished: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Compared {
    pub(crate) headline: String,
    pub(crate) blocks: Vec<Block>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Changed {
    /// Runs in it; of a folder, records.
    pub count: usize,
    /// Whether a campaign is writing it now, or any record of the folder.
    pub running: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Refused {
    pub error: String,
}

/// The campaigns of a fleet store.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct FleetListing {
    /// Where the store is, without a password.
    pub place: String,
    pub campaigns: Vec<FleetRow>,
    pub unlisted: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct FleetRow {
    pub name: String,
    pub title: String,
    /// `running`, `ended` or `stopped`.
    pub state: String,
    pub pairs: u32,
    pub progress: String,
    pub started: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct FleetPage {
    pub campaign: FleetRow,
    /// Whether it may soon be another one.
    pub changes: bool,
    pub verdicts: FleetVerdicts,
    pub pairs: Vec<FleetPairRow>,
    /// Which part it is: `1 to 100 of 400`.
    pub part: String,
    pub before: Option<usize>,
    /// How many pairs come before the next part.
    pub after: Option<usize>,
    pub failed: usize,
    pub measured: Vec<MeasuredBlock>,
    /// What is known about agents: how many measure, are alive and are lost; empty if nobody follows them.
    pub agents_summary: String,
    pub agents: Vec<FleetAgent>,
    pub unlisted_agents: usize,
}

/// What holds over the pairs of a fleet, and the columns of the matrix.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct FleetVerdicts {
    pub(crate) answer: String,
    pub(crate) facts: Vec<Fact>,
    pub(crate) blocks: Vec<Block>,
    /// What their words mean; empty without tables.
    pub(crate) terms: String,
    pub(crate) legend: String,
    pub(crate) columns: Vec<String>,
}

/// A pair of hosts: how far it is, and its verdicts.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct FleetPairRow {
    pub pair: u32,
    pub name: String,
    pub done: u32,
    pub blocks: u32,
    pub failure: Option<String>,
    /// Its verdicts by column; none without a result.
    pub cells: Vec<FleetCell>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct FleetCell {
    pub(crate) sign: String,
    pub(crate) outcome: Outcome,
    /// How large a difference is beside the margin, as in `ComparisonView`.
    pub(crate) strength: u8,
    pub(crate) words: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct MeasuredBlock {
    pub pair: u32,
    pub sender: String,
    pub receiver: String,
    pub block: u32,
    pub attempt: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct FleetAgent {
    pub name: String,
    /// Its labels: `site=north`.
    pub labels: String,
    pub is_lost: bool,
    /// `measures`, `alive`, or for how long it has been lost.
    pub state: String,
}
