//! How much of the kernel's memory the entries of a table take.

use crate::{Attempt, Fault};
use stacklab_model::{
    EntryMemory, Family, KernelMemory, Table, Weighed, count_first_third, kernel_memory_at_rest,
};
use std::ops::Range;

/// Why entries have no figure.
const UNSETTLED: &str = "neighbours of earlier testbeds were still being freed";
const OTHER_READING: &str = "the kernel's memory could not be read in the same way before and after";
const NO_GROWTH: &str = "other programs gave back more of the kernel's memory than the entries took";

/// Whether the memory that entries of tables take is watched while they are added.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WatchesMemory {
    /// Entries are added at once.
    #[default]
    No,
    /// It is.
    Yes,
    /// It would be, but the kernel is still freeing what others had: there is a reason instead of a figure.
    Unsettled,
}

/// Watches the kernel's memory while entries are added to tables.
#[derive(Debug, Default)]
pub struct MemoryWatch {
    watches: WatchesMemory,
    entries: Vec<EntryMemory>,
}

impl MemoryWatch {
    /// One that watches, or one that does nothing.
    pub fn new(watches: WatchesMemory) -> Self {
        MemoryWatch { watches, entries: Vec::new() }
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
        let is_watched = self.watches == WatchesMemory::Yes;
        let first = if is_watched { count_first_third(count) } else { count };
        for family in Family::ALL {
            add(*family, 0..first)?;
            if self.watches == WatchesMemory::Unsettled {
                self.entries.push(EntryMemory { table, family: *family, bytes: Err(UNSETTLED) });
            }
        }
        if first == count {
            return Ok(());
        }
        for family in Family::ALL {
            let before = read_memory()?;
            add(*family, first..count)?;
            let bytes = weigh_entry(before, read_memory()?, count - first);
            self.entries.push(EntryMemory { table, family: *family, bytes });
        }
        Ok(())
    }
}

/// What each of some entries took, if the kernel's memory grew.
fn weigh_entry(before: KernelMemory, after: KernelMemory, entries: u32) -> Result<f64, &'static str> {
    match after.growth_since(before) {
        Some(growth @ 1..) => Ok(growth as f64 / f64::from(entries)),
        Some(_) => Err(NO_GROWTH),
        None => Err(OTHER_READING),
    }
}

fn read_memory() -> Result<KernelMemory, Fault> {
    kernel_memory_at_rest(Weighed::Entries).attempt("read how much memory the kernel has")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn entries_are_added_once_whether_watched_or_not() {
        for (watches, weighed) in
            [(WatchesMemory::No, 0), (WatchesMemory::Yes, 2), (WatchesMemory::Unsettled, 2)]
        {
            let mut watch = MemoryWatch::new(watches);
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
            let entries = watch.into_entries();
            assert_eq!(entries.len(), weighed);
            if watches == WatchesMemory::Unsettled {
                assert!(entries.iter().all(|entry| entry.bytes == Err(UNSETTLED)));
            }
        }
    }

    #[test]
    fn memory_that_did_not_grow_is_not_a_figure() {
        let before = KernelMemory { bytes: 1000, is_of_objects: true };
        assert_eq!(weigh_entry(before, KernelMemory { bytes: 1600, ..before }, 4), Ok(150.0));
        for bytes in [1000, 400] {
            assert_eq!(weigh_entry(before, KernelMemory { bytes, ..before }, 4), Err(NO_GROWTH));
        }
        let of_pages = KernelMemory { bytes: 1600, is_of_objects: false };
        assert_eq!(weigh_entry(before, of_pages, 4), Err(OTHER_READING));
    }
}
