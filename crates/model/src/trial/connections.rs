//! Connections of which a search makes many: each of its messages belongs to another one.

use crate::Metric;
use crate::names::named;
use serde::{Deserialize, Serialize};

/// The figures of a search that need a table of connections on a router.
pub const CONNECTION_METRICS: [Metric; 3] =
    [Metric::ConnectionRate, Metric::EstablishedRate, Metric::TeardownRate];

named! {
    /// What a router's table has of the connections of a slice's messages.
    #[derive(Default)]
    pub enum ConnectionState("state") {
        /// Nothing: each message makes an entry.
        #[default]
        New = "new",
        /// An entry each: no message makes one.
        Established = "established",
    }
}

/// What became of a slice's connections in the routers' tables. It is a part of the slice's row in the record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SliceConnections {
    pub state: ConnectionState,
    /// Entries before the slice and after it, without further ones that the study asks for.
    pub entries_before: u64,
    pub entries: u64,
    /// Of new connections, those of which an answer came back to the sender; `None` if nobody answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<u64>,
    /// Packets for which the kernel made no entry, or deleted another one (`insert_failed`, `drop` and `early_drop`
    /// in /proc/net/stat/nf_conntrack).
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub refused: u64,
}

impl SliceConnections {
    /// Of the messages that arrived, those whose new entry is gone.
    pub fn lost_entries(&self, received: u64) -> u64 {
        match self.state {
            ConnectionState::New => received.saturating_sub(self.entries),
            ConnectionState::Established => 0,
        }
    }
}

/// Sources and ports whose combinations are at least this many connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortGrid {
    pub sources: u32,
    pub ports: u32,
}

impl PortGrid {
    pub fn arrange(connections: u32) -> Self {
        let sources = f64::from(connections).sqrt().ceil().max(1.0) as u32;
        PortGrid { sources, ports: connections.div_ceil(sources).max(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_has_all_connections() {
        for connections in [1, 2, 1024, 10_000, 16_384, 16_385, 262_144] {
            let PortGrid { sources, ports } = PortGrid::arrange(connections);
            assert!(sources * ports >= connections, "{connections}");
            assert!(sources * ports < connections + sources, "{connections}: more than are needed");
        }
        assert_eq!(PortGrid::arrange(16_384), PortGrid { sources: 128, ports: 128 });
    }

    #[test]
    fn only_new_connections_lose_entries() {
        let new = SliceConnections { entries: 90, ..SliceConnections::default() };
        assert_eq!([new.lost_entries(100), new.lost_entries(80)], [10, 0]);
        let established = SliceConnections { state: ConnectionState::Established, ..new };
        assert_eq!(established.lost_entries(100), 0);
    }
}
