//! Runs as rows for other programs, one for each run and metric.

mod column;
mod csv;
mod parquet;

use crate::tidy::column::{Field, Kind, TidyColumn, TidyRow};
use stacklab_model::{Factor, RunRecord, RunStatus, UnknownName, Value};
use std::str::FromStr;

/// The format of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TidyFormat {
    /// RFC 4180.
    Csv,
    /// Apache Parquet, compressed by zstd.
    Parquet,
}

impl FromStr for TidyFormat {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        match text {
            "csv" => Ok(TidyFormat::Csv),
            "parquet" => Ok(TidyFormat::Parquet),
            _ => {
                Err(UnknownName { found: text.to_owned(), set: "format of rows", valid: &["csv", "parquet"] })
            }
        }
    }
}

/// Renders runs as rows.
pub fn tidy(runs: &[RunRecord], format: TidyFormat) -> Vec<u8> {
    let columns = columns();
    let rows = runs.iter().flat_map(|run| {
        run.values.iter().map(|(metric, value)| {
            let row = TidyRow { run, metric: *metric, value };
            columns.iter().map(|column| (column.value)(&row)).collect()
        })
    });
    match format {
        TidyFormat::Csv => csv::render(&columns, rows),
        TidyFormat::Parquet => parquet::render(&columns, rows),
    }
}

/// The columns before those of the settings.
fn first_columns() -> [TidyColumn; 16] {
    [
        number("block", "block, from 0", |row| row.run.trial.block.into()),
        number("position", "place in the block, from 0; with the block it names a run", |row| {
            row.run.trial.position.into()
        }),
        number("started_unix_ns", "start of the run, nanoseconds since the Unix epoch", |row| {
            row.run.started_unix_ns
        }),
        number("wall_ns", "nanoseconds that it took, with set-up, warm-up and drain", |row| row.run.wall_ns),
        name("status", "`valid` or `invalid`: a run that is invalid is not counted", |row| {
            if row.run.is_valid() { "valid" } else { "invalid" }
        }),
        text("reasons", "why it is invalid", |row| match &row.run.status {
            RunStatus::Valid => None,
            RunStatus::Invalid(reasons) => Some(reasons.join("; ")),
        }),
        name("probe", "the probe", |row| row.run.trial.probe.name()),
        name("transport", "transport protocol", |row| row.run.trial.cell.transport.name()),
        name("framing", "what size means", |row| row.run.trial.cell.framing.name()),
        name("family", "address family", |row| row.run.trial.cell.family.name()),
        number("size", "bytes", |row| row.run.trial.cell.size.into()),
        text("replica", "replica; absent where the study has none", |row| {
            Some(row.run.trial.cell.level(Factor::Replica)).filter(|replica| !replica.is_empty())
        }),
        name("metric", "the metric", |row| row.metric.name()),
        name("unit", "unit of the figure", |row| row.metric.unit().symbol()),
        TidyColumn {
            name: "figure",
            kind: Kind::Figure,
            doc: "the figure, unrounded (shares from 0 to 1); absent where there is none",
            value: Box::new(|row| Field::Figure(row.value.measured())),
        },
        text("missing", "why there is no figure", |row| match row.value {
            Value::Measured(_) => None,
            Value::Missing(reason) | Value::Invalid(reason) => Some(reason.clone()),
        }),
    ]
}

/// All columns: the settings (`io` and so on) are texts, absent if they keep their defaults.
fn columns() -> Vec<TidyColumn> {
    let settings = Factor::ALL.iter().copied().filter(|factor| factor.is_setting());
    let settings = settings.map(|factor| TidyColumn {
        name: factor.name(),
        kind: Kind::Text,
        doc: "the level of the setting; absent where it is left as it is",
        value: Box::new(move |row| {
            let level = row.run.trial.cell.level(factor);
            Field::Text(Some(level).filter(|level| !level.is_empty()))
        }),
    });
    first_columns().into_iter().chain(settings).collect()
}

fn number(name: &'static str, doc: &'static str, value: fn(&TidyRow<'_>) -> u64) -> TidyColumn {
    let value = move |row: &TidyRow<'_>| Field::Number(i64::try_from(value(row)).unwrap_or(i64::MAX));
    TidyColumn { name, kind: Kind::Number, doc, value: Box::new(value) }
}

fn text(name: &'static str, doc: &'static str, value: fn(&TidyRow<'_>) -> Option<String>) -> TidyColumn {
    TidyColumn { name, kind: Kind::Text, doc, value: Box::new(move |row| Field::Text(value(row))) }
}

fn name(name: &'static str, doc: &'static str, value: fn(&TidyRow<'_>) -> &'static str) -> TidyColumn {
    let value = move |row: &TidyRow<'_>| Field::Text(Some(value(row).to_owned()));
    TidyColumn { name, kind: Kind::Text, doc, value: Box::new(value) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::tests::run;
    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    use ::parquet::record::Field as ParquetField;

    fn measured() -> Vec<RunRecord> {
        let mut tuned = run(1, RunStatus::Invalid(vec!["planned MTU 1500, observed 1280".to_owned()]));
        tuned.trial.cell.settings.mss = Some(1200);
        vec![run(0, RunStatus::Valid), tuned]
    }

    #[test]
    fn both_formats_say_the_same_of_every_run_and_metric() {
        let runs = measured();
        let text = tidy(&runs, TidyFormat::Csv);
        let mut reader = ::csv::Reader::from_reader(&text[..]);
        let header: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
        assert_eq!(header, columns().iter().map(|column| column.name).collect::<Vec<_>>());
        let lines: Vec<::csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        assert_eq!(lines.len(), runs.iter().map(|run| run.values.len()).sum::<usize>());

        let file = SerializedFileReader::new(bytes::Bytes::from(tidy(&runs, TidyFormat::Parquet))).unwrap();
        let rows: Vec<_> = file.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), lines.len());
        for (row, line) in rows.iter().zip(&lines) {
            for (place, (name, field)) in row.get_column_iter().enumerate() {
                assert_eq!(*name, header[place]);
                let told = match field {
                    ParquetField::Null => String::new(),
                    ParquetField::Long(number) => number.to_string(),
                    ParquetField::Double(figure) => figure.to_string(),
                    ParquetField::Str(text) => text.clone(),
                    other => panic!("{name} is {other}"),
                };
                assert_eq!(told, line[place], "{name}");
            }
        }
        let at =
            |line: usize, name: &str| &lines[line][header.iter().position(|known| known == name).unwrap()];
        assert_eq!((at(0, "metric"), at(0, "figure"), at(0, "mss")), ("throughput", "57.312345678", ""));
        assert_eq!((at(1, "metric"), at(1, "figure"), at(1, "missing")), ("retransmits", "", "no TCP_INFO"));
        assert_eq!((at(2, "status"), at(2, "mss")), ("invalid", "1200"));
        assert_eq!(tidy(&runs, TidyFormat::Parquet), tidy(&runs, TidyFormat::Parquet));
    }

    #[test]
    fn every_column_is_documented() {
        let page = include_str!("../../../../docs/export.md");
        for TidyColumn { name, kind, doc, .. } in first_columns() {
            let kind = match kind {
                Kind::Number => "INT64",
                Kind::Figure => "DOUBLE",
                Kind::Text => "STRING",
            };
            assert!(page.contains(&format!("| `{name}` | {kind} | {doc} |")), "{name}");
        }
    }

    #[test]
    fn a_campaign_of_nothing_has_columns_all_the_same() {
        assert_eq!(String::from_utf8(tidy(&[], TidyFormat::Csv)).unwrap().lines().count(), 1);
        let file = SerializedFileReader::new(bytes::Bytes::from(tidy(&[], TidyFormat::Parquet))).unwrap();
        assert_eq!(file.metadata().file_metadata().num_rows(), 0);
    }
}
