//! Compressed columns, shared texts, and records of format 7, which have neither.

use crate::made::{campaign, record, run, without_runs};
use flate2::Compression;
use flate2::read::{ZlibDecoder, ZlibEncoder};
use rusqlite::{Connection, params};
use stacklab_model::{Metric, RunRecord, RunStatus, Value};
use stacklab_store::{FORMAT, Record, StoreError};
use std::io::Read;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn read_all(path: &Path) -> Result<Vec<RunRecord>, StoreError> {
    let record = Record::read(path)?;
    let mut runs = Vec::new();
    for run in record.runs_in_turn() {
        let mut run = run?;
        run.host_reports = record.host_reports(&run.trial)?;
        runs.push(run);
    }
    Ok(runs)
}

fn deflate(text: impl Read) -> Vec<u8> {
    let mut packed = Vec::new();
    ZlibEncoder::new(text, Compression::fast()).read_to_end(&mut packed).unwrap();
    packed
}

/// Replaces a part of the first run's column.
fn change(path: &Path, table: &str, column: &str, [from, to]: [&str; 2]) {
    let raw = Connection::open(path).unwrap();
    let packed: Vec<u8> =
        raw.query_row(&format!("SELECT {column} FROM {table} WHERE run = 1"), [], |row| row.get(0)).unwrap();
    let mut text = String::new();
    ZlibDecoder::new(&packed[..]).read_to_string(&mut text).unwrap();
    assert!(text.contains(from), "{text}");
    let packed = deflate(text.replace(from, to).as_bytes());
    raw.execute(&format!("UPDATE {table} SET {column} = ?1 WHERE run = 1"), [packed]).unwrap();
}

#[test]
fn packed_numbers_out_of_bounds_are_refused() {
    let most = u64::MAX.to_string();
    for (table, column, from, to) in [
        ("packed_reports", "reports", "\"measured\":3", format!("\"measured\":{most}")),
        ("packed_reports", "reports", "\"start_ns\":100", format!("\"start_ns\":{most}")),
        ("packed_delays", "delays", "\"steps\":[10,10]", "\"steps\":[10,-11]".to_owned()),
        ("packed_delays", "delays", "\"steps\":[10,10]", "\"steps\":[999999999999999999,1]".to_owned()),
        ("packed_delays", "delays", "\"counts\":[2,1]", format!("\"counts\":[2,{most}]")),
        ("packed_slices", "slices", "[0,3,0,5,9,", format!("[0,{most},0,5,9,")),
    ] {
        let (_folder, path) = record();
        read_all(&path).unwrap();
        change(&path, table, column, [from, &to]);
        let refusal = read_all(&path).unwrap_err().to_string();
        assert!(refusal.contains("out of bounds"), "{to}: {refusal}");
    }
}

#[test]
fn contradictory_packed_columns_are_refused() {
    let (_folder, path) = record();
    change(&path, "packed_delays", "delays", ["\"counts\":[2,1]", "\"counts\":[2]"]);
    assert!(read_all(&path).unwrap_err().to_string().contains("2 steps and 1 counts"));
    let (_folder, path) = record();
    change(&path, "packed_slices", "slices", ["[[[0,", "[[],[[0,"]);
    let refusal = read_all(&path).unwrap_err().to_string();
    assert!(refusal.contains("packed_slices of run 1 is of 3 hosts, and packed_reports of 2"), "{refusal}");
}

#[test]
fn data_that_unpacks_to_too_much_is_refused() {
    for (table, column) in
        [("packed_reports", "reports"), ("packed_delays", "delays"), ("packed_slices", "slices")]
    {
        let (_folder, path) = record();
        let bomb = deflate(std::io::repeat(b' ').take(65 << 20));
        assert!(bomb.len() < 1 << 20);
        let raw = Connection::open(&path).unwrap();
        raw.execute(&format!("UPDATE {table} SET {column} = ?1 WHERE run = 2"), [bomb]).unwrap();
        let refusal = read_all(&path).unwrap_err().to_string();
        assert!(refusal.contains(&format!("{table}.{column} of run 2 is out of bounds")), "{refusal}");
    }
}

#[test]
fn reasons_that_runs_have_in_common_are_one_text() {
    let (_folder, path) = without_runs();
    let long = Value::Missing("x".repeat(1 << 14));
    let mut runs: Vec<RunRecord> = (0..3).map(|position| run(0, position, RunStatus::Valid)).collect();
    runs[2].values.insert(Metric::Loss, long);
    Record::open(&path).unwrap().put_runs(&runs).unwrap();
    let raw = Connection::open(&path).unwrap();
    // One of the specification, one of the reasons. The third run's are too long, so its three figures are rows.
    for (table, rows) in [("text", 2), ("shared", 3), ("value", 5)] {
        let count = raw.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get::<_, u32>(0));
        assert_eq!(count.unwrap(), rows, "{table}");
    }
    assert_eq!(read_all(&path).unwrap(), runs);
    raw.execute(
        "UPDATE text SET text = ?1 WHERE text LIKE '%missing%'",
        params![format!("{{\"loss\":{{\"missing\":\"{}\"}}}}", "x".repeat(1 << 14))],
    )
    .unwrap();
    assert!(
        read_all(&path).unwrap_err().to_string().contains("a shared text of 16407 bytes is out of bounds")
    );
}

#[test]
fn many_runs_are_read_in_their_order() {
    let mut record = Record::in_memory("many", &campaign()).unwrap();
    let runs: Vec<RunRecord> = (0..2001).map(|block| run(block, 0, RunStatus::Valid)).collect();
    record.put_runs(&runs).unwrap();
    let found: Vec<RunRecord> = record.runs_in_turn().map(Result::unwrap).collect();
    assert_eq!(found.len(), runs.len());
    for (found, run) in found.into_iter().zip(runs) {
        assert_eq!(found, RunRecord { host_reports: Vec::new(), ..run });
    }
}

#[test]
fn runs_that_are_read_share_what_they_have_alike() {
    let mut record = Record::in_memory("alike", &campaign()).unwrap();
    let runs: Vec<RunRecord> = (0..1500).map(|block| run(block, 0, RunStatus::Valid)).collect();
    record.put_runs(&runs).unwrap();
    let found = record.runs().unwrap();
    let [one, .., other] = &found[..] else { panic!("{} runs", found.len()) };
    assert!(std::ptr::eq(&*one.trial.cell.settings, &*other.trial.cell.settings));
    assert!(std::ptr::eq(&*one.spec.probe, &*other.spec.probe));
    assert!(std::ptr::eq(&*one.spec.tuning, &*other.spec.tuning));
    assert!(std::ptr::eq(&one.values[&Metric::Loss], &other.values[&Metric::Loss]));
    // What each of them holds for itself, beside its figures.
    assert!(size_of::<RunRecord>() <= 448, "{}", size_of::<RunRecord>());
}

/// A record of format 7.
fn kept() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kept.stacklab");
    std::fs::write(&path, include_bytes!("../../../../tests/records/kept.stacklab")).unwrap();
    (folder, path)
}

fn read_format(path: &Path) -> i64 {
    let raw = Connection::open(path).unwrap();
    raw.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

#[test]
fn a_record_of_format_7_is_read_and_resumed() {
    let (_folder, path) = kept();
    let before = read_all(&path).unwrap();
    assert_eq!((read_format(&path), before.len()), (7, 16));
    for run in &before {
        assert_eq!(run.host_reports.len(), 2);
        assert!(run.host_reports.iter().any(|report| report.delays.is_some()) || !run.values.is_empty());
    }
    let added = run(1000, 0, RunStatus::Valid);
    Record::open(&path).unwrap().put_run(&added).unwrap();
    assert_eq!(read_format(&path), FORMAT);
    let mut after = read_all(&path).unwrap();
    assert_eq!(after.pop(), Some(added));
    assert_eq!(after, before);
}
