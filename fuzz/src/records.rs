//! Records of strangers.

use crate::outputs::{Output, output_of, read_all, read_all_unchecked};
use crate::{Bytes, is_plain};
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, MAIN_DB, params_from_iter};
use serde_json::Value;
use stacklab_model::RunRecord;
use stacklab_report::OutputFormat as Format;
use stacklab_store::fuzzing::pack;
use stacklab_store::{Record, StoreError};
use std::fs;
use std::path::Path;
use std::sync::{LazyLock, Mutex, PoisonError};
use tempfile::tempdir;

/// A record that others are made of.
struct BaseRecord {
    file: Vec<u8>,
    /// Its runs have the numbers 1 to this one.
    runs: i64,
    /// The same, open: each change of values is rolled back. Opening it anew takes longer than most changes.
    open: Mutex<Connection>,
}

const ECHO: Option<[&str; 2]> = Some(["udp", "echo"]);
const STREAM: Option<[&str; 2]> = Some(["tcp", "stream"]);

/// A kept record, and the same as an interleaved campaign's.
static WHOLE: LazyLock<[BaseRecord; 2]> = LazyLock::new(|| {
    [make_kept(None, false, RecordFormat::Present), make_kept(None, true, RecordFormat::Present)]
});
/// The same with the runs of one transport and one probe only: an input takes a tenth of the time. One is of format 7.
static SMALL: LazyLock<[BaseRecord; 4]> = LazyLock::new(|| {
    [
        make_kept(ECHO, false, RecordFormat::Present),
        make_kept(ECHO, true, RecordFormat::Seven),
        make_kept(STREAM, false, RecordFormat::Present),
        make_kept(STREAM, true, RecordFormat::Present),
    ]
});

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecordFormat {
    /// The one that stacklab writes.
    Present,
    Seven,
}

/// The kept record, with the runs of all or only one transport and probe.
fn make_kept(only: Option<[&str; 2]>, is_interleaved: bool, format: RecordFormat) -> BaseRecord {
    let folder = tempdir().expect("a temporary folder");
    let mut path = folder.path().join("record.stacklab");
    fs::write(&path, include_bytes!("../../tests/records/kept.stacklab")).expect("a record is written");
    let open = Connection::open(&path).expect("it is a database");
    if let Some(only) = only {
        reduce(&open, only).expect("it has these tables");
    }
    if is_interleaved {
        open.execute_batch(INTERLEAVED).expect("it has these tables");
    }
    drop(open);
    if format == RecordFormat::Present {
        let present = folder.path().join("present.stacklab");
        write_again(&path, &present).expect("a record is written");
        path = present;
    }
    let open = Connection::open(&path).expect("it is a database");
    let runs = open.query_row("SELECT max(id) FROM run", [], |row| row.get(0)).expect("it has runs");
    // The file's name goes with the folder.
    open.execute_batch("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = MEMORY;")
        .expect("its own file");
    open.set_prepared_statement_cache_capacity(COLUMNS.len());
    BaseRecord { file: fs::read(&path).expect("it was written"), runs, open: Mutex::new(open) }
}

/// Writes what a record holds into a new one, which has the present format.
fn write_again(from: &Path, to: &Path) -> Result<(), StoreError> {
    let old = Record::read(from)?;
    let mut new = Record::create(to, &old.campaign()?)?;
    for host in old.hosts()? {
        new.put_host(&host)?;
    }
    for run in old.runs()? {
        let host_reports = old.host_reports(&run.trial)?;
        new.put_run(&RunRecord { host_reports, ..run })?;
    }
    new.put_explanations(&old.explanations()?)
}

/// Leaves the runs of one transport and probe, with few delays, and the study that asks for them.
fn reduce(connection: &Connection, [transport, probe]: [&str; 2]) -> rusqlite::Result<()> {
    let text: String = connection.query_row("SELECT study_text FROM campaign", [], |row| row.get(0))?;
    let text = text.replace("[\"udp\", \"tcp\"]", &format!("[\"{transport}\"]"));
    let heading = format!("[probe.{probe}]");
    let parts: Vec<&str> = text
        .split("\n\n")
        .filter(|part| !part.starts_with("[probe.") || part.starts_with(&heading))
        .collect();
    connection.execute("UPDATE campaign SET study_text = ?", [parts.join("\n\n")])?;
    connection.pragma_update(None, "foreign_keys", false)?;
    connection.execute("DELETE FROM run WHERE transport <> ? OR probe <> ?", [transport, probe])?;
    for table in ["value", "host_report", "delays", "series", "warning"] {
        connection.execute_batch(&format!(
            "DELETE FROM {table} WHERE run NOT IN (SELECT id FROM run);
             UPDATE {table} SET run = (SELECT count(*) FROM run WHERE id <= {table}.run);"
        ))?;
    }
    connection.execute_batch(
        "UPDATE run SET id = (SELECT count(*) FROM run AS other WHERE other.id <= run.id),
             position = (SELECT count(*) FROM run AS other WHERE other.block = run.block AND other.id < run.id);
         UPDATE delays SET buckets = (SELECT json_group_array(json_array(delay, count)) FROM (
             SELECT CAST(round(sum(delay * count) * 1.0 / sum(count)) AS INTEGER) AS delay, sum(count) AS count FROM (
                 SELECT json_extract(value, '$[0]') AS delay, json_extract(value, '$[1]') AS count,
                     row_number() OVER (ORDER BY key) * 16 / (count(*) OVER () + 1) AS part FROM json_each(buckets))
             GROUP BY part));
         PRAGMA page_size = 1024;
         VACUUM;",
    )
}

/// Makes arms of the runs, two of each trial, with some slices.
const INTERLEAVED: &str = "
    UPDATE run SET spec = json_set(spec, '$.slicing', json('{\"slice_ns\":5000000}')),
        started_unix_ns = 1795398789000000000 + (block * 8 + position / 2) * 1000000000;
    INSERT INTO slice (run, direction, role, round, messages, at_first, first_ns, last_ns, delay_ns, jitter_ns, cpu_ns)
        SELECT run, direction, role, value, 4 + run % 2, 1, 1000000000 + value * 10000000, 1005000000 + value * 10000000,
            40000 + run, 900.5, 3000000 FROM host_report, json_each('[0,1,2,3,4,5]');
    INSERT INTO explanation (probe, factor, baseline, candidate, health) VALUES ('stream', 'family',
        '{\"transport\":\"udp\",\"size_of\":\"payload\",\"size\":128,\"family\":\"ipv4\"}',
        '{\"transport\":\"udp\",\"size_of\":\"payload\",\"size\":128,\"family\":\"ipv6\"}',
        '{\"lock_ratio\":1.0,\"coverage\":0.9,\"overhead\":0.1,\"unmapped\":0.0,\"other_load\":0.0,\"samples\":9,\"messages\":9,
          \"lost\":0,\"throttled\":0,\"unmapped_functions\":[]}');
    INSERT INTO stage_cost SELECT 1, value, CASE WHEN value < 3 THEN 'stage' ELSE 'whole' END, 'stage ' || value, 90.5, 95.5, 5.0, 1.0,
        CASE WHEN value < 3 THEN 0.01 END FROM json_each('[0,1,2,3,4,5,6,7]');
    INSERT INTO stack_cost SELECT 1, value, 'entry;call;f' || value, 5, 6, 50.0, 60.0 FROM json_each('[0,1,2,3,4]');";
/// The columns of both formats that hold more than a key, as table and column.
const COLUMNS: [(&str, &str); 54] = [
    ("campaign", "study_text"),
    ("campaign", "study_name"),
    ("campaign", "program_version"),
    ("campaign", "scale"),
    ("campaign", "settings"),
    ("campaign", "seed"),
    ("campaign", "testbed"),
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
    ("value", "number"),
    ("value", "reason"),
    ("host_report", "report"),
    ("delays", "buckets"),
    ("series", "bytes"),
    ("warning", "text"),
    ("slice", "round"),
    ("slice", "messages"),
    ("slice", "last_ns"),
    ("slice", "delay_ns"),
    ("explanation", "probe"),
    ("explanation", "factor"),
    ("explanation", "baseline"),
    ("explanation", "health"),
    ("explanation", "reason"),
    ("stage_cost", "kind"),
    ("stage_cost", "name"),
    ("stage_cost", "difference_ns"),
    ("stage_cost", "adjusted_p"),
    ("stack_cost", "functions"),
    ("stack_cost", "baseline_samples"),
    ("stack_cost", "candidate_ns"),
    ("text", "text"),
    ("shared", "spec"),
    ("shared", "absent"),
    ("packed_reports", "reports"),
    ("packed_delays", "delays"),
    ("packed_slices", "slices"),
];

/// A changed small record. Of the first byte, the lowest bit says whether other bytes replace some of the file or
/// values some of the rows; the next one and the highest, of which record; the third, whether it is read as one that
/// may be damaged. All of it is read or it is refused.
pub fn record(data: &[u8]) {
    let is_unchecked = data.first().is_some_and(|choice| choice & 4 != 0);
    with_changed_record(data, &*SMALL, |record| {
        printable(if is_unchecked { read_all_unchecked(record) } else { read_all(record) })
    });
}

/// As [`record`], but both ways, and of a whole record.
pub fn records(data: &[u8]) {
    for kept in [&SMALL[..], &WHOLE[..]] {
        with_changed_record(data, kept, |record| {
            [printable(read_all(record)), printable(read_all_unchecked(record))]
        });
    }
}

/// A changed small record, and by the other bits of its first byte one report, page, set of figures or export of it.
/// That is made or refused; nothing of it changes a terminal, and what machines read parses.
pub fn report(data: &[u8]) {
    with_changed_record(data, &*SMALL, |record| holds(record, chosen(data)));
}

fn chosen(data: &[u8]) -> Output {
    let choice = usize::from(data.first().copied().unwrap_or(0) >> 2 & 31);
    Output::ALL[choice % Output::ALL.len()]
}

/// As [`report`], but all of them, and of a whole record; of an unchanged one, for which a corpus has an input each,
/// the chosen one.
pub fn reports(data: &[u8]) {
    let outputs = if data.len() == 1 { vec![chosen(data)] } else { Output::ALL.to_vec() };
    for kept in [&SMALL[..], &WHOLE[..]] {
        with_changed_record(data, kept, |record| outputs.iter().for_each(|output| holds(record, *output)));
    }
}

fn holds(record: &[u8], output: Output) {
    let Some(files) = printable(output_of(record, output)) else { return };
    match (output, &files[..]) {
        (Output::Report(Format::Json | Format::Html) | Output::Served, [file]) => drop(parse_json(file)),
        (Output::Report(Format::Html), [page, document]) => {
            let page = std::str::from_utf8(page).expect("it is text");
            let (_, data) =
                page.split_once("<script type=\"application/json\" id=\"document\">").expect("a document");
            let (data, _) = data.split_once('<').expect("the document ends");
            assert_eq!(parse_json(data.as_bytes()), parse_json(document));
        }
        (Output::Report(Format::Csv), [file]) => {
            check_plain(file);
            check_rows(file);
        }
        (Output::Report(Format::Text | Format::Markdown | Format::Latex), [file]) => check_plain(file),
        (Output::Report(Format::RawCsv) | Output::Runs(_) | Output::Slices(_), [file]) => check_rows(file),
        (Output::Figures(Format::Svg), files) => files.iter().for_each(|file| check_plain(file)),
        (Output::Figures(_), files) => assert!(files.iter().all(|file| file.starts_with(b"%PDF-"))),
        (_, files) => panic!("{output:?} has {} files", files.len()),
    }
}

fn parse_json(file: &[u8]) -> Value {
    serde_json::from_slice(file).expect("it is JSON")
}

fn check_plain(file: &[u8]) {
    let text = std::str::from_utf8(file).expect("it is text");
    assert!(is_plain(text), "{text:?}");
}

fn check_rows(file: &[u8]) {
    let mut rows = csv::Reader::from_reader(file);
    assert!(rows.records().all(|row| row.is_ok()), "all rows have the same columns");
}

/// What was made; `None` for a reason, which changes no terminal.
fn printable<T>(made: Result<T, String>) -> Option<T> {
    made.inspect_err(|reason| assert!(is_plain(reason), "{reason:?}")).ok()
}

/// Gives a changed record. SQLite refuses some changes.
fn with_changed_record<T>(data: &[u8], kept: &[BaseRecord], act: impl FnOnce(&[u8]) -> T) {
    let mut bytes = Bytes(data);
    let choice = bytes.number(1) as usize;
    let kept = &kept[(choice >> 1 & 1 | choice >> 6 & 2) % kept.len()];
    let changed =
        if choice & 1 == 0 { Some(with_bytes(&kept.file, bytes)) } else { with_values(kept, bytes) };
    if let Some(changed) = changed {
        act(&changed);
    }
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

/// Each change: a column, a row, a kind, and the value; texts with two bytes for their length, which packed columns
/// have compressed. A column of the other format changes nothing.
fn with_values(kept: &BaseRecord, mut bytes: Bytes) -> Option<Vec<u8>> {
    let open = kept.open.lock().unwrap_or_else(PoisonError::into_inner);
    open.execute_batch("BEGIN").expect("nothing else has it open");
    while !bytes.is_over() {
        let (table, column) = COLUMNS[bytes.number(1) as usize % COLUMNS.len()];
        let row = bytes.number(1) as i64;
        let value = match bytes.number(1) % 4 {
            0 => Sql::Integer(bytes.number(8) as i64),
            1 => Sql::Real(f64::from_bits(bytes.number(8))),
            2 => Sql::Null,
            _ => {
                let length = bytes.number(2) as usize;
                let text = String::from_utf8_lossy(bytes.some(length)).into_owned();
                if table.starts_with("packed_") { Sql::Blob(pack(&text)) } else { Sql::Text(text) }
            }
        };
        let key = match table {
            "campaign" | "host" | "run" | "explanation" | "text" => "id",
            "stage_cost" | "stack_cost" => "place",
            "warning" => "rowid",
            _ => "run",
        };
        let sql = format!("UPDATE {table} SET {column} = ? WHERE {key} = 1 + ? % {}", kept.runs);
        let _ = open
            .prepare_cached(&sql)
            .and_then(|mut update| update.execute(params_from_iter([value, Sql::Integer(row)])));
    }
    let changed = open.serialize(MAIN_DB).ok().map(|file| file.to_vec());
    open.execute_batch("ROLLBACK").expect("its journal is memory");
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unchanged_records_are_whole_and_compare_their_arms() {
        for kept in SMALL.iter().chain(&*WHOLE) {
            read_all(&kept.file).unwrap();
            read_all_unchecked(&kept.file).unwrap();
            let files = output_of(&kept.file, Output::Report(Format::Json)).unwrap();
            let findings: Value = serde_json::from_slice(&files[0]).unwrap();
            assert_eq!(findings["valid_runs"], kept.runs, "{}", findings["invalid_runs"]);
            let comparisons = findings["comparisons"].as_array().unwrap();
            assert!(comparisons.iter().any(|one| one["tests"]["p"].is_number()), "{findings:#}");
        }
    }

    fn read_version(kept: &BaseRecord) -> i64 {
        let open = kept.open.lock().unwrap();
        open.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
    }

    #[test]
    fn records_have_the_present_format_but_for_one() {
        assert_eq!(SMALL.each_ref().map(read_version), [8, 7, 8, 8]);
        assert_eq!(WHOLE.each_ref().map(read_version), [8, 8]);
    }

    #[test]
    fn packed_columns_are_changed_too() {
        // Of `packed_delays.delays`, a text of two bytes: JSON of no host.
        let change = [&[52, 0, 3, 0, 2][..], b"[]"].concat();
        for kept in [&SMALL[0], &WHOLE[1]] {
            let changed = with_values(kept, Bytes(&change)).expect("SQLite takes the change");
            let reason = read_all(&changed).unwrap_err();
            assert!(reason.contains("packed_delays of run 1 is of 0 hosts"), "{reason}");
        }
    }

    #[test]
    fn a_change_of_values_leaves_nothing_for_the_next_one() {
        // Of the column `settings` of the first row, a text of two bytes that is no JSON.
        let change = [&[4, 0, 3, 0, 2][..], b"no"].concat();
        for kept in SMALL.iter() {
            let unchanged = with_values(kept, Bytes(&[])).expect("SQLite takes the change");
            assert!(unchanged == kept.file);
            let changed = with_values(kept, Bytes(&change)).expect("SQLite takes the change");
            read_all(&changed).unwrap_err();
            let unchanged = with_values(kept, Bytes(&[])).expect("SQLite takes the change");
            assert!(unchanged == kept.file);
        }
    }
}
