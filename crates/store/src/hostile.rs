//! Defence against hostile records: nothing in a file runs, and reading it ends.

use rusqlite::{Connection, Result};
use std::ffi::c_int;

/// Instructions of SQLite's virtual machine between two checks of the limit.
const LOOK: c_int = 10_000;
/// Instructions that reading any record may take.
const LEAST: u64 = 1_000_000;
/// Instructions for each byte of a record: reading all of it takes less than one.
const A_BYTE: u64 = 4;

/// Functions in a file's own schema do not run, and pages that contradict themselves are not followed.
pub fn distrust(connection: &Connection) -> Result<()> {
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)
}

/// What a record holds besides plain tables and their indices: a view, a trigger, a virtual table or a
/// computed column could run for ever when it is read. None is in any that stacklab wrote.
pub fn more_than_tables(connection: &Connection) -> Result<Option<String>> {
    // Triggers are told by the file's own list; the rest by what SQLite made of that list, whatever words it
    // has.
    let mut query = connection.prepare(
        "SELECT type || ' ' || name FROM sqlite_schema WHERE type NOT IN ('table', 'index')
         UNION ALL
         SELECT type || ' ' || name FROM pragma_table_list WHERE schema = 'main' AND type <> 'table'
         UNION ALL
         SELECT 'computed column of ' || list.name FROM pragma_table_list AS list
             WHERE list.schema = 'main' AND list.type = 'table'
                 AND EXISTS (SELECT 1 FROM pragma_table_xinfo(list.name) WHERE hidden <> 0)",
    )?;
    let mut rows = query.query([])?;
    rows.next()?.map(|row| row.get(0)).transpose()
}

/// Interrupts a query that takes more work than the file's size accounts for, as where its pages form a cycle.
pub fn limit_work(connection: &mut Connection, bytes: u64) -> Result<()> {
    let mut looks = (LEAST + A_BYTE.saturating_mul(bytes)) / LOOK as u64;
    connection.progress_handler(
        LOOK,
        Some(move || {
            looks = looks.saturating_sub(1);
            looks == 0
        }),
    )
}
