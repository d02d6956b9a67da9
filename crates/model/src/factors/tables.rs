//! What a router has in its tables besides what the testbed needs.

use crate::Cell;
use serde::{Deserialize, Serialize};

/// The most routes of each family that a study can ask for: about those of the Internet in IPv4.
pub const MAX_ROUTES: u32 = 1_000_000;

/// Further entries of the near router's tables, for each family. No packet of a study uses one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Tables {
    /// Routes.
    pub routes: u32,
}

impl Tables {
    pub fn of(cell: &Cell) -> Self {
        Tables { routes: cell.settings.routes.unwrap_or_default() }
    }
}
