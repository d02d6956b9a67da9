//! Runs of a fleet as Parquet files, partitioned by campaign and day in the style of Hive.

use super::{metric_columns, metric_rows, parquet};
use crate::rendering::csv::{Field, field};
use jiff::Timestamp;
use stacklab_model::RunRecord;
use std::collections::BTreeMap;

/// A pair of hosts of a fleet.
#[derive(Debug, Clone, Copy)]
pub struct LakePair<'a> {
    /// Its number in the campaign.
    pub number: u32,
    /// The sender's agent.
    pub sender: &'a str,
    /// The receiver's agent.
    pub receiver: &'a str,
}

impl LakePair<'_> {
    /// The name of its file in each day's folder.
    pub fn file_name(&self) -> String {
        format!("pair-{:04}.parquet", self.number)
    }
}

/// The runs of a pair, each with the attempt at its block that gave it, as one Parquet file for each day (UTC), by the
/// name of the day's folder.
pub fn lake_files(pair: LakePair, runs: &[(u32, RunRecord)]) -> BTreeMap<String, Vec<u8>> {
    let mut days: BTreeMap<String, Vec<&(u32, RunRecord)>> = BTreeMap::new();
    for run in runs {
        days.entry(folder_of_day(run.1.started_unix_ns)).or_default().push(run);
    }
    let columns: Vec<Field> = pair_fields(None).into_iter().chain(metric_columns()).collect();
    let file = |runs: Vec<&(u32, RunRecord)>| {
        let rows = runs.into_iter().flat_map(|(attempt, run)| {
            metric_rows(run).map(move |row| {
                pair_fields(Some((pair, *attempt))).into_iter().chain(row).collect::<Vec<Field>>()
            })
        });
        parquet::render(&columns, rows)
    };
    days.into_iter().map(|(day, runs)| (day, file(runs))).collect()
}

/// The columns before those of every run. Without a pair, their names.
pub(super) fn pair_fields(of: Option<(LakePair, u32)>) -> Vec<Field> {
    let mut fields = pair_columns(of.map(|(pair, _)| pair));
    let attempt = of.map(|(_, attempt)| u64::from(attempt));
    fields.push(field("attempt", "attempt at the block that gave the result, from 1", attempt));
    fields
}

/// The columns of a pair. Without one, their names.
pub(super) fn pair_columns(pair: Option<LakePair>) -> Vec<Field> {
    vec![
        field("pair", "number of the pair, from 0", pair.map(|pair| u64::from(pair.number))),
        field("sender", "name of the sender's agent", pair.map(|pair| pair.sender)),
        field("receiver", "name of the receiver's agent", pair.map(|pair| pair.receiver)),
    ]
}

fn folder_of_day(unix_ns: u64) -> String {
    // Every u64 of nanoseconds is a time that jiff knows: they end in 2554.
    let time = Timestamp::from_nanosecond(unix_ns.into()).unwrap_or_default();
    time.strftime("day=%Y-%m-%d").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::tests::run;
    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    use ::parquet::record::RowAccessor;
    use stacklab_model::RunStatus;
    use std::collections::BTreeSet;

    const DAY_NS: u64 = 86_400_000_000_000;

    fn started(attempt: u32, unix_ns: u64) -> (u32, RunRecord) {
        (attempt, RunRecord { started_unix_ns: unix_ns, ..run(0, RunStatus::Valid) })
    }

    #[test]
    fn splits_runs_by_utc_day() {
        let runs = [started(1, 20_000 * DAY_NS - 1), started(3, 20_000 * DAY_NS), started(1, u64::MAX)];
        let pair = LakePair { number: 12, sender: "a", receiver: "b" };
        assert_eq!(pair.file_name(), "pair-0012.parquet");
        let files = lake_files(pair, &runs);
        let days: Vec<&str> = files.keys().map(String::as_str).collect();
        assert_eq!(days, ["day=2024-10-03", "day=2024-10-04", "day=2554-07-21"]);

        let file = SerializedFileReader::new(bytes::Bytes::from(files["day=2024-10-04"].clone())).unwrap();
        let rows: Vec<_> = file.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), runs[1].1.values.len());
        let row = &rows[0];
        assert_eq!((row.get_long(0).unwrap(), row.get_long(3).unwrap()), (12, 3));
        assert_eq!((row.get_string(1).unwrap().as_str(), row.get_string(2).unwrap().as_str()), ("a", "b"));
        let names: BTreeSet<&String> = row.get_column_iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), row.len(), "two columns have one name");
        assert!(!names.iter().any(|name| ["campaign", "day"].contains(&name.as_str())));
    }
}
