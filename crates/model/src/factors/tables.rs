//! The tables of a router: what they have besides what the testbed needs, and whether known connections pass by one.

use crate::names::{json_is_text, named};
use crate::{Cell, Factor, Family, Metric};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

/// The most routes of each family that a study can ask for: about those of the Internet in IPv4.
pub const MAX_ROUTES: u32 = 1_000_000;
/// The most tracked connections of each family that a study can ask for.
pub const MAX_CONNECTIONS: u32 = 1_000_000;

/// The most neighbours of each family that a study can ask for.
pub const MAX_NEIGHBOURS: u32 = 100_000;

/// The near router's tables, and what is looked up in them. Their further entries are for each family. No packet of a
/// study uses one, but for the routes of several destinations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Tables {
    /// Routes.
    pub routes: u32,
    /// The addresses to which the datagrams of a stream go. With one, that is the receiver's own.
    pub destinations: u32,
    /// Neighbours of the far router, on the link to its client.
    pub neighbours: u32,
    /// Connection tracking, with its further connections.
    pub tracking: Tracking,
    /// A table of the connections that it forwards.
    pub offload: FlowOffload,
}

impl Default for Tables {
    fn default() -> Self {
        let tracking = Tracking::default();
        Tables { routes: 0, destinations: 1, neighbours: 0, tracking, offload: FlowOffload::default() }
    }
}

/// The addresses to which a cell's datagrams go.
pub fn count_destinations(cell: &Cell) -> u32 {
    cell.settings.destinations.unwrap_or(1)
}

impl Tables {
    pub fn of(cell: &Cell) -> Self {
        Tables {
            routes: cell.settings.routes.unwrap_or_default(),
            destinations: count_destinations(cell),
            neighbours: cell.settings.neighbours.unwrap_or_default(),
            tracking: cell.settings.conntrack.unwrap_or_default(),
            offload: cell.settings.flow_offload.unwrap_or_default(),
        }
    }
}

named! {
    /// A table of a router that has further entries.
    pub enum Table("table") {
        Routes = "routes",
        Connections = "connections",
        Rules = "rules",
        Neighbours = "neighbours",
    }
}

impl Table {
    /// The table whose entries a factor is the number of.
    pub fn of(factor: Factor) -> Option<Self> {
        match factor {
            Factor::Routes => Some(Table::Routes),
            Factor::Neighbours => Some(Table::Neighbours),
            Factor::Conntrack => Some(Table::Connections),
            Factor::Rules => Some(Table::Rules),
            _ => None,
        }
    }

    /// The metric of the memory that an entry takes.
    pub fn metric(self) -> Metric {
        match self {
            Table::Routes => Metric::MemoryPerRoute,
            Table::Connections => Metric::MemoryPerConnection,
            Table::Rules => Metric::MemoryPerRule,
            Table::Neighbours => Metric::MemoryPerNeighbour,
        }
    }

    /// The further entries of each family that a cell has in it.
    pub(crate) fn count_entries(self, cell: &Cell) -> u32 {
        let Tables { routes, tracking, neighbours, .. } = Tables::of(cell);
        match self {
            Table::Routes => routes,
            Table::Connections => tracking.connections(),
            Table::Rules => cell.settings.rules.unwrap_or_default(),
            Table::Neighbours => neighbours,
        }
    }
}

/// What an entry of a table takes of the kernel's memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EntryMemory {
    pub table: Table,
    pub family: Family,
    /// Bytes, or why they are not known.
    pub bytes: Result<f64, &'static str>,
}

/// Whether a router tracks the connections of what it forwards. A level is `off` or a number: `0` is not `off`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Tracking {
    /// Only where a mechanism needs it.
    #[default]
    Off,
    /// It does, and has that many further connections of each family.
    On(u32),
}

impl Tracking {
    /// The level without tracking.
    pub const OFF: &str = "off";

    /// The further connections of each family.
    pub fn connections(self) -> u32 {
        match self {
            Tracking::Off => 0,
            Tracking::On(connections) => connections,
        }
    }
}

impl fmt::Display for Tracking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tracking::Off => f.write_str(Tracking::OFF),
            Tracking::On(connections) => write!(f, "{connections}"),
        }
    }
}

json_is_text!(Tracking);

impl FromStr for Tracking {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        match text {
            Tracking::OFF => Ok(Tracking::Off),
            number => number.parse().map(Tracking::On),
        }
    }
}

named! {
    /// Whether a router forwards the packets of known connections by a flowtable, past its rules and its routes.
    #[derive(Default)]
    pub enum FlowOffload("flow offload") {
        #[default]
        Off = "off",
        /// Its software does; no device takes part.
        On = "on",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracking_without_connections_is_not_off() {
        for (text, tracking) in
            [("off", Tracking::Off), ("0", Tracking::On(0)), ("20000", Tracking::On(20_000))]
        {
            assert_eq!(text.parse(), Ok(tracking));
            assert_eq!(tracking.to_string(), text);
        }
        assert!("on".parse::<Tracking>().is_err());
    }
}
