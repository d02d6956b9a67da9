//! Why a record could not be used.

use crate::FORMAT;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The step in messages.
pub(crate) const OPEN: &str = "open the record";

/// A record that could not be created, opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no such file.
    #[error("there is no record {}", .0.display())]
    Absent(PathBuf),
    /// A new record was requested at the path of an existing file.
    #[error("{} exists already: name another file with --out, or resume it with --resume", .0.display())]
    Exists(PathBuf),
    /// Another program is writing to it.
    #[error("{} is in use by another stacklab: wait until that campaign has ended", .0.display())]
    Busy(PathBuf),
    /// It is not a stacklab record.
    #[error("{} is not a stacklab record", .0.display())]
    Foreign(PathBuf),
    /// It has the format of a newer stacklab.
    #[error("{} has record format {}, and this version reads formats up to {FORMAT}: use the version that wrote it, or a newer one", .0.display(), .1)]
    Newer(PathBuf, i64),
    /// It has the format of a version before the first release.
    #[error("{} has record format {} of an unreleased version, and this stacklab reads format {FORMAT}: measure again", .0.display(), .1)]
    Older(PathBuf, i64),
    /// Its content contradicts itself, or a part is missing, for this reason.
    #[error("the record {} is damaged ({}): restore it from a copy, or start a new one with another --out", .0.display(), .1)]
    Damaged(PathBuf, String),
    /// An interrupted commit must be rolled back, which a reader must not do.
    #[error("the last commit of {} was interrupted and must be rolled back first: `stacklab report` does that", .0.display())]
    CutShort(PathBuf),
    /// It contains a trigger, view or similar object, which could run while it is read.
    #[error("{} contains objects other than a record's tables ({}) and is refused", .0.display(), .1)]
    MoreThanTables(PathBuf, String),
    /// The disk is full.
    #[error("the disk is full: could not {attempted} in {}; free some space, then use --resume (committed runs are kept)", path.display())]
    Full {
        /// What was attempted.
        attempted: &'static str,
        /// The file.
        path: PathBuf,
    },
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

    /// Classifies a database error by what the user can do about it.
    pub(crate) fn from_sqlite(path: &Path, attempted: &'static str, error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode::{
            DatabaseBusy, DatabaseCorrupt, DatabaseLocked, DiskFull, NotADatabase, OperationInterrupted,
        };
        let (path, reason) = (path.to_owned(), error.to_string());
        // Rolling back an interrupted commit is the only write of a read-only connection.
        if error.sqlite_error().is_some_and(|e| e.extended_code == rusqlite::ffi::SQLITE_READONLY_ROLLBACK) {
            return StoreError::CutShort(path);
        }
        match error.sqlite_error_code() {
            Some(NotADatabase) => StoreError::Foreign(path),
            Some(DatabaseCorrupt) => StoreError::Damaged(path, reason),
            Some(OperationInterrupted) => {
                let reason = "reading it takes more work than its length allows: its pages may form a loop";
                StoreError::Damaged(path, reason.to_owned())
            }
            Some(DiskFull) => StoreError::Full { attempted, path },
            Some(DatabaseBusy | DatabaseLocked) => StoreError::Busy(path),
            _ => StoreError::Failed { attempted, path, reason },
        }
    }

    /// Classifies an error of the file itself.
    pub(crate) fn from_io(path: &Path, attempted: &'static str, error: &io::Error) -> Self {
        let path = path.to_owned();
        match error.kind() {
            ErrorKind::NotFound if attempted == OPEN => StoreError::Absent(path),
            ErrorKind::AlreadyExists => StoreError::Exists(path),
            ErrorKind::StorageFull => StoreError::Full { attempted, path },
            _ => StoreError::Failed { attempted, path, reason: error.to_string() },
        }
    }
}
