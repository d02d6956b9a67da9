//! Records on a real disk: data is read back unchanged, and an invalid record is refused with its specific error.

mod explanations;
mod limits;
mod made;
mod packed;

use made::{campaign, host, host_report, record, run};
use stacklab_model::*;
use stacklab_store::{Campaign, FIRST_FORMAT, FORMAT, Imported, Origin, Record, StoreError};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn refusal(result: Result<Record, StoreError>) -> String {
    result.err().expect("it should be refused").to_string()
}

#[test]
fn the_document_has_every_table_and_column() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/record.md")).unwrap();
    assert!(page.starts_with(&format!("# The record, format {FORMAT}\n")));
    let (_folder, path) = record();
    let record = rusqlite::Connection::open(path).unwrap();
    let columns =
        "SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table'";
    let mut columns = record.prepare(columns).unwrap();
    let columns = columns.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let columns: Vec<(String, String)> = columns.map(Result::unwrap).collect();
    assert!(columns.len() > 80, "{columns:?}");
    for (table, column) in columns {
        let row = page.lines().find(|line| line.starts_with(&format!("| `{table}` |")));
        let row = row.unwrap_or_else(|| panic!("docs/record.md lacks the table {table}"));
        // Keys join tables.
        let is_key = ["id", "run", "explanation"].contains(&&*column);
        assert!(is_key || row.contains(&format!("`{column}`")), "docs/record.md lacks {table}.{column}");
    }
}

#[test]
fn keeps_intervals_of_imported_runs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.stacklab");
    let origin = Origin {
        tool: "iperf".into(),
        version: None,
        file: "a.txt".into(),
        sha256: "0".repeat(64),
        overrides: String::new(),
    };
    let series = ToolSeries { role: Role::Receiver, rows: host_report(Role::Sender).series };
    let mut runs = Vec::new();
    for (position, series) in [(0, Some(series.clone())), (1, None)] {
        let run = RunRecord { host_reports: Vec::new(), ..run(0, position, RunStatus::Valid) };
        runs.push(Imported { origin: origin.clone(), run, series });
    }
    Record::import(&path, &campaign(), &runs).unwrap();
    let record = Record::read(&path).unwrap();
    assert_eq!(record.tool_series(&runs[0].run.trial).unwrap(), Some(series));
    assert_eq!(record.tool_series(&runs[1].run.trial).unwrap(), None);
    // A measured run's intervals are those of its hosts' reports.
    let (_folder, path) = self::record();
    let record = Record::read(&path).unwrap();
    assert_eq!(record.tool_series(&run(0, 0, RunStatus::Valid).trial).unwrap(), None);
}

fn read_reports(path: &Path) -> Result<(), StoreError> {
    let record = Record::read(path)?;
    for run in record.runs()? {
        record.host_reports(&run.trial)?;
    }
    Ok(())
}

#[test]
fn numbers_that_sums_would_overflow_are_refused() {
    let most = u64::MAX;
    for (column, number) in [
        ("run.block", "4294967295".to_owned()),
        ("run.position", "4294967295 - position".to_owned()),
        ("run.size", "4294967295".to_owned()),
        ("run.wall_ns", i64::MAX.to_string()),
        ("run.lost_network", "-1".to_owned()),
        ("text.text", format!("replace(text, '\"warmup_ns\":1', '\"warmup_ns\":{most}')")),
    ] {
        let (_folder, path) = record();
        read_reports(&path).unwrap();
        let (table, column) = column.split_once('.').unwrap();
        let changed = format!("UPDATE {table} SET {column} = {number}");
        rusqlite::Connection::open(&path).unwrap().execute_batch(&changed).unwrap();
        let refusal = read_reports(&path).unwrap_err().to_string();
        assert!(refusal.contains("out of bounds"), "{changed}: {refusal}");
    }
}

/// Changes every figure, and reads the runs.
fn change_figures(path: &Path, metric: &str, figure: &str) -> Result<(), StoreError> {
    let changed = format!("UPDATE value SET metric = '{metric}', number = {figure} WHERE kind = 'measured'");
    rusqlite::Connection::open(path).unwrap().execute_batch(&changed).unwrap();
    Record::read(path).unwrap().runs().map(drop)
}

#[test]
fn share_above_all_is_refused() {
    let (_folder, path) = record();
    let refusal = change_figures(&path, "echo_loss", "7.0").unwrap_err().to_string();
    assert!(refusal.contains("echo_loss = 7 is out of bounds"), "{refusal}");
    assert!(change_figures(&path, "echo_loss", "-1.0").is_err());
    change_figures(&path, "echo_loss", "1.0").unwrap();
    change_figures(&path, "one_way_delay", "-1.0").unwrap();
}

#[test]
fn what_goes_in_comes_out() {
    let (_folder, path) = record();
    let mut record = Record::open(&path).unwrap();
    assert_eq!(record.campaign().unwrap(), campaign());
    let host = host();
    record.put_host(&host).unwrap();
    assert_eq!(record.hosts().unwrap(), [host]);
    let wanted = [run(0, 0, RunStatus::Valid), run(0, 1, RunStatus::Invalid(vec!["a reason".into()]))];
    for (found, wanted) in record.runs().unwrap().into_iter().zip(&wanted) {
        assert_eq!(record.host_reports(&found.trial).unwrap(), wanted.host_reports);
        assert_eq!(RunRecord { host_reports: wanted.host_reports.clone(), ..found }, *wanted);
    }
}

#[test]
fn run_in_both_directions_keeps_its_four_sides_apart() {
    let (_folder, path) = record();
    let mut record = Record::open(&path).unwrap();
    let mut both = run(1, 0, RunStatus::Valid);
    both.trial.cell.settings.direction = Some(Direction::Both);
    both.host_reports.extend([host_report(Role::Sender), host_report(Role::Receiver)]);
    for (sent, report) in (1..).zip(&mut both.host_reports) {
        report.sent.measured = sent;
        report.delays.as_mut().unwrap().mean_ns = sent as f64;
        report.series[0].messages = sent;
    }
    record.put_run(&both).unwrap();
    assert_eq!(record.host_reports(&both.trial).unwrap(), both.host_reports);
}

#[test]
fn runs_made_together_are_stored_all_or_none() {
    let (_folder, path) = record();
    let mut record = Record::open(&path).unwrap();
    let together = [run(1, 0, RunStatus::Valid), run(1, 1, RunStatus::Valid)];
    record.put_runs(&together).unwrap();
    assert_eq!(record.run_count().unwrap(), 4);
    // The second of them is in the record already.
    assert!(record.put_runs(&[run(1, 2, RunStatus::Valid), run(1, 1, RunStatus::Valid)]).is_err());
    assert_eq!(record.run_count().unwrap(), 4);
}

#[test]
fn between_commits_a_campaign_is_one_file() {
    let (folder, path) = record();
    let _open = Record::open(&path).unwrap();
    let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(files, [path]);
}

#[test]
fn the_same_run_is_not_stored_twice() {
    let (_folder, path) = record();
    let mut record = Record::open(&path).unwrap();
    assert!(record.put_run(&run(0, 0, RunStatus::Valid)).is_err());
    assert_eq!(record.runs().unwrap().len(), 2);
}

#[test]
fn a_record_in_use_can_be_read_and_not_written() {
    let (_folder, path) = record();
    let mut writer = Record::open(&path).unwrap();
    let text = refusal(Record::open(&path));
    assert!(text.contains("is in use by another stacklab"), "{text}");
    let reader = Record::read(&path).unwrap();
    writer.put_run(&run(1, 0, RunStatus::Valid)).unwrap();
    assert_eq!(reader.runs().unwrap().len(), 3);
}

/// The refusals to open and to read a file with these bytes.
fn refuse_bytes(path: &Path, bytes: &[u8]) -> (String, String) {
    std::fs::write(path, bytes).unwrap();
    (refusal(Record::open(path)), refusal(Record::read(path)))
}

#[test]
fn what_is_no_sound_record_is_refused_by_name() {
    let (folder, path) = record();
    let bytes = std::fs::read(&path).unwrap();
    for length in [bytes.len() / 2, 4096, bytes.len() - 4096] {
        let (open, read) = refuse_bytes(&folder.path().join("cut"), &bytes[..length]);
        assert!(open.contains("is damaged") && read.contains("is damaged"), "{length}: {open} {read}");
    }
    for content in ["", "just a text\n"] {
        let (open, read) = refuse_bytes(&folder.path().join("text"), content.as_bytes());
        assert!(
            open.contains("is not a stacklab record") && read.contains("is not a stacklab record"),
            "{open} {read}"
        );
    }
    let (open, _) = refuse_bytes(&folder.path().join("short"), &bytes[..50]);
    assert!(open.contains("is damaged"), "{open}");
    let text = refusal(Record::read(&folder.path().join("nothing")));
    assert!(text.contains("there is no record"), "{text}");
    let text = refusal(Record::create(&path, &campaign()));
    assert!(text.contains("exists already"), "{text}");
    assert_eq!(std::fs::read(&path).unwrap(), bytes, "a refused record is left as it was");
}

#[test]
fn another_programs_database_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.db");
    rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE a (b)").unwrap();
    let text = refusal(Record::open(&path));
    assert!(text.contains("is not a stacklab record"), "{text}");
}

#[test]
fn refuses_other_formats() {
    let (_folder, path) = record();
    let older = FIRST_FORMAT - 1;
    let newer = FORMAT + 1;
    for (format, text) in [
        (newer, format!("has record format {newer}, and this version reads formats up to {FORMAT}")),
        (
            older,
            format!(
                "has record format {older} of an unreleased version, and this stacklab reads formats {FIRST_FORMAT} to {FORMAT}: measure again"
            ),
        ),
    ] {
        rusqlite::Connection::open(&path).unwrap().pragma_update(None, "user_version", format).unwrap();
        for refused in [refusal(Record::read(&path)), refusal(Record::open(&path))] {
            assert!(refused.contains(&text), "{refused}");
        }
    }
}

#[test]
fn a_record_that_cannot_be_made_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("no/such/folder.stacklab");
    let text = refusal(Record::create(&path, &campaign()));
    assert!(text.contains("could not make a record"), "{text}");
    assert!(!path.exists());
}

/// A record after a kill in the middle of a commit: partly overwritten, with the journal that rolls it back.
fn copy_in_mid_commit(folder: &TempDir, path: &Path) -> PathBuf {
    let raw = rusqlite::Connection::open(path).unwrap();
    // Without a cache, changes reach the file before the commit.
    raw.execute_batch("PRAGMA cache_size = 1; BEGIN").unwrap();
    raw.execute_batch(
        "UPDATE campaign SET study_name = ''; UPDATE run SET reasons = hex(randomblob(100000))",
    )
    .unwrap();
    let copy = folder.path().join("killed.stacklab");
    std::fs::copy(path, &copy).unwrap();
    std::fs::copy(format!("{}-journal", path.display()), format!("{}-journal", copy.display())).unwrap();
    copy
}

#[test]
fn commit_cut_short_by_a_kill_is_undone_by_reading() {
    let (folder, path) = record();
    let before = std::fs::read(&path).unwrap();
    let killed = copy_in_mid_commit(&folder, &path);
    assert_ne!(std::fs::read(&killed).unwrap(), before, "the case is what it is for");
    assert_eq!(Record::read(&killed).unwrap().runs().unwrap().len(), 2);
    assert_eq!(std::fs::read(&killed).unwrap(), before);
    assert!(!folder.path().join("killed.stacklab-journal").exists());
}

#[test]
fn new_record_is_not_undone_by_a_removed_ones_journal() {
    let (folder, path) = record();
    let killed = copy_in_mid_commit(&folder, &path);
    std::fs::remove_file(&killed).unwrap();
    let campaign = Campaign { study_name: "another.toml".into(), ..campaign() };
    drop(Record::create(&killed, &campaign).unwrap());
    let again = Record::read(&killed).unwrap();
    assert_eq!(again.campaign().unwrap(), campaign);
    assert!(again.runs().unwrap().is_empty());
}
