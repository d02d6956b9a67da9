//! Why a record could not be used.

use std::path::{Path, PathBuf};

/// A record that could not be created, opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no such file.
    #[error("there is no record {}", path.display())]
    Absent {
        /// The file.
        path: PathBuf,
    },
    /// A new record was requested at the path of an existing file.
    #[error("{} exists already: name another file with --out, or resume it with --resume", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// Another program is writing to it.
    #[error("{} is in use by another stacklab: wait until that campaign has ended", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// It is not a stacklab record.
    #[error("{} is not a stacklab record", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// It was written by a newer stacklab.
    #[error("{} has record format {found}, and this version reads formats up to {known}: use the version that wrote it, or a newer one", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The newest known.
        known: i64,
    },
    /// It was written by a version before the first release.
    #[error("{} has record format {found} of an unreleased version, and this stacklab reads format {known}: measure again", path.display())]
    Older {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The one that is read.
        known: i64,
    },
    /// Its content contradicts itself, or a part is missing.
    #[error("the record {} is damaged ({reason}): restore it from a copy, or start a new one with another --out", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// An interrupted commit must be rolled back, which a reader must not do.
    #[error("the last commit of {} was interrupted and must be rolled back first: `stacklab report` does that", path.display())]
    CutShort {
        /// The file.
        path: PathBuf,
    },
    /// It contains triggers, views or similar objects, which could run while it is read.
    #[error("{} contains objects other than a record's tables ({what}) and is refused", path.display())]
    MoreThanTables {
        /// The file.
        path: PathBuf,
        /// The object that it contains.
        what: String,
    },
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
        /// The database's message.
        reason: String,
    },
}

impl StoreError {
    /// Whether a retry may succeed.
    pub fn is_passing(&self) -> bool {
        matches!(self, StoreError::Busy { .. } | StoreError::CutShort { .. } | StoreError::Failed { .. })
    }

    /// Classifies a database error by what the user can do about it.
    pub(crate) fn from_sqlite(path: &Path, attempted: &'static str, error: rusqlite::Error) -> Self {
        let (path, reason) = (path.to_owned(), error.to_string());
        // Rolling back an interrupted commit is the only write of a read-only connection.
        if error.sqlite_error().is_some_and(|e| e.extended_code == rusqlite::ffi::SQLITE_READONLY_ROLLBACK) {
            return StoreError::CutShort { path };
        }
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::NotADatabase) => StoreError::Foreign { path },
            Some(rusqlite::ErrorCode::DatabaseCorrupt) => StoreError::Damaged { path, reason },
            Some(rusqlite::ErrorCode::OperationInterrupted) => {
                let reason =
                    "reading it takes more work than its length allows: its pages may form a loop".to_owned();
                StoreError::Damaged { path, reason }
            }
            Some(rusqlite::ErrorCode::DiskFull) => StoreError::Full { attempted, path },
            Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => {
                StoreError::Busy { path }
            }
            _ => StoreError::Failed { attempted, path, reason },
        }
    }
}
