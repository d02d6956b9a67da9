//! Where the emulators of programs write what they count.

use crate::ExplainError;
use stacklab_model::ProgramEnd;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Where the emulators of a run write what they count. Dropping it removes the folders, also if the run has failed.
pub(super) struct RunFolders {
    _folder: tempfile::TempDir,
    /// Those of the client and the server.
    pub(super) ends: [PathBuf; 2],
}

impl RunFolders {
    pub(super) fn create(inside: &Path) -> Result<Self, ExplainError> {
        let folder = tempfile::tempdir_in(inside).map_err(ExplainError::Folder)?;
        set_mode(folder.path(), 0o711)?;
        let ends = [ProgramEnd::Client, ProgramEnd::Server].map(|end| folder.path().join(end.name()));
        for end in &ends {
            fs::create_dir(end).map_err(ExplainError::Folder)?;
            // Programs may run as other users than this one.
            set_mode(end, 0o1733)?;
        }
        Ok(RunFolders { _folder: folder, ends })
    }
}

pub(super) fn set_mode(path: &Path, mode: u32) -> Result<(), ExplainError> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(ExplainError::Folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_failed_leaves_no_folder() {
        let inside = tempfile::tempdir().unwrap();
        let first = RunFolders::create(inside.path()).unwrap();
        fs::write(first.ends[0].join("blocks"), "left by a run that failed").unwrap();
        let second = RunFolders::create(inside.path()).unwrap();
        assert!(second.ends.iter().all(|end| fs::read_dir(end).unwrap().count() == 0));
        drop([first, second]);
        assert_eq!(fs::read_dir(inside.path()).unwrap().count(), 0);
    }
}
