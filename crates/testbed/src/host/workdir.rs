//! The folder with the files of a testbed's guests: it is removed with the testbed. Its disk, and guests' consoles in
//! it.

use crate::{TestbedError, owns};
use nix::sys::statvfs::statvfs;
use stacklab_model::is_control;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The prefix of the folder's name. The ID of the creating process and random characters follow.
const PREFIX: &str = "stacklab-guests-";
/// The file in it that the process which made it keeps locked for as long as it lives.
const LOCK: &str = "lock";

/// A folder that is removed when dropped. The folders of killed processes are removed when the next one is made.
#[derive(Debug)]
pub struct Workdir {
    path: PathBuf,
    _lock: File,
}

impl Workdir {
    /// Creates a folder in the directory for temporary files. Only this user may enter it.
    pub fn create() -> Result<Self, TestbedError> {
        let above = std::env::temp_dir();
        sweep(&above);
        // Its name cannot be known before. With a dot it is not swept before its lock is held.
        let prefix = format!(".{PREFIX}{}-", std::process::id());
        let made = tempfile::Builder::new()
            .prefix(&prefix)
            .tempdir_in(&above)
            .map_err(TestbedError::file(&above))?;
        let lock = made.path().join(LOCK);
        let file = File::create_new(&lock).map_err(TestbedError::file(&lock))?;
        file.lock().map_err(TestbedError::file(&lock))?;
        let name = made.path().file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let path = above.join(name.trim_start_matches('.'));
        fs::rename(made.path(), &path).map_err(TestbedError::file(&path))?;
        // It is where it was no more.
        let _: PathBuf = made.keep();
        Ok(Workdir { path, _lock: file })
    }

    /// The folder's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The subfolder of one host.
    pub fn for_host(&self, name: &str) -> Result<PathBuf, TestbedError> {
        let path = self.path.join(name);
        fs::create_dir_all(&path).map_err(TestbedError::file(&path))?;
        Ok(path)
    }
}

impl Drop for Workdir {
    fn drop(&mut self) {
        // If the folder cannot be removed now, the next `Workdir::create` removes it.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes the folders that killed processes have left.
pub(crate) fn remove_leftovers() {
    sweep(&std::env::temp_dir());
}

/// Removes the folders of processes that have ended: nobody has their lock.
fn sweep(above: &Path) {
    let entries = fs::read_dir(above).into_iter().flatten().flatten();
    for entry in entries {
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        if is_ours && is_left_over(&entry.path()) {
            // Another user's cannot be removed.
            let _: io::Result<()> = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether it is a folder of this user that nobody has locked. What another user has put there is not opened.
fn is_left_over(folder: &Path) -> bool {
    if !fs::symlink_metadata(folder).is_ok_and(|found| found.is_dir() && owns(&found)) {
        return false;
    }
    match File::open(folder.join(LOCK)) {
        Ok(lock) => lock.try_lock().is_ok(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// The least free space to start a guest that has its memory in a file: what it needs to boot.
const MIN_TO_START: u64 = 64 << 20;
/// With less free space a guest that ended may have ended for want of it.
const ALMOST_FULL: u64 = 4 << 20;

fn free_bytes(folder: &Path) -> Option<u64> {
    let disk = statvfs(folder).ok()?;
    Some(disk.blocks_available() * disk.fragment_size())
}

/// Refuses to start a guest whose memory would not fit onto the disk.
pub fn ensure_space(folder: &Path, memory: &str) -> io::Result<()> {
    check_space(folder, memory, free_bytes(folder))
}

fn check_space(folder: &Path, memory: &str, free: Option<u64>) -> io::Result<()> {
    let Some(free) = free.filter(|free| *free < MIN_TO_START) else { return Ok(()) };
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

const LINES: usize = 8;
/// Bytes of a console that are read: its end. A guest may write without end.
const MAX_READ: u64 = 64 << 10;

/// What to append to an error message: whether the guest's disk is full, and the last lines of its console.
pub fn last_words(console: &Path) -> String {
    full_disk(console.parent().unwrap_or(console)) + &last_lines(&read_end(console).unwrap_or_default())
}

fn read_end(console: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(console)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MAX_READ)))?;
    let mut text = Vec::new();
    file.take(MAX_READ).read_to_end(&mut text)?;
    Ok(text)
}

pub(crate) fn last_lines(console: &[u8]) -> String {
    let text = String::from_utf8_lossy(console);
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let visible: String = line.chars().filter(|c| !is_control(*c)).collect();
        if !visible.trim().is_empty() {
            lines.push(visible);
        }
    }
    if lines.is_empty() {
        return String::new();
    }
    // The lines after this program's last message are only the kernel's shutdown messages.
    let own = lines.iter().rposition(|line| line.contains("stacklab:") || line.contains("Kernel panic"));
    let end = own.map_or(lines.len(), |own| own + 1);
    let last = &lines[end.saturating_sub(LINES)..end];
    format!("; the end of its console output:\n    {}", last.join("\n    "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Attempt;
    use crate::topology::Node;

    #[test]
    fn folder_goes_on_drop_and_a_dead_ones_with_the_next() {
        // As a killed process leaves it: its locks have gone with it.
        let dead = tempfile::Builder::new().prefix(PREFIX).tempdir().unwrap().keep();
        fs::create_dir_all(dead.join("x")).unwrap();
        fs::write(dead.join(LOCK), "").unwrap();
        let young = tempfile::Builder::new().prefix(&format!(".{PREFIX}")).tempdir().unwrap();
        // It only leads to a folder.
        let link = dead.with_extension("link");
        std::os::unix::fs::symlink(young.path(), &link).unwrap();
        let folder = Workdir::create().unwrap();
        assert!(fs::symlink_metadata(&link).is_ok() && fs::remove_file(&link).is_ok());
        assert!(!dead.exists());
        assert!(young.path().exists(), "one that is just being made stays");
        let other = Workdir::create().unwrap();
        assert!(folder.path().exists(), "that of a living process stays");
        let path = other.for_host("sender").unwrap();
        fs::write(path.join("console"), "x").unwrap();
        drop(other);
        assert!(!path.exists());
    }

    #[test]
    fn a_folder_of_another_user_is_not_looked_into() {
        let made = tempfile::tempdir().unwrap();
        assert!(is_left_over(made.path()));
        // Only root can give one away; for others, root's is another user's.
        let given = std::os::unix::fs::chown(made.path(), Some(65_534), None).is_ok();
        assert!(!is_left_over(if given { made.path() } else { Path::new("/") }));
    }

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

    #[test]
    fn last_lines_are_told_without_terminal_controls() {
        let folder = tempfile::tempdir().unwrap();
        let console = folder.path().join("console");
        assert_eq!(last_words(&console), "");
        let text: String = (0..9).map(|number| format!("\u{1b}line {number}\r\n\n")).collect();
        fs::write(&console, text).unwrap();
        let said = last_words(&console);
        assert!(
            said.ends_with("line 7\n    line 8") && said.contains("line 1") && !said.contains("line 0"),
            "{said}"
        );
        fs::write(&console, vec![b'x'; 1 << 20]).unwrap();
        assert_eq!(read_end(&console).unwrap().len() as u64, MAX_READ);
    }
}
