//! Free space for a guest's files. User-mode Linux has its memory in a file, and aborts when a page cannot be stored.

use nix::sys::statvfs::statvfs;
use std::io;
use std::path::Path;

/// The least free space to start a guest that has its memory in a file: what it needs to boot.
const LEAST_TO_START: u64 = 64 << 20;
/// With less free space a guest that ended may have ended for want of it.
const ALMOST_FULL: u64 = 4 << 20;

/// Bytes of a folder's disk that this user may still write. `None` if that cannot be read.
fn free_bytes(folder: &Path) -> Option<u64> {
    let disk = statvfs(folder).ok()?;
    Some(disk.blocks_available() * disk.fragment_size())
}

/// Refuses to start a guest whose memory would not fit onto the disk.
pub fn ensure_space(folder: &Path, memory: &str) -> io::Result<()> {
    check_space(folder, memory, free_bytes(folder))
}

fn check_space(folder: &Path, memory: &str, free: Option<u64>) -> io::Result<()> {
    let Some(free) = free.filter(|free| *free < LEAST_TO_START) else { return Ok(()) };
    let folder = folder.display();
    let text = format!(
        "its memory (up to {memory}) is a file in {folder}, whose disk has {free} bytes free: {ADVICE}"
    );
    Err(io::Error::new(io::ErrorKind::StorageFull, text))
}

const ADVICE: &str = "free some space, or set TMPDIR to a folder on another disk";

/// The sentence for a folder whose disk is full; empty for another one.
pub(crate) fn full_disk(folder: &Path) -> String {
    say_if_full(folder, free_bytes(folder))
}

fn say_if_full(folder: &Path, free: Option<u64>) -> String {
    match free.filter(|free| *free < ALMOST_FULL) {
        Some(free) => format!("; the disk of {} is full ({free} bytes free): {ADVICE}", folder.display()),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Attempt;
    use crate::topology::Node;

    #[test]
    fn names_the_full_disk_and_a_way_out() {
        let folder = Path::new("/tmp/guests/sender");
        let refused = check_space(folder, "512M", Some(4096)).attempt("start it").unwrap_err();
        let text = refused.at(Node::Sender).to_string();
        for part in ["on sender", "/tmp/guests/sender", "512M", "4096 bytes free", "TMPDIR"] {
            assert!(text.contains(part), "`{part}` is missing in: {text}");
        }
        assert!(!text.contains("sysctl"), "{text}");
        let ended = say_if_full(folder, Some(0));
        assert!(ended.contains("/tmp/guests/sender is full (0 bytes free)"), "{ended}");
        // The disk of this test is not full.
        let free = free_bytes(&std::env::temp_dir()).unwrap();
        assert!(free > 0);
        assert_eq!(say_if_full(folder, Some(1 << 30)), "");
        assert!(
            check_space(folder, "512M", Some(1 << 30)).is_ok() && check_space(folder, "512M", None).is_ok()
        );
    }
}
