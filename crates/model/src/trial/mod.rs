//! One planned measurement, its specification, and its run.

pub(crate) mod check;
pub(crate) mod io;
pub(crate) mod run;
pub(crate) mod spec;
pub(crate) mod tuning;

use crate::factors::cell::Cell;
use crate::factors::family::Probe;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One cell measured by one probe in one block. Block and position identify it within a campaign.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Trial {
    /// Block, from 0. A block holds every cell and probe of the study once.
    pub block: u32,
    /// Position in the block's full shuffled order, from 0; unchanged if other trials of the block are omitted.
    pub position: u32,
    /// The cell to measure.
    pub cell: Cell,
    /// The probe's specification.
    pub probe: Probe,
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block {} {} {}", self.block + 1, self.probe, self.cell)
    }
}
