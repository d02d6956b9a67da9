//! Where the runs of an imported record come from.

use crate::open::parsed;
use crate::runs::{ReportId, insert, insert_series, select_series};
use crate::{Campaign, Record, StoreError};
use rusqlite::{Connection, params};
use stacklab_model::{Direction, RunRecord, ToolSeries, Trial};
use std::path::Path;

/// The file that a run was read from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// The tool that measured.
    pub tool: String,
    /// Its version, if the file states it.
    pub version: Option<String>,
    /// The file's name, as it was given.
    pub file: String,
    /// SHA-256 of the file, hexadecimal.
    pub sha256: String,
    /// Options on the command line for what the file lacks: `family=ipv4`; empty if there were none.
    pub overrides: String,
}

/// A run of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The file.
    pub origin: Origin,
    /// The run, without host reports.
    pub run: RunRecord,
    /// Its intervals, if the file has them.
    pub series: Option<ToolSeries>,
}

impl Record {
    /// Creates a record of runs of other tools, whole or not at all.
    ///
    /// # Errors
    /// As for [`Record::create`]; no file is then left.
    pub fn import(path: &Path, campaign: &Campaign, runs: &[Imported]) -> Result<(), StoreError> {
        let mut record = Record::create(path, campaign)?;
        let put = record.commit("store the runs", |transaction| {
            for Imported { origin, run, series } in runs {
                let id = insert(transaction, run)?;
                if let Some(ToolSeries { role, rows }) = series {
                    insert_series(transaction, id, Direction::of(&run.trial.cell), *role, rows)?;
                }
                transaction.execute(
                    "INSERT INTO origin (run, tool, version, file, sha256, overrides) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                    params![id, origin.tool, origin.version, origin.file, origin.sha256, origin.overrides],
                )?;
            }
            Ok(())
        });
        drop(record);
        put.inspect_err(|_| {
            // It was made here, and has no run.
            let _ = std::fs::remove_file(path);
        })
    }

    /// The intervals of one imported run, which has no host reports.
    pub fn tool_series(&self, trial: &Trial) -> Result<Option<ToolSeries>, StoreError> {
        select_tool_series(&self.connection, trial).map_err(|e| self.error("read a run", e))
    }

    /// The origins of imported runs, each once. Empty of a record that was measured.
    pub fn origins(&self) -> Result<Vec<Origin>, StoreError> {
        select_origins(&self.connection).map_err(|e| self.error("read the origins", e))
    }
}

fn select_origins(connection: &Connection) -> rusqlite::Result<Vec<Origin>> {
    let mut query = connection.prepare(
        "SELECT tool, version, file, sha256, overrides FROM origin GROUP BY file, sha256 ORDER BY min(run)",
    )?;
    let rows = query.query_map([], |row| {
        Ok(Origin {
            tool: row.get(0)?,
            version: row.get(1)?,
            file: row.get(2)?,
            sha256: row.get(3)?,
            overrides: row.get(4)?,
        })
    })?;
    rows.collect()
}

fn select_tool_series(connection: &Connection, trial: &Trial) -> rusqlite::Result<Option<ToolSeries>> {
    let mut query = connection.prepare_cached(
        "SELECT DISTINCT run.id, series.role, series.direction FROM run JOIN origin ON origin.run = run.id
             JOIN series ON series.run = run.id WHERE run.block = ?1 AND run.position = ?2",
    )?;
    let mut rows = query.query(params![trial.block, trial.position])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let id = ReportId { run: row.get(0)?, role: row.get(1)?, direction: row.get(2)? };
    Ok(Some(ToolSeries { role: parsed(&id.role)?, rows: select_series(connection, &id)? }))
}
