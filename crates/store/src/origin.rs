//! Where the runs of an imported record come from.

use crate::{Campaign, Record, StoreError};
use rusqlite::{Connection, params};
use stacklab_model::RunRecord;
use std::path::Path;

/// The file that a run was read from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// The tool that measured.
    pub tool: String,
    /// Its version, if the file tells it.
    pub version: Option<String>,
    /// The file's name, as it was given.
    pub file: String,
    /// SHA-256 of the file, hexadecimal.
    pub sha256: String,
    /// What was said on the command line because the file does not tell it: `family=ipv4`; empty if nothing was.
    pub told: String,
}

impl Record {
    /// Creates a record of runs of other tools, whole or not at all.
    ///
    /// # Errors
    /// As for [`Record::create`]; no file is then left.
    pub fn import(path: &Path, campaign: &Campaign, runs: &[(Origin, RunRecord)]) -> Result<(), StoreError> {
        let mut record = Record::create(path, campaign)?;
        let put = |connection: &mut Connection| -> rusqlite::Result<()> {
            let transaction = connection.transaction()?;
            for (origin, run) in runs {
                let id = crate::runs::insert(&transaction, run)?;
                transaction.execute(
                    "INSERT INTO origin (run, tool, version, file, sha256, told) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                    params![id, origin.tool, origin.version, origin.file, origin.sha256, origin.told],
                )?;
            }
            transaction.commit()
        };
        let put = put(&mut record.connection);
        put.map_err(|error| {
            let failed = record.error("store the runs", error);
            drop(record);
            // It was made here, and has no run.
            let _ = std::fs::remove_file(path);
            failed
        })
    }

    /// The origins of imported runs, each once. Empty of a record that was measured.
    pub fn origins(&self) -> Result<Vec<Origin>, StoreError> {
        let read = || -> rusqlite::Result<Vec<Origin>> {
            let mut query = self.connection.prepare(
                "SELECT tool, version, file, sha256, told FROM origin GROUP BY file, sha256 ORDER BY min(run)",
            )?;
            let rows = query.query_map([], |row| {
                Ok(Origin {
                    tool: row.get(0)?,
                    version: row.get(1)?,
                    file: row.get(2)?,
                    sha256: row.get(3)?,
                    told: row.get(4)?,
                })
            })?;
            rows.collect()
        };
        read().map_err(|e| self.error("read the origins", e))
    }
}
