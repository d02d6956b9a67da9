//! Results that are kept while what they were made from does not change: a record's file, or a fleet's results.

use std::collections::HashMap;
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

/// A cached result, with the state that it was made from and the time that it took.
#[derive(Clone)]
pub(super) struct Cached<T, S = Stamp> {
    pub what: T,
    pub stamp: S,
    pub took: Duration,
    pub at: Instant,
}

impl<T, S: Copy + PartialEq> Cached<T, S> {
    pub(super) fn now(stamp: S, make: impl FnOnce() -> T) -> Self {
        let begun = Instant::now();
        let what = make();
        Cached { what, stamp, took: begun.elapsed(), at: Instant::now() }
    }

    /// Whether the result is still current. While what it is made from changes, it is recomputed at most for a tenth of
    /// the time, since a campaign may be running on this machine.
    pub(super) fn is_fresh(&self, stamp: S) -> bool {
        self.stamp == stamp || self.at.elapsed() < 9 * self.took
    }
}

pub(super) struct Cache<T, S = Stamp>(Mutex<HashMap<String, Cached<T, S>>>);

impl<T, S> Default for Cache<T, S> {
    fn default() -> Self {
        Cache(Mutex::default())
    }
}

impl<T: Clone, S: Copy + PartialEq> Cache<T, S> {
    /// Locks the results, even after a panic: they stay valid.
    pub(super) fn locked(&self) -> MutexGuard<'_, HashMap<String, Cached<T, S>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets other records.
    pub(super) fn retain(&self, is_kept: impl Fn(&str) -> bool) {
        self.locked().retain(|name, _| is_kept(name));
    }

    /// Keeps the newest results only.
    pub(super) fn trim(&self, most: usize) {
        let mut kept = self.locked();
        while kept.len() > most {
            let oldest = kept.iter().min_by_key(|(_, made)| made.at).map(|(name, _)| name.clone());
            kept.remove(&oldest.unwrap_or_default());
        }
    }

    /// The result of a name, made once for all requests: another one waits for it. An error is not kept.
    pub(super) fn get<E>(
        &self,
        name: &str,
        stamp: S,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<Cached<T, S>, E> {
        let mut kept = self.locked();
        if let Some(known) = kept.get(name).filter(|known| known.is_fresh(stamp)) {
            return Ok(known.clone());
        }
        let Cached { what, took, at, .. } = Cached::now(stamp, make);
        // What was made of another state is no longer right.
        kept.remove(name);
        let made = Cached { what: what?, stamp, took, at };
        kept.insert(name.to_owned(), made.clone());
        Ok(made)
    }
}
