//! Runs in and out of a record.

use crate::open::{count, figure_of, has_table, json, named, to_json, within};
use crate::shared::{Known, Own};
use crate::{Record, StoreError, earlier, packed};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use stacklab_model::{Cell, Drops, HostReport, Metric, RunRecord, RunStatus, Trial, Value, Warning};

/// Runs that are read at once.
const AT_ONCE: u32 = 1000;
/// Largest number of a block and of a position in it, and the longest message, bytes: no study has larger ones.
const LAST_TRIAL: u64 = 1 << 30;
const MAX_MESSAGE_LENGTH: u64 = 16 << 20;

impl Record {
    /// Adds a run with all its data, in one commit.
    pub fn put_run(&mut self, run: &RunRecord) -> Result<(), StoreError> {
        self.put_runs(std::slice::from_ref(run))
    }

    /// Adds runs that were made together, in one commit.
    pub fn put_runs(&mut self, runs: &[RunRecord]) -> Result<(), StoreError> {
        self.commit("store a run", |transaction| {
            runs.iter().try_for_each(|run| insert(transaction, run).map(drop))
        })
    }

    /// Every run in the order of measuring, with its figures and warnings but without its host reports.
    /// [`Record::host_reports`] reads those of one run; those of a whole campaign may be large.
    pub fn runs(&self) -> Result<Vec<RunRecord>, StoreError> {
        self.runs_in_turn().collect()
    }

    /// The same, one after the other: few are in memory at a time, and between reads a campaign can add runs.
    pub fn runs_in_turn(&self) -> impl Iterator<Item = Result<RunRecord, StoreError>> + '_ {
        let mut after = Some(i64::MIN);
        let mut known = Known::default();
        let mut read = Vec::new().into_iter();
        std::iter::from_fn(move || {
            if let Some((_, run)) = read.next() {
                return Some(Ok(run));
            }
            match select(&self.connection, after?, &mut known) {
                Ok(found) => {
                    after = found.last().map(|(id, _)| *id);
                    read = found.into_iter();
                    read.next().map(|(_, run)| Ok(run))
                }
                Err(e) => {
                    after = None;
                    Some(Err(self.error("read the runs", e)))
                }
            }
        })
    }

    /// Whether the record has reports that were written in an earlier format.
    pub fn has_earlier_reports(&self) -> Result<bool, StoreError> {
        has_table(&self.connection, "host_report").map_err(|e| self.error("look for earlier reports", e))
    }

    /// The number of runs in the record.
    pub fn run_count(&self) -> Result<usize, StoreError> {
        // Not `*`: SQLite counts that in one step that cannot be interrupted.
        let counted = self.connection.query_row("SELECT count(id) FROM run", [], |row| row.get::<_, i64>(0));
        counted.map(|count| count as usize).map_err(|e| self.error("count the runs", e))
    }

    /// The hosts' reports of one run, sender first. For a run in both directions, the forward ones come first. Empty
    /// if the record contains none.
    pub fn host_reports(&self, trial: &Trial) -> Result<Vec<HostReport>, StoreError> {
        select_host_reports(&self.connection, trial).map_err(|e| self.error("read a run", e))
    }
}

/// Adds a run, and gives its row's number.
pub(crate) fn insert(transaction: &Transaction<'_>, run: &RunRecord) -> rusqlite::Result<i64> {
    let Trial { block, position, cell, probe } = &run.trial;
    let (status, reasons) = match &run.status {
        RunStatus::Valid => ("valid", &[] as &[String]),
        RunStatus::Invalid(reasons) => ("invalid", reasons.as_slice()),
    };
    let own = Own::of(run);
    transaction.execute(
        "INSERT INTO run (block, position, probe, family, transport, size_of, size, replica, settings, started_unix_ns,
             wall_ns, status, reasons, spec, lost_sender_queue, lost_interface, lost_socket_buffer, lost_network)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)",
        params![
            block,
            position,
            probe.name(),
            cell.family.name(),
            cell.transport.name(),
            cell.size_of.name(),
            cell.size,
            cell.replica,
            to_json(&cell.settings),
            run.started_unix_ns as i64,
            run.wall_ns as i64,
            status,
            to_json(&reasons),
            own.spec,
            run.drops.sender_queue as i64,
            run.drops.interface as i64,
            run.drops.socket_buffer as i64,
            run.drops.network as i64,
        ],
    )?;
    let id = transaction.last_insert_rowid();
    let mut add = transaction.prepare_cached(
        "INSERT INTO value (run, metric, unit, kind, number, reason) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    for (metric, value) in &own.values {
        let (kind, number, reason) = match value {
            Value::Measured(number) => ("measured", Some(number), None),
            Value::Missing(reason) => ("missing", None, Some(reason)),
            Value::Invalid(reason) => ("invalid", None, Some(reason)),
        };
        add.execute(params![id, metric.name(), metric.unit().symbol(), kind, number, reason])?;
    }
    drop(add);
    own.insert(transaction, id)?;
    packed::insert_reports(transaction, id, &run.host_reports)?;
    for warning in &run.warnings {
        transaction.execute(
            "INSERT INTO warning (run, code, text, advice) VALUES (?1, ?2, ?3, ?4)",
            params![id, warning.code, warning.text, warning.advice],
        )?;
    }
    Ok(id)
}

/// The next runs after the one with this number, with their numbers, which ascend.
fn select(connection: &Connection, after: i64, known: &mut Known) -> rusqlite::Result<Vec<(i64, RunRecord)>> {
    let shared = match has_table(connection, "shared")? {
        true => {
            "(SELECT text FROM text WHERE id = shared.spec), (SELECT text FROM text WHERE id = shared.absent)
             FROM run LEFT JOIN shared ON shared.run = run.id"
        }
        false => "NULL, NULL FROM run",
    };
    let mut query = connection.prepare_cached(&format!(
        "SELECT run.id, block, position, probe, family, transport, size_of, size, replica, started_unix_ns, wall_ns, status,
             reasons, run.spec, lost_sender_queue, lost_interface, lost_socket_buffer, lost_network, settings, {shared}
         WHERE run.id > ?1 ORDER BY run.id LIMIT ?2",
    ))?;
    let rows =
        query.query_map(params![after, AT_ONCE], |row| Ok((row.get::<_, i64>(0)?, run_of(row, known)?)))?;
    let mut runs = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    let Some(last) = runs.last().map(|(id, _)| *id) else { return Ok(runs) };
    let range = params![after, last];
    let mut query = connection
        .prepare_cached("SELECT run, metric, kind, number, reason FROM value WHERE run > ?1 AND run <= ?2")?;
    let mut rows = query.query(range)?;
    while let Some(row) = rows.next()? {
        let Some(run) = with_number(&mut runs, row.get(0)?) else { continue };
        let metric: Metric = named(row, 1)?;
        run.values.insert(metric, read_value(row, metric)?);
    }
    let mut query = connection.prepare_cached(
        "SELECT run, code, text, advice FROM warning WHERE run > ?1 AND run <= ?2 ORDER BY rowid",
    )?;
    let mut rows = query.query(range)?;
    while let Some(row) = rows.next()? {
        if let Some(run) = with_number(&mut runs, row.get(0)?) {
            let warning = Warning { code: row.get(1)?, text: row.get(2)?, advice: row.get(3)? };
            run.warnings.push(warning);
        }
    }
    Ok(runs)
}

/// A metric's value from its run, metric, kind, number and reason.
fn read_value(row: &Row<'_>, metric: Metric) -> rusqlite::Result<Value> {
    let kind: String = row.get(2)?;
    if kind == "measured" {
        return Ok(Value::Measured(figure_of(row, 3, metric)?));
    }
    let reason = row.get::<_, Option<String>>(4)?.unwrap_or_default();
    Ok(if kind == "missing" { Value::Missing(reason) } else { Value::Invalid(reason) })
}

/// The run with this number; `None` for a row of none.
fn with_number(runs: &mut [(i64, RunRecord)], number: i64) -> Option<&mut RunRecord> {
    let place = runs.binary_search_by_key(&number, |(id, _)| *id).ok()?;
    Some(&mut runs[place].1)
}

/// A run from its row; measured figures and warnings are added afterwards.
fn run_of(row: &Row<'_>, known: &mut Known) -> rusqlite::Result<RunRecord> {
    let number = |place: usize, largest| within(row.get(place)?, largest).map(|number| number as u32);
    let size = number(7, MAX_MESSAGE_LENGTH)?;
    let mut cell = Cell::new(named(row, 4)?, named(row, 5)?, named(row, 6)?, size);
    cell.replica = row.get(8)?;
    cell.settings = known.settings(row, 18)?;
    let status = match row.get_ref(11)?.as_str()? {
        "valid" => RunStatus::Valid,
        _ => RunStatus::Invalid(json(row, 12)?),
    };
    let block = number(1, LAST_TRIAL)?;
    let position = number(2, LAST_TRIAL)?;
    Ok(RunRecord {
        trial: Trial { block, position, cell, probe: named(row, 3)? },
        spec: known.spec(row, 13, 19)?,
        started_unix_ns: within(row.get(9)?, i64::MAX as u64)?,
        wall_ns: count(row, 10)?,
        status,
        values: known.absent(row, 20)?,
        drops: Drops {
            sender_queue: count(row, 14)?,
            interface: count(row, 15)?,
            socket_buffer: count(row, 16)?,
            network: count(row, 17)?,
        },
        host_reports: Vec::new(),
        warnings: Vec::new(),
    })
}

fn select_host_reports(connection: &Connection, trial: &Trial) -> rusqlite::Result<Vec<HostReport>> {
    if has_table(connection, "packed_reports")? {
        let mut query = connection.prepare_cached("SELECT id FROM run WHERE block = ?1 AND position = ?2")?;
        let number = query.query_row(params![trial.block, trial.position], |row| row.get(0)).optional()?;
        if let Some(reports) = number.map(|number| packed::select_reports(connection, number)).transpose()?
            && !reports.is_empty()
        {
            return Ok(reports);
        }
    }
    earlier::select_host_reports(connection, trial)
}
