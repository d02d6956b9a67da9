//! The files of a testbed's guests, in a folder that is removed with the testbed.

use crate::error::TestbedError;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The prefix of the folder's name. The ID of the creating process and a number follow.
const PREFIX: &str = "stacklab-guests-";

/// A folder that is removed when dropped. The folders of killed processes are removed when the next one is made.
#[derive(Debug)]
pub(crate) struct Workdir(PathBuf);

impl Workdir {
    /// Creates a folder in the directory for temporary files. Only this user may enter it.
    pub fn create() -> Result<Self, TestbedError> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let above = std::env::temp_dir();
        sweep(&above);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = above.join(format!("{PREFIX}{}-{number}", std::process::id()));
        let made = fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|reason| TestbedError::File { path: path.clone(), reason })?;
        Ok(Workdir(path))
    }

    /// The folder's path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The subfolder of one host.
    pub fn for_host(&self, name: &str) -> Result<PathBuf, TestbedError> {
        let path = self.0.join(name);
        fs::create_dir_all(&path).map_err(|reason| TestbedError::File { path: path.clone(), reason })?;
        Ok(path)
    }
}

impl Drop for Workdir {
    fn drop(&mut self) {
        // If the folder cannot be removed now, the next `Workdir::create` removes it.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Removes the folders of processes that have ended.
fn sweep(above: &Path) {
    let entries = fs::read_dir(above).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let process =
            name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split_once('-')?.0.parse::<u32>().ok());
        if process.is_some_and(|process| !runs(process)) {
            let _: io::Result<()> = fs::remove_dir_all(entry.path());
        }
    }
}

fn runs(process: u32) -> bool {
    Path::new("/proc").join(process.to_string()).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_goes_when_dropped_and_that_of_a_dead_process_with_the_next() {
        // No process has this ID: Linux allows at most 2^22.
        let dead = std::env::temp_dir().join(format!("{PREFIX}{}-0", u32::MAX));
        fs::create_dir_all(dead.join("x")).unwrap();
        let folder = Workdir::create().unwrap();
        assert!(!dead.exists());
        let other = Workdir::create().unwrap();
        assert!(folder.path().exists(), "that of a living process stays");
        let path = other.for_host("sender").unwrap();
        fs::write(path.join("console"), "x").unwrap();
        drop(other);
        assert!(!path.exists());
    }
}
