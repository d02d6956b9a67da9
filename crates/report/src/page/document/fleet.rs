//! What `serve` shows of a fleet: its campaigns, and one of them.

use crate::page::document::{Fact, Outcome};
use crate::rendering::document::Block;
use serde::Serialize;

/// The campaigns of a fleet store.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct FleetListing {
    /// Where the store is, without a password.
    pub place: String,
    /// The newest first.
    pub campaigns: Vec<FleetRow>,
    /// How many more there are than are listed.
    pub unlisted: usize,
}

/// A campaign of a fleet store.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct FleetRow {
    /// Its name.
    pub name: String,
    /// Title of the study.
    pub title: String,
    /// `running`, `ended` or `stopped`.
    pub state: String,
    /// Number of its pairs.
    pub pairs: u32,
    /// How many blocks are in which state.
    pub progress: String,
    /// When it began.
    pub started: String,
}

/// A campaign of a fleet.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct FleetPage {
    /// The campaign, as in the list.
    pub campaign: FleetRow,
    /// Whether it may soon be another one.
    pub changes: bool,
    /// What holds over pairs.
    pub verdicts: FleetVerdicts,
    /// The listed part of the pairs, by number.
    pub pairs: Vec<FleetPairRow>,
    /// Which part it is: `1 to 100 of 400`.
    pub part: String,
    /// How many pairs come before the part before this one.
    pub before: Option<usize>,
    /// How many pairs come before the next part.
    pub after: Option<usize>,
    /// Pairs with a failure.
    pub failed: usize,
    /// The blocks that are being measured.
    pub measured: Vec<MeasuredBlock>,
    /// What is known about agents: how many measure, are alive and are lost; empty if nobody follows them.
    pub agents_summary: String,
    /// The agents of the campaign, lost ones first.
    pub agents: Vec<FleetAgent>,
    /// How many more agents there are.
    pub unlisted_agents: usize,
}

/// What holds over the pairs of a fleet, and the columns of the matrix.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct FleetVerdicts {
    /// The answer in one sentence or two.
    pub(crate) answer: String,
    pub(crate) facts: Vec<Fact>,
    /// The tables over pairs.
    pub(crate) blocks: Vec<Block>,
    /// What their words mean; empty without tables.
    pub(crate) terms: String,
    /// What the signs of the matrix mean.
    pub(crate) legend: String,
    /// The comparisons.
    pub(crate) columns: Vec<String>,
}

/// A pair of hosts: how far it is, and its verdicts.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct FleetPairRow {
    /// Its number.
    pub pair: u32,
    /// Sender and receiver.
    pub name: String,
    /// Blocks with a result.
    pub done: u32,
    /// All its blocks.
    pub blocks: u32,
    /// Its last failure, or why it is left out.
    pub failure: Option<String>,
    /// Its verdicts by column; none without a result.
    pub cells: Vec<FleetCell>,
}

/// A verdict of a pair.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct FleetCell {
    /// The answer in a few characters: `IPv4 9.8 %`, `=`, `?`.
    pub(crate) sign: String,
    pub(crate) outcome: Outcome,
    /// How large a difference is beside the margin, as in [`crate::page::document::ComparisonView`].
    pub(crate) strength: u8,
    /// The verdict in words, with the difference.
    pub(crate) words: String,
}

/// A block that is being measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct MeasuredBlock {
    /// The pair's number.
    pub pair: u32,
    /// Who measures.
    pub sender: String,
    /// With whom.
    pub receiver: String,
    /// The block, from 0.
    pub block: u32,
    /// The attempt, from 1.
    pub attempt: u32,
}

/// An agent of a campaign.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct FleetAgent {
    /// Its name.
    pub name: String,
    /// Its labels: `site=north`.
    pub labels: String,
    /// Whether it is lost.
    pub is_lost: bool,
    /// `measures`, `alive`, or for how long it has been lost.
    pub state: String,
}
