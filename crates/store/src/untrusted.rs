//! Records of strangers, from bytes in memory: for the fuzz targets (`fuzz/`), which give it any bytes. The program
//! reads files, and does all else alike.

use crate::{Record, StoreError, hostile};
use rusqlite::{Connection, MAIN_DB};
use std::path::Path;

/// A record as [`Record::read`] opens it.
///
/// # Errors
/// As there.
pub fn read(bytes: &[u8]) -> Result<Record, StoreError> {
    opened(bytes, |_| Ok(()))?.known()?.sound()
}

/// A record as [`Record::glance`] opens it.
///
/// # Errors
/// As there.
pub fn glance(bytes: &[u8]) -> Result<Record, StoreError> {
    opened(bytes, |connection| hostile::limit_work(connection, bytes.len() as u64))?.known()
}

fn opened(
    bytes: &[u8],
    prepare: impl Fn(&mut Connection) -> rusqlite::Result<()>,
) -> Result<Record, StoreError> {
    let path = Path::new("record.stacklab");
    let connection = || {
        let mut connection = Connection::open_in_memory()?;
        connection.deserialize_read_exact(MAIN_DB, bytes, bytes.len(), true)?;
        hostile::distrust(&connection)?;
        prepare(&mut connection)?;
        Ok(connection)
    };
    match connection() {
        Ok(connection) => Ok(Record::of(connection, path, None)),
        Err(error) => Err(StoreError::from_sqlite(path, "open the record", error)),
    }
}
