//! Runs for other programs: one row for each run and metric.

mod csv;
mod parquet;

use stacklab_model::{Factor, RunRecord, RunStatus, UnknownName, Value};
use std::str::FromStr;

/// What rows are written as.
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

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A whole number.
    Number,
    /// A figure.
    Figure,
    /// A text.
    Text,
}

/// The columns before those of the settings (each factor of `io` and so on, a text that is absent where it is left as it
/// is): name, kind, and what it holds. An absent figure or text is null in Parquet and an empty field in CSV.
pub const TIDY_COLUMNS: [(&str, Kind, &str); 16] = [
    ("block", Kind::Number, "block, from 0"),
    ("position", Kind::Number, "place in the block, from 0; with the block it names a run"),
    ("started_unix_ns", Kind::Number, "start of the run, nanoseconds since the Unix epoch"),
    ("wall_ns", Kind::Number, "nanoseconds that it took, with set-up, warm-up and drain"),
    ("status", Kind::Text, "`valid` or `invalid`: a run that is invalid is not counted"),
    ("reasons", Kind::Text, "why it is invalid"),
    ("probe", Kind::Text, "the probe"),
    ("transport", Kind::Text, "transport protocol"),
    ("framing", Kind::Text, "what size means"),
    ("family", Kind::Text, "address family"),
    ("size", Kind::Number, "bytes"),
    ("replica", Kind::Text, "replica; absent where the study has none"),
    ("metric", Kind::Text, "the metric"),
    ("unit", Kind::Text, "unit of the figure"),
    ("figure", Kind::Figure, "the figure, unrounded (shares from 0 to 1); absent where there is none"),
    ("missing", Kind::Text, "why there is no figure"),
];

/// A value of a row.
enum Entry {
    Number(i64),
    Figure(Option<f64>),
    Text(Option<String>),
}

/// Renders runs as rows.
pub fn tidy(runs: &[RunRecord], format: TidyFormat) -> Vec<u8> {
    let rows = runs.iter().flat_map(rows);
    match format {
        TidyFormat::Csv => csv::render(rows),
        TidyFormat::Parquet => parquet::render(rows),
    }
}

/// Names and kinds of all columns.
fn columns() -> Vec<(&'static str, Kind)> {
    let first = TIDY_COLUMNS.iter().map(|(name, kind, _)| (*name, *kind));
    first.chain(settings().map(|factor| (factor.name(), Kind::Text))).collect()
}

fn settings() -> impl Iterator<Item = Factor> {
    Factor::ALL.iter().copied().filter(|factor| factor.is_setting())
}

/// The rows of a run.
fn rows(run: &RunRecord) -> impl Iterator<Item = Vec<Entry>> {
    let text = |text: &str| Entry::Text(Some(text.to_owned()));
    let number = |number: u64| Entry::Number(i64::try_from(number).unwrap_or(i64::MAX));
    run.values.iter().map(move |(metric, value)| {
        let (trial, cell) = (&run.trial, &run.trial.cell);
        let (status, reasons) = match &run.status {
            RunStatus::Valid => ("valid", None),
            RunStatus::Invalid(reasons) => ("invalid", Some(reasons.join("; "))),
        };
        let (figure, missing) = match value {
            Value::Measured(figure) => (Some(*figure), None),
            Value::Missing(reason) | Value::Invalid(reason) => (None, Some(reason.clone())),
        };
        let mut row = vec![
            number(trial.block.into()),
            number(trial.position.into()),
            number(run.started_unix_ns),
            number(run.wall_ns),
            text(status),
            Entry::Text(reasons),
            text(trial.probe.name()),
            text(cell.transport.name()),
            text(cell.framing.name()),
            text(cell.family.name()),
            number(cell.size.into()),
            Entry::Text(Some(cell.replica.clone()).filter(|replica| !replica.is_empty())),
            text(metric.name()),
            text(metric.unit().symbol()),
            Entry::Figure(figure),
            Entry::Text(missing),
        ];
        row.extend(settings().map(|factor| Entry::Text(cell.settings.get(factor))));
        row
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::tests::run;
    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    use ::parquet::record::Field;

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
        assert_eq!(header, columns().iter().map(|(name, _)| *name).collect::<Vec<_>>());
        let lines: Vec<::csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        assert_eq!(lines.len(), runs.iter().map(|run| run.values.len()).sum::<usize>());

        let file = SerializedFileReader::new(bytes::Bytes::from(tidy(&runs, TidyFormat::Parquet))).unwrap();
        let rows: Vec<_> = file.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), lines.len());
        for (row, line) in rows.iter().zip(&lines) {
            for (place, (name, field)) in row.get_column_iter().enumerate() {
                assert_eq!(*name, header[place]);
                let told = match field {
                    Field::Null => String::new(),
                    Field::Long(number) => number.to_string(),
                    Field::Double(figure) => figure.to_string(),
                    Field::Str(text) => text.clone(),
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
        for (name, kind, what) in TIDY_COLUMNS {
            let kind = match kind {
                Kind::Number => "INT64",
                Kind::Figure => "DOUBLE",
                Kind::Text => "STRING",
            };
            assert!(page.contains(&format!("| `{name}` | {kind} | {what} |")), "{name}");
        }
    }

    #[test]
    fn a_campaign_of_nothing_has_columns_all_the_same() {
        assert_eq!(String::from_utf8(tidy(&[], TidyFormat::Csv)).unwrap().lines().count(), 1);
        let file = SerializedFileReader::new(bytes::Bytes::from(tidy(&[], TidyFormat::Parquet))).unwrap();
        assert_eq!(file.metadata().file_metadata().num_rows(), 0);
    }
}
