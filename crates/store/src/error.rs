//! Why a record could not be used.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

pub(crate) const OPEN: &str = "open the record";

/// A record that could not be created, opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A new record was requested at the path of an existing file.
    #[error("{} exists already: name another file with --out", .0.display())]
    Exists(PathBuf),
    /// Another program is writing to it.
    #[error("{} is in use by another stacklab: wait until that campaign has ended", .0.display())]
    Busy(PathBuf),
    /// The disk is full.
    #[error("{0}")]
    Full(String),
    /// It is absent, not a record, one of another version or damaged: for this reason.
    #[error("{0}")]
    Refused(String),
    /// An interrupted commit must be rolled back, which a reader must not do.
    #[error("the last commit of {} was interrupted and must be rolled back first: `stacklab report` does that", .0.display())]
    CutShort(PathBuf),
    /// Anything else.
    #[error("could not {attempted} in {}: {reason}", path.display())]
    Failed {
        /// What was attempted.
        attempted: &'static str,
        /// The file.
        path: PathBuf,
        /// The database's or the system's message.
        reason: String,
    },
}

impl StoreError {
    /// Whether a retry may succeed.
    pub fn is_passing(&self) -> bool {
        matches!(self, StoreError::Busy(_) | StoreError::CutShort(_) | StoreError::Failed { .. })
    }

    pub(crate) fn foreign(path: &Path) -> Self {
        StoreError::Refused(format!("{} is not a stacklab record", path.display()))
    }

    pub(crate) fn of_damage(path: &Path, reason: &str) -> Self {
        StoreError::Refused(format!(
            "the record {} is damaged ({reason}): restore it from a copy, or start a new one with another --out",
            path.display()
        ))
    }

    fn full(path: &Path, attempted: &str) -> Self {
        StoreError::Full(format!(
            "the disk is full: could not {attempted} in {}; free some space",
            path.display()
        ))
    }

    /// Classifies a database error by what the user can do about it.
    pub(crate) fn from_sqlite(path: &Path, attempted: &'static str, error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode::{
            DatabaseBusy, DatabaseCorrupt, DatabaseLocked, DiskFull, NotADatabase, OperationInterrupted,
        };
        let path = path.to_owned();
        let reason = error.to_string();
        // Rolling back an interrupted commit is the only write of a read-only connection.
        if error.sqlite_error().is_some_and(|e| e.extended_code == rusqlite::ffi::SQLITE_READONLY_ROLLBACK) {
            return StoreError::CutShort(path);
        }
        match error.sqlite_error_code() {
            Some(NotADatabase) => StoreError::foreign(&path),
            Some(DatabaseCorrupt) => StoreError::of_damage(&path, &reason),
            Some(OperationInterrupted) => {
                let reason = "reading it takes more work than its length allows: its pages may form a loop";
                StoreError::of_damage(&path, reason)
            }
            Some(DiskFull) => StoreError::full(&path, attempted),
            Some(DatabaseBusy | DatabaseLocked) => StoreError::Busy(path),
            _ => StoreError::Failed { attempted, path, reason },
        }
    }

    /// Classifies an error of the file itself.
    pub(crate) fn from_io(path: &Path, attempted: &'static str, error: &io::Error) -> Self {
        let path = path.to_owned();
        match error.kind() {
            ErrorKind::NotFound if attempted == OPEN => {
                StoreError::Refused(format!("there is no record {}", path.display()))
            }
            ErrorKind::AlreadyExists => StoreError::Exists(path),
            ErrorKind::StorageFull => StoreError::full(&path, attempted),
            _ => StoreError::Failed { attempted, path, reason: error.to_string() },
        }
    }
}
