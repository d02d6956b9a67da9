//! Records made to do harm, and records read while a campaign writes them.

use crate::made::{host, run, without_runs};
use rusqlite::Connection;
use stacklab_model::RunStatus;
use stacklab_store::{Record, StoreError};
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Returns a result within a time limit that is long for a normal operation and short for an endless one.
fn soon<T: Send + 'static>(what: impl FnOnce() -> T + Send + 'static) -> T {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || send.send(what()));
    receive.recv_timeout(Duration::from_secs(30)).expect("it should end")
}

/// The refusals of all three ways to open a record, and of counting its runs.
fn refusals(path: &Path) -> Vec<String> {
    let path = path.to_owned();
    soon(move || {
        [Record::open_unchecked, Record::read, Record::open]
            .map(|opened| opened(&path).and_then(|record| record.run_count()))
            .into_iter()
            .map(|counted| counted.err().map_or_else(String::new, |refusal| refusal.to_string()))
            .collect()
    })
}

#[test]
fn what_would_run_while_it_is_read_is_refused() {
    const ENDLESS: &str =
        "WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT id FROM n";
    for (made, what) in [
        (format!("DROP TABLE run; CREATE VIEW run AS {ENDLESS}"), "view run"),
        (format!("DROP TABLE campaign; CREATE VIEW campaign AS {ENDLESS}"), "view campaign"),
        ("ALTER TABLE run ADD COLUMN more TEXT AS (hex(zeroblob(100000000)))".into(), "column of run"),
        ("CREATE VIRTUAL TABLE more USING fts5(a)".into(), "more"),
        ("CREATE TRIGGER more AFTER INSERT ON run BEGIN DELETE FROM run; END".into(), "trigger more"),
    ] {
        let (_folder, path) = without_runs();
        Connection::open(&path).unwrap().execute_batch(&made).unwrap();
        for refusal in refusals(&path) {
            assert!(refusal.contains("contains objects other than a record's tables"), "{made}: {refusal}");
            assert!(refusal.contains(what), "{made}: {refusal}");
        }
    }
}

/// Turns the pages of the table `run` into a tree of few pages with more rows than could ever be read.
fn circle(path: &Path) {
    let raw = Connection::open(path).unwrap();
    raw.execute_batch(
        "DROP TABLE run; CREATE TABLE run (id INTEGER PRIMARY KEY, more TEXT) STRICT;
         INSERT INTO run VALUES (1, 'a')",
    )
    .unwrap();
    let read = |sql: &str| raw.query_row(sql, [], |row| row.get::<_, u32>(0)).unwrap();
    let root = read("SELECT rootpage FROM sqlite_schema WHERE name = 'run'");
    let size = read("PRAGMA page_size") as usize;
    let pages = read("PRAGMA page_count");
    drop(raw);
    let mut file = std::fs::read(path).unwrap();
    let at = (root as usize - 1) * size;
    let leaf = file[at..at + size].to_vec();
    const INNER: u32 = 5;
    file[at..at + size].copy_from_slice(&make_inner_page(size, pages + 1));
    for page in 1..INNER {
        file.extend(make_inner_page(size, pages + page + 1));
    }
    file.extend(leaf);
    file[28..32].copy_from_slice(&(pages + INNER).to_be_bytes());
    std::fs::write(path, file).unwrap();
}

/// An inner page with many cells that all point to one page: the next page.
fn make_inner_page(size: usize, next: u32) -> Vec<u8> {
    let mut page = vec![0; size];
    let cells = 600_u16;
    let cell = size as u16 - 5;
    page[0] = 5;
    page[3..5].copy_from_slice(&cells.to_be_bytes());
    page[5..7].copy_from_slice(&cell.to_be_bytes());
    page[8..12].copy_from_slice(&next.to_be_bytes());
    for place in 0..usize::from(cells) {
        page[12 + 2 * place..14 + 2 * place].copy_from_slice(&cell.to_be_bytes());
    }
    page[size - 5..size - 1].copy_from_slice(&next.to_be_bytes());
    page[size - 1] = 1;
    page
}

#[test]
fn reading_ends_where_a_records_pages_lead_in_circles() {
    let (_folder, path) = without_runs();
    circle(&path);
    for refusal in refusals(&path) {
        assert!(refusal.contains("is damaged"), "{refusal}");
    }
}

#[test]
fn reading_ends_where_a_records_tables_have_no_keys() {
    let (_folder, path) = without_runs();
    Connection::open(&path)
        .unwrap()
        .execute_batch(
            "PRAGMA foreign_keys = OFF; DROP TABLE run; DROP TABLE packed_reports;
             CREATE TABLE run (id INTEGER, block INTEGER, position INTEGER) STRICT;
             CREATE TABLE packed_reports (run INTEGER, reports BLOB) STRICT;
             WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < 20000) INSERT INTO run SELECT id, id, 0 FROM n;
             INSERT INTO packed_reports VALUES (1, x'')",
        )
        .unwrap();
    let refusal = soon(move || {
        let record = Record::read(&path).unwrap();
        // As many runs as a record may have, each of which reads through all.
        let trial = run(0, 0, RunStatus::Valid).trial;
        (0..).find_map(|_| record.host_reports(&trial).err()).map(|refusal| refusal.to_string())
    });
    assert!(refusal.as_ref().is_some_and(|said| said.contains("more work than its length")), "{refusal:?}");
}

#[test]
fn unchecked_read_rolls_nothing_back() {
    let (folder, path) = without_runs();
    let raw = Connection::open(&path).unwrap();
    raw.execute_batch("PRAGMA cache_size = 1; BEGIN; UPDATE campaign SET testbed = hex(randomblob(100000))")
        .unwrap();
    let [copy, journal] = ["copy.stacklab", "copy.stacklab-journal"].map(|name| folder.path().join(name));
    std::fs::copy(&path, &copy).unwrap();
    std::fs::copy(format!("{}-journal", path.display()), &journal).unwrap();
    let before = std::fs::read(&copy).unwrap();
    let refusal = Record::open_unchecked(&copy).err().unwrap();
    assert!(matches!(refusal, StoreError::CutShort(_)) && refusal.is_passing(), "{refusal}");
    assert!(refusal.to_string().contains("`stacklab report` does that"), "{refusal}");
    assert_eq!(std::fs::read(&copy).unwrap(), before);
    assert!(journal.exists());
    drop(Record::read(&copy).unwrap());
    assert_eq!(Record::open_unchecked(&copy).unwrap().campaign().unwrap().testbed_description, "two hosts");
}

#[test]
fn unchecked_read_waits_briefly_for_a_commit() {
    let (_folder, path) = without_runs();
    let raw = Connection::open(&path).unwrap();
    raw.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let begun = Instant::now();
    let refusal = Record::open_unchecked(&path).err().unwrap();
    assert!(matches!(refusal, StoreError::Busy(_)) && refusal.is_passing(), "{refusal}");
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
}

#[test]
fn a_campaign_outwaits_whoever_reads_its_record() {
    let (_folder, path) = without_runs();
    let mut campaign = Record::open(&path).unwrap();
    let host = host();
    let reader = Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM run").unwrap();
    let reading = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(7));
        drop(reader);
    });
    campaign.put_host(&host).unwrap();
    reading.join().unwrap();
    assert_eq!(campaign.hosts().unwrap(), [host]);
}
