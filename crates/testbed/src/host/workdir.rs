//! The files of a testbed's guests, in a folder that is removed with the testbed.

use crate::{TestbedError, owns};
use std::fs::{self, File};
use std::io;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_goes_when_dropped_and_that_of_a_dead_process_with_the_next() {
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
}
