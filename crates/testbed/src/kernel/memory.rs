//! How much of the kernel's memory the entries of a table take.

use crate::{Attempt, Fault};
use stacklab_model::{EntryMemory, Family, Table, count_first_third, kernel_memory_at_rest};
use std::ops::Range;
use std::time::{Duration, Instant};

/// The kernel frees neighbours of an earlier testbed in batches that are five seconds apart (kfree_rcu): it has freed
/// all of them when none came for so long.
const DEFERRED: Duration = Duration::from_secs(7);
/// How long that is waited for at most: others of this machine may free memory at any time.
const MAX_DEFERRED: Duration = Duration::from_secs(40);
/// Less than this is freed by others.
const FREED_BYTES: u64 = 256 << 10;

/// Watches the kernel's memory while entries are added to tables.
#[derive(Debug, Default)]
pub struct MemoryWatch {
    /// Without it, entries are added at once.
    is_on: bool,
    entries: Vec<EntryMemory>,
}

impl MemoryWatch {
    /// One that watches, or one that does nothing.
    pub fn new(is_on: bool) -> Self {
        MemoryWatch { is_on, entries: Vec::new() }
    }

    /// What each entry took, of each table and family that was watched.
    pub fn into_entries(self) -> Vec<EntryMemory> {
        self.entries
    }

    /// Adds that many entries of each family to a table. `add` adds those with these numbers.
    ///
    /// Where it watches, a part of both families comes first.
    pub(crate) fn add_to_both(
        &mut self,
        table: Table,
        count: u32,
        add: impl Fn(Family, Range<u32>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        if self.is_on && table == Table::Neighbours {
            await_deferred()?;
        }
        let first = if self.is_on { count_first_third(count) } else { count };
        for family in Family::ALL {
            add(*family, 0..first)?;
        }
        if first == count {
            return Ok(());
        }
        for family in Family::ALL {
            let before = read_memory()?;
            add(*family, first..count)?;
            let after = read_memory()?;
            // Others of this machine may have given back more than the entries took.
            let bytes = (after as f64 - before as f64) / f64::from(count - first);
            self.entries.push(EntryMemory { table, family: *family, bytes });
        }
        Ok(())
    }
}

/// Waits until nothing more is freed of earlier testbeds.
fn await_deferred() -> Result<(), Fault> {
    let start = Instant::now();
    let mut freed = start;
    let mut memory = read_memory()?;
    while freed.elapsed() < DEFERRED && start.elapsed() < MAX_DEFERRED {
        let now = read_memory()?;
        if now + FREED_BYTES < memory {
            freed = Instant::now();
        }
        memory = now;
    }
    Ok(())
}

fn read_memory() -> Result<u64, Fault> {
    kernel_memory_at_rest().attempt("read how much memory the kernel has")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn entries_are_added_once_whether_watched_or_not() {
        for is_on in [false, true] {
            let mut watch = MemoryWatch::new(is_on);
            let added = RefCell::new(Vec::new());
            watch
                .add_to_both(Table::Routes, 10, |family, numbers| {
                    added.borrow_mut().extend(numbers.map(|number| (family, number)));
                    Ok(())
                })
                .unwrap();
            let mut added = added.into_inner();
            added.sort_unstable();
            let expected = Family::ALL.iter().flat_map(|family| (0..10).map(|number| (*family, number)));
            assert!(added.iter().copied().eq(expected), "{added:?}");
            assert_eq!(watch.into_entries().len(), if is_on { 2 } else { 0 });
        }
    }
}
