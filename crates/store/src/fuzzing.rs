//! Opens records from bytes in memory, for the fuzz targets (`fuzz/`). The program opens files in the same way.

use crate::limits::{self, Work};
use crate::{Record, StoreError, packed};
use rusqlite::{Connection, MAIN_DB};
use std::path::Path;

/// A record as [`Record::read`] opens it.
pub fn read(bytes: &[u8]) -> Result<Record, StoreError> {
    open(bytes, Work::Checked)?.verify_format()?.check_integrity()
}

/// A record as [`Record::open_unchecked`] opens it.
pub fn open_unchecked(bytes: &[u8]) -> Result<Record, StoreError> {
    open(bytes, Work::Unchecked)?.verify_format()
}

/// A packed column with this JSON.
pub fn pack(json: &str) -> Vec<u8> {
    packed::compress(json)
}

fn open(bytes: &[u8], work: Work) -> Result<Record, StoreError> {
    let path = Path::new("record.stacklab");
    match connect(bytes) {
        Ok(connection) => Record::of(connection, path, None).with_work_limit(bytes.len() as u64, work),
        Err(error) => Err(StoreError::from_sqlite(path, crate::error::OPEN, error)),
    }
}

fn connect(bytes: &[u8]) -> rusqlite::Result<Connection> {
    let mut connection = Connection::open_in_memory()?;
    connection.deserialize_read_exact(MAIN_DB, bytes, bytes.len(), true)?;
    limits::distrust(&connection)?;
    Ok(connection)
}
