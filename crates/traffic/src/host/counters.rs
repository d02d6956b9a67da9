//! Counters of the network stack: interface, IP, transport.

use socket2::Socket;
use stacklab_model::Counters;
use std::collections::BTreeMap;

/// Counters of this host (on Linux of its network namespace) at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Snapshot(BTreeMap<String, u64>);

impl Snapshot {
    /// Reads the counters. Counters that the host does not have are absent.
    pub(crate) fn take(interface: &str) -> Self {
        Snapshot(crate::sys::counters(interface))
    }

    pub(crate) fn into_counters(self) -> Counters {
        Counters(self.0)
    }

    /// The increase of each counter until `later`, with the drops of the trial's own socket.
    pub(crate) fn until(&self, later: &Snapshot, socket: &Socket) -> Counters {
        let moved = later.0.iter().filter_map(|(name, after)| {
            let before = self.0.get(name).copied().unwrap_or(0);
            let by = after.checked_sub(before).filter(|by| *by > 0)?;
            Some((name.clone(), by))
        });
        let mut counters: BTreeMap<String, u64> = moved.collect();
        if let Ok(drops @ 1..) = crate::sys::socket_drops(socket) {
            counters.insert("socket.drops".to_owned(), drops);
        }
        Counters(counters)
    }
}
