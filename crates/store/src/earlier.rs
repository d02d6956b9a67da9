//! Host reports in the tables of format 7.

use crate::open::{count, figure, has_table, json, known_figure, read_optional_count};
use crate::series::{ReportId, select_series};
use rusqlite::{Connection, params};
use stacklab_model::{Delays, HostReport, Slice, Trial};

/// The reports of a run's hosts; none where the record has no such tables.
pub(crate) fn select_host_reports(
    connection: &Connection,
    trial: &Trial,
) -> rusqlite::Result<Vec<HostReport>> {
    if !has_table(connection, "host_report")? {
        return Ok(Vec::new());
    }
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

fn select_slices(connection: &Connection, id: &ReportId) -> rusqlite::Result<Vec<Slice>> {
    let select = "SELECT round, messages, at_first, first_ns, last_ns, delay_ns, jitter_ns, cpu_ns, waited_ns FROM slice";
    id.rows(connection, select, |row| {
        Ok(Slice {
            round: row.get(0)?,
            messages: count(row, 1)?,
            at_first: count(row, 2)?,
            first_ns: count(row, 3)?,
            last_ns: count(row, 4)?,
            delay_ns: read_optional_count(row, 5)?,
            jitter_ns: known_figure(row, 6)?,
            cpu_ns: read_optional_count(row, 7)?,
            waited_ns: read_optional_count(row, 8)?,
        })
    })
}
