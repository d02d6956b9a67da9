//! The tables of connections of a routed testbed's routers.

use crate::mechanism::connection_table::{
    count_connections, count_refused, delete_connections, keep_entries, read_limit,
};
use crate::testbed::routed::{ROUTERS, Routed};
use crate::{AtHost, Attempt, Node, TestbedError};
use std::time::Duration;

/// What the kernel counts of a testbed's connections. Of two routers that track them, each has them all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TrackedConnections {
    /// Entries of the router that has the most.
    pub entries: u64,
    /// Packets so far for which a router made no entry, or deleted another one.
    pub refused: u64,
}

/// Entries that were deleted, and the time until the kernel counted none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeletedConnections {
    /// Entries of the router that had the most.
    pub entries: u64,
    /// Of that router.
    pub took: Duration,
}

impl Routed {
    /// Reads the tables of both routers.
    pub fn count_connections(&self) -> Result<TrackedConnections, TestbedError> {
        let mut counted = TrackedConnections::default();
        for (_, place) in ROUTERS {
            let [entries, refused] =
                self.network.hosts[place].inside(|| Ok([count_connections()?, count_refused()?]))?;
            counted.entries = counted.entries.max(entries);
            counted.refused += refused;
        }
        Ok(counted)
    }

    /// Deletes the connections of both routers, but further ones that the study asks for.
    pub fn delete_connections(&self, further: u32) -> Result<DeletedConnections, TestbedError> {
        let mut most = DeletedConnections { entries: 0, took: Duration::ZERO };
        for (_, place) in ROUTERS {
            // They are of both families, and on the near router.
            let further = if self.network.hosts[place].node() == Node::Router1 { further } else { 0 };
            let left = 2 * u64::from(further);
            let deleted = self.network.hosts[place].inside(|| {
                let entries = count_connections()?.saturating_sub(left);
                if entries == 0 {
                    return Ok(DeletedConnections { entries, took: Duration::ZERO });
                }
                Ok(DeletedConnections { entries, took: delete_connections(further > 0, left)? })
            })?;
            if deleted.entries > most.entries {
                most = deleted;
            }
        }
        Ok(most)
    }

    /// Has the routers keep connections without traffic. Refuses more than the kernel tracks: beyond its limit, it
    /// deletes others without a word.
    pub fn prepare_connections(&self, connections: u64) -> Result<(), TestbedError> {
        let limit = self.network.hosts[ROUTERS[0].1].inside(read_limit)?;
        if connections <= limit {
            for (_, place) in ROUTERS {
                self.network.hosts[place].inside(keep_entries)?;
            }
            return Ok(());
        }
        Err(format!(
            "this kernel tracks {limit} at most: set probe.search.connections to fewer, or sudo sysctl -w \
             net.netfilter.nf_conntrack_max={connections}"
        ))
        .attempt(format!("track {connections} connections"))
        .at(Node::Router1)
    }
}
