//! What `serve` gives besides a campaign: the list of records, two records side by side, changes.

use crate::page::document::facts::Fact;
use serde::Serialize;

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
    pub text: String,
    /// Whether every comparison was measured until the stopping rule was content.
    pub finished: bool,
}

/// Two records side by side.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Compared {
    /// How many figures of B are better, worse, and alike.
    pub headline: String,
    /// The parts of the report, in order.
    pub blocks: Vec<BlockView>,
}

/// A part of a report.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum BlockView {
    /// The title.
    Title {
        /// Its text.
        text: String,
    },
    /// A heading.
    Heading {
        /// Its text.
        text: String,
    },
    /// A paragraph.
    Prose {
        /// Its text.
        text: String,
    },
    /// Named facts.
    Facts {
        /// The facts.
        facts: Vec<Fact>,
    },
    /// A list.
    List {
        /// Its points.
        points: Vec<String>,
    },
    /// A table.
    Table {
        /// Titles of its columns.
        columns: Vec<String>,
        /// Whether each column is of figures.
        figures: Vec<bool>,
        /// Its cells.
        rows: Vec<Vec<String>>,
        /// Its footnotes, from 1.
        notes: Vec<String>,
    },
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
