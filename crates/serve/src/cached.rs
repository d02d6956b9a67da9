//! Results that are kept while what they were made from does not change: a record's file, or a fleet's results. And
//! which records a campaign is writing.

use std::collections::{HashMap, HashSet};
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
    pub(super) fn lock_results(&self) -> MutexGuard<'_, HashMap<String, Cached<T, S>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn retain(&self, is_kept: impl Fn(&str) -> bool) {
        self.lock_results().retain(|name, _| is_kept(name));
    }

    pub(super) fn trim(&self, most: usize) {
        let mut kept = self.lock_results();
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
        let mut kept = self.lock_results();
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

/// Which records a campaign is writing: it holds a lock on its record's file. The lock is looked up in the kernel's
/// list and not tried, because trying would hinder a campaign that begins at that moment.
///
/// Device (major, minor) and inode of each locked file.
#[derive(Debug, Default)]
pub(super) struct RunningCampaigns(HashSet<(u64, u64, u64)>);

impl RunningCampaigns {
    /// The files that are locked now. Locks of processes outside this one's PID namespace are not in the list.
    pub(super) fn now() -> Self {
        RunningCampaigns::parse_locks(&std::fs::read_to_string("/proc/locks").unwrap_or_default())
    }

    /// From lines such as `1: FLOCK  ADVISORY  WRITE 4711 fd:00:1234 0 EOF`.
    fn parse_locks(locks: &str) -> Self {
        RunningCampaigns(locks.lines().filter_map(parse_lock).collect())
    }

    pub(super) fn has(&self, Stamp { file: (device, inode), .. }: Stamp) -> bool {
        let major = (device >> 8 & 0xfff) | (device >> 32 & !0xfff);
        let minor = (device & 0xff) | (device >> 12 & !0xff);
        self.0.contains(&(major, minor, inode))
    }
}

/// The file of a line; `None` if the lock is of another kind.
fn parse_lock(line: &str) -> Option<(u64, u64, u64)> {
    let mut words = line.split_whitespace().skip(1);
    if words.next()? != "FLOCK" {
        return None;
    }
    let mut place = words.nth(3)?.split(':');
    let major = u64::from_str_radix(place.next()?, 16).ok()?;
    let minor = u64::from_str_radix(place.next()?, 16).ok()?;
    let inode = place.next()?.parse().ok()?;
    Some((major, minor, inode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_running_while_its_file_is_locked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.stacklab");
        let file = std::fs::File::create(&path).unwrap();
        let stamp = Stamp::of(&std::fs::metadata(&path).unwrap());
        assert!(!RunningCampaigns::now().has(stamp));
        file.try_lock().unwrap();
        assert!(RunningCampaigns::now().has(stamp));
        drop(file);
        assert!(!RunningCampaigns::now().has(stamp));
    }

    #[test]
    fn lines_of_other_locks_are_left_out() {
        let locks = "1: POSIX  ADVISORY  WRITE 1 00:1a:7 0 EOF\n2: FLOCK  ADVISORY  WRITE 2 fe:01:9 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 3 fe:01:10 0 EOF\nnothing\n";
        assert_eq!(RunningCampaigns::parse_locks(locks).0, HashSet::from([(0xfe, 1, 9)]));
    }
}
