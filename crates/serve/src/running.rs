//! Which records a campaign is writing: it holds a lock on its record's file. The lock is looked up in the kernel's
//! list and not tried, because trying would hinder a campaign that begins at that moment.

use crate::cached::Stamp;
use std::collections::HashSet;

/// The locked files: device (major, minor) and inode.
#[derive(Debug, Default)]
pub(super) struct Running(HashSet<(u64, u64, u64)>);

impl Running {
    /// The files that are locked now. Locks of processes outside this one's PID namespace are not in the list.
    pub(super) fn now() -> Self {
        Running::listed(&std::fs::read_to_string("/proc/locks").unwrap_or_default())
    }

    /// From lines such as `1: FLOCK  ADVISORY  WRITE 4711 fd:00:1234 0 EOF`.
    fn listed(locks: &str) -> Self {
        let file = |line: &str| {
            let mut words = line.split_whitespace().skip(1);
            let mut place =
                words.next().filter(|kind| *kind == "FLOCK").and_then(|_| words.nth(3))?.split(':');
            let mut hex = || u64::from_str_radix(place.next()?, 16).ok();
            Some((hex()?, hex()?, place.next()?.parse().ok()?))
        };
        Running(locks.lines().filter_map(file).collect())
    }

    pub(super) fn has(&self, Stamp { file: (device, inode), .. }: Stamp) -> bool {
        let major = (device >> 8 & 0xfff) | (device >> 32 & !0xfff);
        let minor = (device & 0xff) | (device >> 12 & !0xff);
        self.0.contains(&(major, minor, inode))
    }
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
        assert!(!Running::now().has(stamp));
        file.try_lock().unwrap();
        assert!(Running::now().has(stamp));
        drop(file);
        assert!(!Running::now().has(stamp));
    }

    #[test]
    fn lines_of_other_locks_are_left_out() {
        let locks = "1: POSIX  ADVISORY  WRITE 1 00:1a:7 0 EOF\n2: FLOCK  ADVISORY  WRITE 2 fe:01:9 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 3 fe:01:10 0 EOF\nnothing\n";
        assert_eq!(Running::listed(locks).0, HashSet::from([(0xfe, 1, 9)]));
    }
}
