//! How much of the kernel's memory the entries of a table take.

use crate::{Attempt, Fault};
use stacklab_model::{EntryMemory, Family, Table, kernel_memory_at_rest};

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

    /// Adds that many entries to a table.
    pub(crate) fn add(
        &mut self,
        table: Table,
        family: Family,
        count: u32,
        add: impl FnOnce() -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        if !self.is_on || count == 0 {
            return add();
        }
        let before = read_memory()?;
        add()?;
        let after = read_memory()?;
        // Others of this machine may have given back more than the entries took.
        let bytes = (after as f64 - before as f64) / f64::from(count);
        self.entries.push(EntryMemory { table, family, bytes });
        Ok(())
    }
}

fn read_memory() -> Result<u64, Fault> {
    kernel_memory_at_rest().attempt("read how much memory the kernel has")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_added_whether_watched_or_not() {
        for is_on in [false, true] {
            let mut watch = MemoryWatch::new(is_on);
            let mut is_added = false;
            watch
                .add(Table::Routes, Family::Ipv6, 1000, || {
                    is_added = true;
                    Ok(())
                })
                .unwrap();
            assert!(is_added);
            assert_eq!(watch.into_entries().len(), usize::from(is_on));
        }
    }
}
