//! `fleet export --lake`: Parquet files that say what the store says.

use crate::support::fleet::Fleet;
use crate::support::program::{code, names};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use stacklab_fleet::BlockResult;
use stacklab_fleet::store::Store;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::Path;

/// A row, without its figure: file, pair, sender, receiver, block, attempt, position, family, metric.
type Key = (String, i64, String, String, i64, i64, i64, String, String);

#[test]
fn exports_the_store_as_partitioned_parquet() {
    let fleet = Fleet::start(3, &[], None);
    let args = ["study.toml", "--pairs", "site=a -> site=b", "--blocks", "2", "--name", "lab", "--seed", "7"];
    fleet.run(&args).expect(code::DONE);
    let lake = fleet.coordinator.work().join("lake/runs");
    fleet.ask("export", &["lab", "--lake", "lake"]).expect(code::DONE).says(&["2 pairs of campaign lab"]);

    let expected = in_store(&fleet.store);
    // Two pairs, two blocks, two families, each with the round-trip time at least.
    assert!(expected.len() >= 8 && expected.values().any(Option::is_some), "{expected:?}");
    assert_eq!(in_files(&lake), expected);

    // The report needs no store.
    let by_store = fleet.ask("report", &["--json"]).expect(code::DONE).stdout;
    let report = ["fleet", "report", "--json", "--lake", "lake"];
    for named in [None, Some("lab")] {
        let by_lake = fleet.coordinator.run(&[&report[..], named.as_slice()].concat()).expect(code::DONE);
        assert_eq!(by_lake.stdout, by_store);
    }
    fleet.ask("export", &["--without-runs", "--lake", "small"]).expect(code::DONE);
    assert_eq!(names(&fleet.coordinator.work().join("small")), ["comparisons"]);
    let by_small =
        fleet.coordinator.run(&["fleet", "report", "--json", "--lake", "small"]).expect(code::DONE);
    assert_eq!(by_small.stdout, by_store);
    let comparisons = fleet.coordinator.work().join("lake/comparisons/campaign=lab");
    fs::write(comparisons.join("pair-0001.parquet"), "half").unwrap();
    let report = ["fleet", "report", "--lake"];
    for (lake, expected) in [("lake", "pair-0001.parquet"), ("none", "none/comparisons")] {
        fleet.coordinator.run(&[&report[..], &[lake]].concat()).expect(code::ELSE).says(&[expected]);
    }

    // A part of a killed export, and a day of an older campaign of the same name.
    let first = &expected.keys().next().unwrap().0;
    let day = lake.join(first).parent().unwrap().to_owned();
    fs::write(day.join(".pair-0000.parquet.part"), "PAR1").unwrap();
    let old = lake.join("campaign=lab/day=2001-01-01");
    fs::create_dir(&old).unwrap();
    fs::copy(lake.join(first), old.join("pair-0000.parquet")).unwrap();
    fs::write(lake.join(first), "half").unwrap();
    fleet.ask("export", &["lab", "--lake", "lake"]).expect(code::DONE);
    assert_eq!(in_files(&lake), expected);
    assert_eq!(names(&day).iter().find(|name| name.ends_with(".part")), None);

    fleet
        .ask("export", &["--lake", "study.toml"])
        .expect(code::ELSE)
        .says(&["study.toml/comparisons/campaign=lab"]);
    fleet.ask("export", &["other", "--lake", "lake"]).expect(code::REQUEST).says(&["no campaign `other`"]);
    let store = rusqlite::Connection::open(&fleet.store).unwrap();
    store.execute_batch("DELETE FROM result; UPDATE block SET state = 'given_up'").unwrap();
    fleet
        .ask("export", &["--lake", "empty"])
        .expect(code::NOTHING_VALID)
        .says(&["lab has no result yet", "stacklab fleet status"]);
    assert!(!fleet.coordinator.work().join("empty").exists());
}

/// The figures of a store's campaign `lab`; SQLite computes the days.
fn in_store(path: &str) -> BTreeMap<Key, Option<f64>> {
    let mut store = Store::open(path).unwrap();
    let dates = rusqlite::Connection::open_in_memory().unwrap();
    let mut found = BTreeMap::new();
    for pair in store.progress("lab").unwrap() {
        for (key, text) in store.results("lab", pair.pair).unwrap() {
            let result: BlockResult = serde_json::from_str(&text).unwrap();
            for run in result.runs {
                let seconds = i64::try_from(run.started_unix_ns / 1_000_000_000).unwrap();
                let sql = "SELECT strftime('%Y-%m-%d', ?1, 'unixepoch')";
                let day: String = dates.query_row(sql, [seconds], |row| row.get(0)).unwrap();
                for (metric, value) in run.values.iter() {
                    let key = (
                        format!("campaign=lab/day={day}/pair-{:04}.parquet", pair.pair),
                        pair.pair.into(),
                        pair.sender.clone(),
                        pair.receiver.clone(),
                        key.block.into(),
                        key.attempt.into(),
                        run.trial.position.into(),
                        run.trial.cell.family.name().to_owned(),
                        metric.name().to_owned(),
                    );
                    assert!(key.5 >= 1, "attempts count from 1");
                    assert_eq!(found.insert(key, value.measured()), None);
                }
            }
        }
    }
    found
}

/// The figures of every Parquet file of a lake.
fn in_files(lake: &Path) -> BTreeMap<Key, Option<f64>> {
    let mut found = BTreeMap::new();
    let mut schemas = BTreeSet::new();
    for file in files(lake).into_iter().filter(|file| file.ends_with(".parquet")) {
        let reader = SerializedFileReader::new(File::open(lake.join(&file)).unwrap()).unwrap();
        schemas.insert(format!("{:?}", reader.metadata().file_metadata().schema()));
        for row in reader.get_row_iter(None).unwrap() {
            let row = row.unwrap();
            let figure = match field(&row, "number") {
                Field::Double(figure) => Some(*figure),
                Field::Null => None,
                other => panic!("number is {other}"),
            };
            let key = (
                file.clone(),
                read_number(&row, "pair"),
                read_text(&row, "sender"),
                read_text(&row, "receiver"),
                read_number(&row, "block"),
                read_number(&row, "attempt"),
                read_number(&row, "position"),
                read_text(&row, "family"),
                read_text(&row, "metric"),
            );
            assert_eq!(found.insert(key, figure), None);
        }
    }
    assert_eq!(schemas.len(), 1, "all files have the same columns");
    found
}

fn read_number(row: &Row, name: &str) -> i64 {
    match field(row, name) {
        Field::Long(number) => *number,
        other => panic!("{name} is {other}"),
    }
}

fn read_text(row: &Row, name: &str) -> String {
    match field(row, name) {
        Field::Str(text) => text.clone(),
        other => panic!("{name} is {other}"),
    }
}

fn field<'a>(row: &'a Row, name: &str) -> &'a Field {
    row.get_column_iter().find(|(column, _)| *column == name).unwrap_or_else(|| panic!("no column {name}")).1
}

/// The files below a folder, by their paths in it.
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for name in names(folder) {
        match folder.join(&name) {
            path if path.is_dir() => {
                found.extend(files(&path).iter().map(|below| format!("{name}/{below}")));
            }
            _ => found.push(name),
        }
    }
    found
}
