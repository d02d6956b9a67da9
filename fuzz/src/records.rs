//! Records of strangers.

use crate::{Bytes, is_plain};
use rusqlite::types::Value;
use rusqlite::{Connection, MAIN_DB, params_from_iter};
use stacklab::untrusted::{Made, reports};
use std::fs;
use tempfile::{tempdir, tempdir_in};

/// The record that all others are made of.
const KEPT: &[u8] = include_bytes!("../../tests/records/format2.stacklab");
/// Its columns that hold more than a key, as table and column.
const COLUMNS: [(&str, &str); 32] = [
    ("campaign", "study_text"),
    ("campaign", "study_name"),
    ("campaign", "program_version"),
    ("campaign", "scale"),
    ("campaign", "settings"),
    ("campaign", "seed"),
    ("campaign", "bed"),
    ("campaign", "cpu_scope"),
    ("campaign", "created_unix_ns"),
    ("host", "name"),
    ("host", "kind"),
    ("host", "facts"),
    ("run", "block"),
    ("run", "position"),
    ("run", "probe"),
    ("run", "family"),
    ("run", "size"),
    ("run", "replica"),
    ("run", "settings"),
    ("run", "started_unix_ns"),
    ("run", "wall_ns"),
    ("run", "status"),
    ("run", "reasons"),
    ("run", "spec"),
    ("value", "metric"),
    ("value", "kind"),
    ("value", "figure"),
    ("value", "reason"),
    ("side", "report"),
    ("delays", "buckets"),
    ("series", "bytes"),
    ("warning", "text"),
];

/// A changed record: the first byte says whether other bytes replace some of its file or values some of its rows.
/// Reports are made of it or it is refused; nothing of it changes a terminal, and what machines read parses.
pub fn record(data: &[u8]) {
    let mut bytes = Bytes(data);
    let changed = if bytes.number(1) & 1 == 0 { Some(with_bytes(bytes)) } else { with_values(bytes) };
    // SQLite refuses some values.
    let Some(changed) = changed else { return };
    // In memory if there is such a folder.
    let folder = tempdir_in("/dev/shm").or_else(|_| tempdir()).expect("a temporary folder");
    let path = folder.path().join("record.stacklab");
    fs::write(&path, changed).expect("a record is written");
    match reports(&path) {
        Ok(made) => holds(&made),
        Err(reason) => assert!(is_plain(&reason), "{reason:?}"),
    }
}

fn holds(made: &Made) {
    let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("it is JSON");
    json(&made.json);
    for text in &made.texts {
        assert!(is_plain(text), "{text:?}");
    }
    if let Some(page) = &made.page {
        let (_, data) =
            page.split_once("<script type=\"application/json\" id=\"document\">").expect("a document");
        let (data, _) = data.split_once('<').expect("the document ends");
        assert_eq!(json(data), json(&made.document));
    }
    for rows in [&made.rows[0][..], &made.rows[1], made.raw_csv.as_bytes()] {
        let mut rows = csv::Reader::from_reader(rows);
        assert!(rows.records().all(|row| row.is_ok()), "all rows have the same columns");
    }
}

/// Each change: three bytes where, one how many, and these.
fn with_bytes(mut bytes: Bytes) -> Vec<u8> {
    let mut file = KEPT.to_vec();
    while !bytes.is_over() {
        let at = bytes.number(3) as usize % file.len();
        let count = bytes.number(1) as usize;
        let other = bytes.some(count);
        let end = (at + other.len()).min(file.len());
        file[at..end].copy_from_slice(&other[..end - at]);
    }
    file
}

/// Each change: a column, a row, a kind, and the value; texts with two bytes for their length.
fn with_values(mut bytes: Bytes) -> Option<Vec<u8>> {
    let mut memory = Connection::open_in_memory().ok()?;
    memory.deserialize_read_exact(MAIN_DB, KEPT, KEPT.len(), false).ok()?;
    while !bytes.is_over() {
        let (table, column) = COLUMNS[bytes.number(1) as usize % COLUMNS.len()];
        let row = bytes.number(1) as i64;
        let value = match bytes.number(1) % 4 {
            0 => Value::Integer(bytes.number(8) as i64),
            1 => Value::Real(f64::from_bits(bytes.number(8))),
            2 => Value::Null,
            _ => {
                let length = bytes.number(2) as usize;
                Value::Text(String::from_utf8_lossy(bytes.some(length)).into_owned())
            }
        };
        let key = if ["campaign", "host", "run"].contains(&table) { "id" } else { "run" };
        let key = if table == "warning" { "rowid" } else { key };
        let sql = format!("UPDATE {table} SET {column} = ? WHERE {key} = 1 + ? % 16");
        let _ = memory.execute(&sql, params_from_iter([value, Value::Integer(row)]));
    }
    Some(memory.serialize(MAIN_DB).ok()?.to_vec())
}
