//! Defence against hostile records: no code in a file runs, and reading it always ends.

use rusqlite::config::DbConfig;
use rusqlite::{Connection, Result};
use std::ffi::c_int;

/// Instructions of SQLite's virtual machine between two checks of the limit.
const CHECK_INTERVAL: c_int = 10_000;
/// Maximum instructions for reading any record.
const MIN_INSTRUCTIONS: u64 = 1_000_000;
/// Instructions per byte of a record: reading the whole record takes less than one.
const A_BYTE: u64 = 4;
/// The same for a reader that checks the record for damage and may read parts of it many times.
const A_BYTE_CHECKED: u64 = 64;

/// Functions in a file's own schema do not run, and pages that contradict themselves are not followed. Bound values do
/// not change how a query runs: otherwise SQLite prepares it again at each use.
pub fn distrust(connection: &Connection) -> Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)
}

/// An object of a database other than plain tables and their indices. A view, a trigger, a virtual table or a
/// computed column could run forever when it is read. Records and fleet stores that stacklab writes contain none.
pub fn find_other_objects(connection: &Connection) -> Result<Option<String>> {
    // The file's own list gives the triggers. SQLite's parse of that list gives the rest, independently of its
    // wording.
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

/// How much work reading a record may take.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    /// Its parts, without a check for damage.
    Unchecked,
    /// All of it, with a check for damage.
    Checked,
}

/// Interrupts a query that takes more work than the file's size allows, for example if its pages form a cycle or its
/// tables have no keys.
pub(crate) fn limit_work(connection: &mut Connection, bytes: u64, work: Work) -> Result<()> {
    let a_byte = match work {
        Work::Unchecked => A_BYTE,
        Work::Checked => A_BYTE_CHECKED,
    };
    let mut looks = (MIN_INSTRUCTIONS + a_byte.saturating_mul(bytes)) / CHECK_INTERVAL as u64;
    connection.progress_handler(
        CHECK_INTERVAL,
        Some(move || {
            looks = looks.saturating_sub(1);
            looks == 0
        }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::{StatementStatus, params};

    #[test]
    fn a_query_is_prepared_once_for_all_values() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(include_str!("format/schema.sql")).unwrap();
        distrust(&connection).unwrap();
        let mut query = connection
            .prepare("SELECT bytes FROM series WHERE run = ?1 AND role = ?2 AND direction = ?3 ORDER BY 1")
            .unwrap();
        for run in 1..4 {
            assert!(!query.exists(params![run, "sender", "forward"]).unwrap());
        }
        assert_eq!(query.get_status(StatementStatus::RePrepare), 0);
    }
}
