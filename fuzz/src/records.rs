//! Records of strangers.

use crate::{Bytes, is_plain};
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, MAIN_DB, params_from_iter};
use serde_json::Value;
use stacklab::untrusted::{Output, output_of, read_all};
use stacklab_report::{FigureFormat, Format};
use stacklab_store::Record;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;
use tempfile::{tempdir, tempdir_in};

/// The records that all others are made of: a kept one, and the same in the newest format as an interleaved campaign's.
static KEPT: LazyLock<[Vec<u8>; 2]> = LazyLock::new(|| {
    let kept = include_bytes!("../../tests/records/format2.stacklab");
    let folder = tempdir().expect("a temporary folder");
    let path = folder.path().join("record.stacklab");
    fs::write(&path, kept).expect("a record is written");
    drop(Record::open(&path).expect("it is brought up to date"));
    let connection = Connection::open(&path).expect("it is a database");
    connection.execute_batch(INTERLEAVED).expect("it has these tables");
    drop(connection);
    [kept.to_vec(), fs::read(&path).expect("it was written")]
});
/// Makes arms of the runs, two of each trial, with some slices.
const INTERLEAVED: &str = "
    UPDATE run SET spec = json_set(spec, '$.slicing', json('{\"slice_ns\":5000000}')),
        started_unix_ns = 1795398789000000000 + (block * 8 + position / 2) * 1000000000;
    INSERT INTO slice (run, direction, role, round, messages, at_first, first_ns, last_ns, delay_ns, jitter_ns, cpu_ns)
        SELECT run, direction, role, value, 200 + run, 1, 1000000000 + value * 10000000, 1005000000 + value * 10000000,
            40000 + run, 900.5, 3000000 FROM side, json_each('[0,1,2,3,4,5]');";
/// Its columns that hold more than a key, as table and column.
const COLUMNS: [(&str, &str); 36] = [
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
    ("slice", "round"),
    ("slice", "messages"),
    ("slice", "last_ns"),
    ("slice", "delay_ns"),
];

/// A changed record: of the first byte, the lowest bit says whether other bytes replace some of the file or values some
/// of the rows, and the next one of which record. All of it is read or it is refused.
pub fn record(data: &[u8]) {
    with_changed(data, |path| told(read_all(path)));
}

/// A changed record, and by the other bits of its first byte one report, page, set of figures or export of it. That is
/// made or refused; nothing of it changes a terminal, and what machines read parses.
pub fn report(data: &[u8]) {
    let choice = usize::from(data.first().copied().unwrap_or(0) >> 2);
    let output = Output::ALL[choice % Output::ALL.len()];
    with_changed(data, |path| holds(path, output));
}

/// As [`report`], but all of them; of an unchanged record, for which a corpus has an input each, the chosen one.
pub fn all_reports(data: &[u8]) {
    match data {
        [_] => report(data),
        _ => with_changed(data, |path| Output::ALL.iter().for_each(|output| holds(path, *output))),
    }
}

fn holds(path: &Path, output: Output) {
    let Some(files) = told(output_of(path, output)) else { return };
    let json = |file: &[u8]| serde_json::from_slice::<Value>(file).expect("it is JSON");
    let plain = |file: &[u8]| {
        let text = std::str::from_utf8(file).expect("it is text");
        assert!(is_plain(text), "{text:?}");
    };
    let rows = |file: &[u8]| {
        let mut rows = csv::Reader::from_reader(file);
        assert!(rows.records().all(|row| row.is_ok()), "all rows have the same columns");
    };
    match (output, &files[..]) {
        (Output::Report(Format::Json) | Output::Served, [file]) | (Output::Page, [file]) => drop(json(file)),
        (Output::Page, [page, document]) => {
            let page = std::str::from_utf8(page).expect("it is text");
            let (_, data) =
                page.split_once("<script type=\"application/json\" id=\"document\">").expect("a document");
            let (data, _) = data.split_once('<').expect("the document ends");
            assert_eq!(json(data.as_bytes()), json(document));
        }
        (Output::Report(Format::Csv), [file]) => {
            plain(file);
            rows(file);
        }
        (Output::Report(Format::Text | Format::Markdown) | Output::Latex, [file]) => plain(file),
        (Output::Report(Format::RawCsv) | Output::Runs(_) | Output::Slices(_), [file]) => rows(file),
        (Output::Figures(FigureFormat::Svg), files) => files.iter().for_each(|file| plain(file)),
        (Output::Figures(_), files) => assert!(files.iter().all(|file| file.starts_with(b"%PDF-"))),
        (_, files) => panic!("{output:?} has {} files", files.len()),
    }
}

/// What was made; `None` for a reason, which changes no terminal.
fn told<T>(made: Result<T, String>) -> Option<T> {
    made.inspect_err(|reason| assert!(is_plain(reason), "{reason:?}")).ok()
}

/// Gives the file of a changed record. SQLite refuses some changes.
fn with_changed<T>(data: &[u8], act: impl FnOnce(&Path) -> T) {
    let mut bytes = Bytes(data);
    let choice = bytes.number(1) as usize;
    let kept = &KEPT[choice >> 1 & 1];
    let changed = if choice & 1 == 0 { Some(with_bytes(kept, bytes)) } else { with_values(kept, bytes) };
    let Some(changed) = changed else { return };
    // In memory if there is such a folder.
    let folder = tempdir_in("/dev/shm").or_else(|_| tempdir()).expect("a temporary folder");
    let path = folder.path().join("record.stacklab");
    fs::write(&path, changed).expect("a record is written");
    act(&path);
}

/// Each change: three bytes where, one how many, and these.
fn with_bytes(kept: &[u8], mut bytes: Bytes) -> Vec<u8> {
    let mut file = kept.to_vec();
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
fn with_values(kept: &[u8], mut bytes: Bytes) -> Option<Vec<u8>> {
    let mut memory = Connection::open_in_memory().ok()?;
    memory.deserialize_read_exact(MAIN_DB, kept, kept.len(), false).ok()?;
    while !bytes.is_over() {
        let (table, column) = COLUMNS[bytes.number(1) as usize % COLUMNS.len()];
        let row = bytes.number(1) as i64;
        let value = match bytes.number(1) % 4 {
            0 => Sql::Integer(bytes.number(8) as i64),
            1 => Sql::Real(f64::from_bits(bytes.number(8))),
            2 => Sql::Null,
            _ => {
                let length = bytes.number(2) as usize;
                Sql::Text(String::from_utf8_lossy(bytes.some(length)).into_owned())
            }
        };
        let key = if ["campaign", "host", "run"].contains(&table) { "id" } else { "run" };
        let key = if table == "warning" { "rowid" } else { key };
        let sql = format!("UPDATE {table} SET {column} = ? WHERE {key} = 1 + ? % 16");
        let _ = memory.execute(&sql, params_from_iter([value, Sql::Integer(row)]));
    }
    Some(memory.serialize(MAIN_DB).ok()?.to_vec())
}
