//! Intervals of runs as rows: of imported runs, and of all in format 7.

use crate::open::{count, known_figure};
use rusqlite::{Connection, Row, params};
use stacklab_model::{Direction, IntervalRow, Role};

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

/// One host's rows of a run.
pub(crate) struct ReportId {
    pub run: i64,
    pub role: String,
    pub direction: String,
}

impl ReportId {
    pub(crate) fn rows<T>(
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

pub(crate) fn select_series(connection: &Connection, id: &ReportId) -> rusqlite::Result<Vec<IntervalRow>> {
    let select = "SELECT start_ns, messages, bytes, delay_mean_ns FROM series";
    id.rows(connection, select, |row| {
        let [start_ns, messages, bytes] = [0, 1, 2].map(|place| count(row, place));
        let delay_mean_ns = known_figure(row, 3)?;
        Ok(IntervalRow { start_ns: start_ns?, messages: messages?, bytes: bytes?, delay_mean_ns })
    })
}
