//! The campaign of a record: its row, its hosts, and where the runs of an imported one come from.

use crate::open::{json, named, read_optional_count, to_json};
use crate::runs::insert;
use crate::series::{ReportId, insert_series, select_series};
use crate::{Record, StoreError};
use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};
use stacklab_model::{CpuScope, Direction, HostFacts, RunRecord, ToolSeries, Trial};
use std::path::Path;

/// The campaign's row: everything needed to make the same plan again.
#[derive(Debug, Clone, PartialEq)]
pub struct Campaign {
    /// Version of stacklab that started it.
    pub program_version: String,
    /// Start, nanoseconds since the Unix epoch.
    pub created_unix_ns: u64,
    /// Name of the study's file.
    pub study_name: String,
    /// The study as written.
    pub study_text: String,
    /// The requested scale.
    pub scale: Option<String>,
    /// Settings made on the command line, `KEY=VALUE`.
    pub settings: Vec<String>,
    /// Seed of the plan.
    pub seed: u64,
    /// The testbed in one sentence.
    pub testbed_description: String,
    /// The scope of the hosts' CPU figures.
    pub cpu_scope: CpuScope,
    /// Mean time between samples of a processor, nanoseconds, if the processors were sampled while it was measured.
    pub sample_period_ns: Option<u64>,
}

/// A host at the beginning of a campaign, or at its resumption.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostRow {
    /// Its name in the testbed.
    pub name: String,
    /// Its kind, for example `namespace`.
    pub kind: String,
    /// When its facts were gathered, nanoseconds since the Unix epoch.
    pub since_unix_ns: u64,
    /// The facts.
    pub facts: HostFacts,
}

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
    /// The campaign's row.
    pub fn campaign(&self) -> Result<Campaign, StoreError> {
        let row = self.connection.query_row(
            "SELECT program_version, created_unix_ns, study_name, study_text, scale, settings, seed, testbed, cpu_scope,
                 sample_period_ns FROM campaign",
            [],
            |row| {
                Ok(Campaign {
                    program_version: row.get(0)?,
                    created_unix_ns: row.get::<_, i64>(1)? as u64,
                    study_name: row.get(2)?,
                    study_text: row.get(3)?,
                    scale: row.get(4)?,
                    settings: json(row, 5)?,
                    seed: named(row, 6)?,
                    testbed_description: row.get(7)?,
                    cpu_scope: named(row, 8)?,
                    sample_period_ns: read_optional_count(row, 9)?,
                })
            },
        );
        row.map_err(|e| self.error("read the campaign", e))
    }

    /// Adds a host.
    pub fn put_host(&mut self, host: &HostRow) -> Result<(), StoreError> {
        let added = self.connection.execute(
            "INSERT INTO host (name, kind, since_unix_ns, facts) VALUES (?1, ?2, ?3, ?4)",
            params![host.name, host.kind, host.since_unix_ns as i64, to_json(&host.facts)],
        );
        added.map(drop).map_err(|e| self.error("store a host", e))
    }

    /// Every host, in the order they were added.
    pub fn hosts(&self) -> Result<Vec<HostRow>, StoreError> {
        select_hosts(&self.connection).map_err(|e| self.error("read the hosts", e))
    }

    /// Creates a record of runs of other tools, whole or not at all.
    /// If it fails, no file is left.
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

fn select_hosts(connection: &Connection) -> rusqlite::Result<Vec<HostRow>> {
    let mut query = connection.prepare("SELECT name, kind, since_unix_ns, facts FROM host ORDER BY id")?;
    let rows = query.query_map([], |row| {
        let since_unix_ns = row.get::<_, i64>(2)? as u64;
        Ok(HostRow { name: row.get(0)?, kind: row.get(1)?, since_unix_ns, facts: json(row, 3)? })
    })?;
    rows.collect()
}

fn select_origins(connection: &Connection) -> rusqlite::Result<Vec<Origin>> {
    let mut query = connection.prepare(
        "SELECT tool, version, file, sha256, overrides FROM origin GROUP BY file, sha256 ORDER BY min(run)",
    )?;
    let rows = query.query_map([], |row| {
        let tool = row.get(0)?;
        let version = row.get(1)?;
        let file = row.get(2)?;
        Ok(Origin { tool, version, file, sha256: row.get(3)?, overrides: row.get(4)? })
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
    Ok(Some(ToolSeries { role: named(row, 1)?, rows: select_series(connection, &id)? }))
}
