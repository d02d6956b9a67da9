//! Runs in and out of a record.

use crate::open::{count, figure, json, known, known_figure, named, to_json, within};
use crate::{Record, StoreError};
use rusqlite::{Connection, Row, Transaction, params};
use stacklab_model::{
    Cell, Delays, Direction, Drops, HostReport, IntervalRow, Role, RunRecord, RunStatus, Slice, Trial, Value,
    Warning,
};
use std::collections::BTreeMap;

/// Largest number of a block and of a position in it, and the longest message, bytes: no study has larger ones.
const LAST_TRIAL: u64 = 1 << 30;
const LONGEST_MESSAGE: u64 = 16 << 20;

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
        select(&self.connection).map_err(|e| self.error("read the runs", e))
    }

    /// What arrived in each interval of the valid runs, by block and position: at the receiver, or for an echo at the
    /// sender. Of a run in both directions, the forward one.
    pub fn series(&self) -> Result<BTreeMap<(u32, u32), Vec<IntervalRow>>, StoreError> {
        select_all_series(&self.connection).map_err(|e| self.error("read the intervals", e))
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
            to_json(&run.spec),
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
    for (metric, value) in &run.values {
        let (kind, number, reason) = match value {
            Value::Measured(number) => ("measured", Some(number), None),
            Value::Missing(reason) => ("missing", None, Some(reason)),
            Value::Invalid(reason) => ("invalid", None, Some(reason)),
        };
        add.execute(params![id, metric.name(), metric.unit().symbol(), kind, number, reason])?;
    }
    drop(add);
    // A run has two host reports for each stream.
    for (host_reports, from) in run.host_reports.chunks(2).zip(Direction::of(cell).senders()) {
        let direction = if *from == 0 { Direction::Forward } else { Direction::Reverse };
        for report in host_reports {
            insert_host_report(transaction, id, direction, report)?;
        }
    }
    for warning in &run.warnings {
        transaction.execute(
            "INSERT INTO warning (run, code, text, advice) VALUES (?1, ?2, ?3, ?4)",
            params![id, warning.code, warning.text, warning.advice],
        )?;
    }
    Ok(id)
}

fn insert_host_report(
    connection: &Connection,
    id: i64,
    direction: Direction,
    report: &HostReport,
) -> rusqlite::Result<()> {
    insert_series(connection, id, direction, report.role, &report.series)?;
    let (direction, role) = (direction.name(), report.role.name());
    // Delays, series and slices have separate tables, for other programs to read.
    let rest = HostReport { delays: None, series: Vec::new(), slices: Vec::new(), ..report.clone() };
    connection.execute(
        "INSERT INTO host_report (run, direction, role, report) VALUES (?1, ?2, ?3, ?4)",
        params![id, direction, role, to_json(&rest)],
    )?;
    if let Some(Delays { buckets, mean_ns, jitter_ns, jitter_rfc3550_ns }) = &report.delays {
        connection.execute(
            "INSERT INTO delays (run, direction, role, mean_ns, jitter_ns, jitter_rfc3550_ns, buckets)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![id, direction, role, mean_ns, jitter_ns, jitter_rfc3550_ns, to_json(buckets)],
        )?;
    }
    let mut add = connection.prepare_cached(
        "INSERT INTO slice (run, direction, role, round, messages, at_first, first_ns, last_ns, delay_ns, jitter_ns, cpu_ns, waited_ns)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    )?;
    for slice in &report.slices {
        add.execute(params![
            id,
            direction,
            role,
            slice.round,
            slice.messages as i64,
            slice.at_first as i64,
            slice.first_ns as i64,
            slice.last_ns as i64,
            slice.delay_ns.map(|ns| ns as i64),
            slice.jitter_ns,
            slice.cpu_ns.map(|ns| ns as i64),
            slice.waited_ns.map(|ns| ns as i64)
        ])?;
    }
    Ok(())
}

/// Adds the intervals that one host counted of a stream.
pub(crate) fn insert_series(
    connection: &Connection,
    id: i64,
    direction: Direction,
    role: Role,
    rows: &[IntervalRow],
) -> rusqlite::Result<()> {
    let mut add = connection.prepare_cached(
        "INSERT INTO series (run, direction, role, start_ns, messages, bytes, delay_mean_ns)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    for row in rows {
        add.execute(params![
            id,
            direction.name(),
            role.name(),
            row.start_ns as i64,
            row.messages as i64,
            row.bytes as i64,
            row.delay_mean_ns
        ])?;
    }
    Ok(())
}

fn select(connection: &Connection) -> rusqlite::Result<Vec<RunRecord>> {
    let mut ids = BTreeMap::new();
    let mut query = connection.prepare(
        "SELECT id, block, position, probe, family, transport, size_of, size, replica, started_unix_ns, wall_ns, status,
             reasons, spec, lost_sender_queue, lost_interface, lost_socket_buffer, lost_network, settings FROM run ORDER BY id",
    )?;
    let rows = query.query_map([], |row| Ok((row.get::<_, i64>(0)?, run_of(row)?)))?;
    let mut runs = Vec::new();
    for row in rows {
        let (id, run) = row?;
        ids.insert(id, runs.len());
        runs.push(run);
    }
    let mut query = connection.prepare("SELECT run, metric, kind, number, reason FROM value")?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let Some(run) = ids.get(&row.get(0)?).map(|place| &mut runs[*place]) else { continue };
        let reason = |row: &Row<'_>| row.get::<_, Option<String>>(4).map(Option::unwrap_or_default);
        let value = match row.get::<_, String>(2)?.as_str() {
            "measured" => Value::Measured(figure(row, 3)?),
            "missing" => Value::Missing(reason(row)?),
            _ => Value::Invalid(reason(row)?),
        };
        run.values.insert(named(row, 1)?, value);
    }
    let mut query = connection.prepare("SELECT run, code, text, advice FROM warning ORDER BY rowid")?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        if let Some(place) = ids.get(&row.get(0)?) {
            let warning = Warning { code: row.get(1)?, text: row.get(2)?, advice: row.get(3)? };
            runs[*place].warnings.push(warning);
        }
    }
    Ok(runs)
}

/// A run from its row; figures and warnings are added afterwards.
fn run_of(row: &Row<'_>) -> rusqlite::Result<RunRecord> {
    let count = |place: usize| count(row, place);
    let number = |place: usize, largest| within(row.get(place)?, largest).map(|number| number as u32);
    let size = number(7, LONGEST_MESSAGE)?;
    let mut cell = Cell::new(named(row, 4)?, named(row, 5)?, named(row, 6)?, size);
    cell.replica = row.get(8)?;
    cell.settings = json(row, 18)?;
    let status = match row.get_ref(11)?.as_str()? {
        "valid" => RunStatus::Valid,
        _ => RunStatus::Invalid(json(row, 12)?),
    };
    let (block, position) = (number(1, LAST_TRIAL)?, number(2, LAST_TRIAL)?);
    Ok(RunRecord {
        trial: Trial { block, position, cell, probe: named(row, 3)? },
        spec: json(row, 13)?,
        started_unix_ns: within(row.get(9)?, i64::MAX as u64)?,
        wall_ns: count(10)?,
        status,
        values: BTreeMap::new(),
        drops: Drops {
            sender_queue: count(14)?,
            interface: count(15)?,
            socket_buffer: count(16)?,
            network: count(17)?,
        },
        host_reports: Vec::new(),
        warnings: Vec::new(),
    })
}

fn select_host_reports(connection: &Connection, trial: &Trial) -> rusqlite::Result<Vec<HostReport>> {
    let mut query = connection.prepare_cached(
        "SELECT run.id, role, report, direction FROM host_report JOIN run ON run.id = host_report.run
         WHERE run.block = ?1 AND run.position = ?2 ORDER BY direction, role = 'receiver'",
    )?;
    let mut rows = query.query(params![trial.block, trial.position])?;
    let mut host_reports = Vec::new();
    while let Some(row) = rows.next()? {
        let id = ReportId { run: row.get(0)?, role: row.get(1)?, direction: row.get(3)? };
        let mut report: HostReport = json(row, 2)?;
        report.delays = select_delays(connection, &id)?;
        report.series = select_series(connection, &id)?;
        report.slices = select_slices(connection, &id)?;
        host_reports.push(report);
    }
    Ok(host_reports)
}

/// The run and host report of the delays and series.
pub(crate) struct ReportId {
    pub run: i64,
    pub role: String,
    pub direction: String,
}

impl ReportId {
    fn rows<T>(
        &self,
        connection: &Connection,
        select: &str,
        read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        let mut query = connection.prepare_cached(&format!(
            "{select} WHERE run = ?1 AND role = ?2 AND direction = ?3 ORDER BY 1"
        ))?;
        query.query_map(params![self.run, self.role, self.direction], |row| read(row))?.collect()
    }
}

fn select_delays(connection: &Connection, id: &ReportId) -> rusqlite::Result<Option<Delays>> {
    let select = "SELECT mean_ns, jitter_ns, jitter_rfc3550_ns, buckets FROM delays";
    let delays = id.rows(connection, select, |row| {
        Ok(Delays {
            mean_ns: figure(row, 0)?,
            jitter_ns: known_figure(row, 1)?,
            jitter_rfc3550_ns: known_figure(row, 2)?,
            buckets: json(row, 3)?,
        })
    })?;
    Ok(delays.into_iter().next())
}

pub(crate) fn select_series(connection: &Connection, id: &ReportId) -> rusqlite::Result<Vec<IntervalRow>> {
    let select = "SELECT start_ns, messages, bytes, delay_mean_ns FROM series";
    id.rows(connection, select, |row| interval(row, 0))
}

/// An interval from this column on.
fn interval(row: &Row<'_>, from: usize) -> rusqlite::Result<IntervalRow> {
    let [start_ns, messages, bytes] = [0, 1, 2].map(|place| count(row, from + place));
    let delay_mean_ns = known_figure(row, from + 3)?;
    Ok(IntervalRow { start_ns: start_ns?, messages: messages?, bytes: bytes?, delay_mean_ns })
}

fn select_all_series(connection: &Connection) -> rusqlite::Result<BTreeMap<(u32, u32), Vec<IntervalRow>>> {
    let mut query = connection.prepare(
        "SELECT run.block, run.position, start_ns, messages, bytes, delay_mean_ns, series.direction, role
         FROM run JOIN series ON series.run = run.id WHERE run.status = 'valid'
         ORDER BY run.id, series.direction, role = 'receiver', start_ns",
    )?;
    let mut all: BTreeMap<(u32, u32), Vec<IntervalRow>> = BTreeMap::new();
    let mut of: Option<((u32, u32), (String, String))> = None;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let place = |column| within(row.get(column)?, LAST_TRIAL).map(|number| number as u32);
        let (run, host) = ((place(0)?, place(1)?), (row.get(6)?, row.get(7)?));
        // The first host that has any.
        if of.as_ref().is_some_and(|(same, first)| *same == run && *first != host) {
            continue;
        }
        all.entry(run).or_default().push(interval(row, 2)?);
        of = Some((run, host));
    }
    Ok(all)
}

fn select_slices(connection: &Connection, id: &ReportId) -> rusqlite::Result<Vec<Slice>> {
    let select = "SELECT round, messages, at_first, first_ns, last_ns, delay_ns, jitter_ns, cpu_ns, waited_ns FROM slice";
    id.rows(connection, select, |row| {
        let count = |place: usize| count(row, place);
        let known = |place: usize| known(row, place);
        Ok(Slice {
            round: row.get(0)?,
            messages: count(1)?,
            at_first: count(2)?,
            first_ns: count(3)?,
            last_ns: count(4)?,
            delay_ns: known(5)?,
            jitter_ns: known_figure(row, 6)?,
            cpu_ns: known(7)?,
            waited_ns: known(8)?,
        })
    })
}
