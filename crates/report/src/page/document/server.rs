//! The testbed, why arms differ, and what `serve` gives besides a campaign: the list of records, two records side by
//! side, changes.

use crate::page::document::Fact;
use crate::rendering::document::Block;
use serde::Serialize;

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct TestbedView {
    pub sentence: String,
    pub rows: Vec<DrawingView>,
    pub hosts: Vec<HostView>,
}

/// Hosts side by side, in the order of the traffic.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct DrawingView {
    pub hosts: Vec<DrawnHost>,
    pub links: Vec<LinkView>,
}

/// A host's place in a row.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct DrawnHost {
    pub name: String,
    /// Its system in a few words; empty if no host of that name reported it.
    pub system: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct LinkView {
    pub mechanisms: Vec<String>,
    pub facts: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct HostView {
    pub name: String,
    pub kind: String,
    pub system: String,
    pub facts: Vec<Fact>,
    pub abilities: Vec<Fact>,
}

/// Why two cells differ, or why that is not known.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct WhyView {
    pub label: String,
    pub arms: [String; 2],
    /// The answer, or the reason why there is none.
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

/// The records of a folder.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Listing {
    /// The folder as it was named.
    pub folder: String,
    /// Its records, the last changed first.
    pub campaigns: Vec<CampaignRow>,
    /// How many more there are than are listed.
    pub unlisted: usize,
}

/// A record of a folder.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CampaignRow {
    /// The file's name.
    pub name: String,
    /// Title of the study; of a file that cannot be read, empty.
    pub title: String,
    /// When it began.
    pub started: String,
    /// Runs in it.
    pub runs: usize,
    /// Whether a campaign is writing it now.
    pub running: bool,
    /// Seconds since it last changed.
    pub changed_s: f64,
    /// Why it cannot be read.
    pub error: Option<String>,
}

/// What a record says, in a line.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Headline {
    /// The answer; empty where nothing is compared.
    pub(crate) text: String,
    pub(crate) finished: bool,
}

/// Two records side by side.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Compared {
    pub(crate) headline: String,
    /// The parts of the report, in order.
    pub(crate) blocks: Vec<Block>,
}

/// A record has changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Changed {
    /// Runs in it; of a folder, records.
    pub count: usize,
    /// Whether a campaign is writing it now, or any record of the folder.
    pub running: bool,
}

/// Why a request was not answered.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Refused {
    /// The reason.
    pub error: String,
}
