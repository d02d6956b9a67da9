//! Results of records that are kept while their files do not change.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Identifies a state of a file: its length and the time of its last change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    pub bytes: u64,
    pub changed: SystemTime,
    /// Device and inode, as the kernel lists them.
    pub file: (u64, u64),
}

impl Stamp {
    pub(super) fn of(data: &Metadata) -> Self {
        let changed = data.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        Stamp { bytes: data.len(), changed, file: (data.dev(), data.ino()) }
    }
}

/// A cached result of a record, with the state of its file and the time that it took.
#[derive(Clone)]
pub(super) struct Cached<T> {
    pub what: T,
    pub stamp: Stamp,
    pub took: Duration,
    pub at: Instant,
}

impl<T> Cached<T> {
    /// Computes the result.
    pub(super) fn now(stamp: Stamp, make: impl FnOnce() -> T) -> Self {
        let begun = Instant::now();
        let what = make();
        Cached { what, stamp, took: begun.elapsed(), at: Instant::now() }
    }

    /// Whether the result is still current. While the record changes, the result is recomputed at most for a tenth of
    /// the time, since a campaign may be running on this machine.
    pub(super) fn is_fresh(&self, stamp: Stamp) -> bool {
        self.stamp == stamp || self.at.elapsed() < 9 * self.took
    }
}

/// Locks a mutex, even after a panic: the list stays valid.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
