//! Records of strangers, from bytes in memory: for the fuzz targets (`fuzz/`), which give it any bytes. The program
//! reads files, and does all else alike.

use crate::hostile::{self, Work};
use crate::{Record, StoreError};
use rusqlite::{Connection, MAIN_DB};
use std::path::Path;

/// A record as [`Record::read`] opens it.
///
/// # Errors
/// As there.
pub fn read(bytes: &[u8]) -> Result<Record, StoreError> {
    opened(bytes, Work::Whole)?.known()?.sound()
}

/// A record as [`Record::glance`] opens it.
///
/// # Errors
/// As there.
pub fn glance(bytes: &[u8]) -> Result<Record, StoreError> {
    opened(bytes, Work::Glance)?.known()
}

fn opened(bytes: &[u8], work: Work) -> Result<Record, StoreError> {
    let path = Path::new("record.stacklab");
    let connection = || {
        let mut connection = Connection::open_in_memory()?;
        connection.deserialize_read_exact(MAIN_DB, bytes, bytes.len(), true)?;
        hostile::distrust(&connection)?;
        Ok(connection)
    };
    match connection() {
        Ok(connection) => Record::of(connection, path, None).limited(bytes.len() as u64, work),
        Err(error) => Err(StoreError::from_sqlite(path, "open the record", error)),
    }
}
