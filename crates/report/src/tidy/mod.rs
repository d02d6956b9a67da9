//! Runs as rows for other programs, one for each run and metric; slices of interleaved trials, one for each slice and
//! host.

#[cfg(feature = "parquet")]
pub(crate) mod fleet;
#[cfg(feature = "parquet")]
mod parquet;

#[cfg(feature = "parquet")]
pub use fleet::{LakePair, comparisons_file, lake_files, read_comparisons};

use crate::rendering::column::{
    Column, ColumnHead, Compares, Field, Subject, cell_columns, list_heads, metric_columns, read_fields,
    setting_columns,
};
use crate::rendering::csv;
use crate::rendering::format::OutputFormat;
use stacklab_model::{Metric, Role, RunRecord, RunStatus, Slice, Value};
use std::io::{self, Write};

/// Whether this build writes Parquet.
pub const HAS_PARQUET: bool = cfg!(feature = "parquet");

/// Renders runs as rows of CSV or Parquet.
///
/// # Panics
/// For Parquet, where [`HAS_PARQUET`] is false.
pub fn tidy(runs: &[RunRecord], format: OutputFormat) -> Vec<u8> {
    in_memory(runs, |runs, to| write_tidy(runs, format, to))
}

/// Writes runs as rows of CSV or Parquet as they come; few are in memory at a time.
///
/// # Errors
/// Those of the runs, and of writing.
///
/// # Panics
/// For Parquet, where [`HAS_PARQUET`] is false.
pub fn write_tidy<E: From<io::Error>>(
    runs: impl Iterator<Item = Result<RunRecord, E>>,
    format: OutputFormat,
    to: impl Write + Send,
) -> Result<(), E> {
    let table = RunTable::new(value_columns());
    let rows = each_row(runs, |run| table.list_fields(run, &list_values(run)));
    write(&table.heads(), rows, format, to)
}

/// Rows of each run in turn; of a run that cannot be read, the error.
fn each_row<E>(
    runs: impl Iterator<Item = Result<RunRecord, E>>,
    rows: impl Fn(&RunRecord) -> Vec<Vec<Field>>,
) -> impl Iterator<Item = Result<Vec<Field>, E>> {
    runs.flat_map(move |run| match run {
        Ok(run) => rows(&run).into_iter().map(Ok).collect(),
        Err(error) => vec![Err(error)],
    })
}

fn in_memory(
    runs: &[RunRecord],
    write: impl FnOnce(&mut dyn Iterator<Item = io::Result<RunRecord>>, &mut Vec<u8>) -> io::Result<()>,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut runs.iter().cloned().map(Ok), &mut bytes).expect("memory can be written to");
    bytes
}

/// The columns of a table of runs: those of the run, of each of its rows, and of its settings.
struct RunTable<Row: 'static> {
    run: Vec<Column<'static, RunRecord>>,
    row: Vec<Column<'static, Row>>,
    settings: Vec<Column<'static, RunRecord>>,
}

impl<Row> RunTable<Row> {
    fn new(row: Vec<Column<'static, Row>>) -> Self {
        RunTable { run: run_columns(), row, settings: setting_columns(Compares::Nothing, find_subject) }
    }

    fn heads(&self) -> Vec<ColumnHead> {
        [list_heads(&self.run), list_heads(&self.row), list_heads(&self.settings)].concat()
    }

    /// The fields of each row of a run.
    fn list_fields(&self, run: &RunRecord, rows: &[Row]) -> Vec<Vec<Field>> {
        // They are the same in each row.
        let before = read_fields(&self.run, run);
        let after = read_fields(&self.settings, run);
        rows.iter().map(|row| [&before[..], &read_fields(&self.row, row), &after].concat()).collect()
    }
}

/// Renders the slices of runs with their host reports as rows of CSV or Parquet.
///
/// # Panics
/// For Parquet, where [`HAS_PARQUET`] is false.
pub fn tidy_slices(runs: &[RunRecord], format: OutputFormat) -> Vec<u8> {
    in_memory(runs, |runs, to| write_tidy_slices(runs, format, to))
}

/// Writes the slices of runs with their host reports as [`write_tidy`] writes runs.
///
/// # Errors
/// Those of the runs, and of writing.
///
/// # Panics
/// For Parquet, where [`HAS_PARQUET`] is false.
pub fn write_tidy_slices<E: From<io::Error>>(
    runs: impl Iterator<Item = Result<RunRecord, E>>,
    format: OutputFormat,
    to: impl Write + Send,
) -> Result<(), E> {
    let table = RunTable::new(slice_columns());
    let rows = each_row(runs, |run| table.list_fields(run, &list_slices(run)));
    write(&table.heads(), rows, format, to)
}

fn write<E: From<io::Error>>(
    heads: &[ColumnHead],
    rows: impl Iterator<Item = Result<Vec<Field>, E>>,
    format: OutputFormat,
    to: impl Write + Send,
) -> Result<(), E> {
    match format {
        #[cfg(feature = "parquet")]
        OutputFormat::Parquet => parquet::write(heads, rows, to),
        #[cfg(not(feature = "parquet"))]
        OutputFormat::Parquet => panic!("this build writes no Parquet: see HAS_PARQUET"),
        _ => csv::write(heads, rows, format, to),
    }
}

fn find_subject(run: &RunRecord) -> Subject<'_> {
    Subject { cell: &run.trial.cell, compared: None }
}

pub(crate) fn run_columns<'a>() -> Vec<Column<'a, RunRecord>> {
    let mut columns = vec![
        Column::number("block", "block, from 0", |run: &RunRecord| Some(run.trial.block.into())),
        Column::number(
            "position",
            "place in the block, from 0; with the block it names a run",
            |run: &RunRecord| Some(run.trial.position.into()),
        ),
        // Files of other tools may not have a time, and it is 0 then.
        Column::number(
            "started_unix_ns",
            "start of the run, nanoseconds since the Unix epoch",
            |run: &RunRecord| Some(run.started_unix_ns).filter(|ns| *ns > 0),
        ),
        Column::number(
            "wall_ns",
            "nanoseconds that it took, with set-up, warm-up and drain",
            |run: &RunRecord| Some(run.wall_ns).filter(|ns| *ns > 0),
        ),
        Column::text(
            "status",
            "`valid` or `invalid`: a run that is invalid is not counted",
            |run: &RunRecord| Some(status(run.is_valid())),
        ),
        Column::new_text("reasons", "why it is invalid", |run: &RunRecord| match &run.status {
            RunStatus::Valid => None,
            RunStatus::Invalid(reasons) => Some(reasons.join("; ")),
        }),
        Column::text("probe", "the probe", |run: &RunRecord| Some(run.trial.probe.name())),
    ];
    columns.extend(cell_columns(Compares::Nothing, find_subject));
    columns
}

fn status(is_valid: bool) -> &'static str {
    if is_valid { "valid" } else { "invalid" }
}

/// A metric of a run.
pub(crate) struct ValueRow {
    metric: Metric,
    value: Value,
    is_in_study: bool,
}

fn list_values(run: &RunRecord) -> Vec<ValueRow> {
    let mut rows = Vec::new();
    for (metric, value) in run.values.iter() {
        let is_in_study = run.spec.probe.metrics.contains(metric);
        rows.push(ValueRow { metric: *metric, value: value.clone(), is_in_study });
    }
    rows
}

pub(crate) fn value_columns<'a>() -> Vec<Column<'a, ValueRow>> {
    let mut columns: Vec<Column<ValueRow>> =
        Vec::from(metric_columns("unit of the figure", |row: &ValueRow| row.metric));
    columns.extend([
        Column::figure(
            "number",
            "the figure, unrounded (shares from 0 to 1); absent if there is none",
            |row: &ValueRow| row.value.measured(),
        ),
        Column::text(
            "in_study",
            "`yes` if the study names the metric for this probe, so that it is compared; else `no`",
            |row: &ValueRow| Some(if row.is_in_study { "yes" } else { "no" }),
        ),
        Column::text("missing", "why there is no figure", |row: &ValueRow| match &row.value {
            Value::Missing(reason) | Value::Invalid(reason) => Some(reason.as_str()),
            Value::Measured(_) => None,
        }),
    ]);
    columns
}

/// A slice of a trial, as a host counted it.
pub(crate) struct SliceRow {
    role: Role,
    slice: Slice,
}

fn list_slices(run: &RunRecord) -> Vec<SliceRow> {
    let mut rows = Vec::new();
    for report in &run.host_reports {
        rows.extend(report.slices.iter().map(|slice| SliceRow { role: report.role, slice: *slice }));
    }
    rows
}

pub(crate) fn slice_columns<'a>() -> Vec<Column<'a, SliceRow>> {
    vec![
        Column::text("host", "`sender` or `receiver`: the host that counted", |row: &SliceRow| {
            Some(if row.role == Role::Receiver { "receiver" } else { "sender" })
        }),
        Column::figure(
            "round",
            "round of the trial, from 0; every arm has one slice in each",
            |row: &SliceRow| Some(row.slice.round.into()),
        ),
        Column::figure("messages", "messages that the host sent or received", |row: &SliceRow| {
            Some(row.slice.messages as f64)
        }),
        Column::figure(
            "at_first",
            "number of these that the first receive returned; a rate counts from it on",
            |row: &SliceRow| Some(row.slice.at_first as f64),
        ),
        Column::figure("first_ns", "the host's clock at the first message, nanoseconds", |row: &SliceRow| {
            Some(row.slice.first_ns as f64)
        }),
        Column::figure("last_ns", "the host's clock at the last one, nanoseconds", |row: &SliceRow| {
            Some(row.slice.last_ns as f64)
        }),
        Column::figure(
            "delay_ns",
            "median delay, nanoseconds: round trips at the sender of an echo, one-way delays at the receiver of a stream",
            |row: &SliceRow| Some(row.slice.delay_ns? as f64),
        ),
        Column::figure(
            "jitter_ns",
            "mean absolute difference of consecutive delays, nanoseconds",
            |row: &SliceRow| row.slice.jitter_ns,
        ),
        Column::figure(
            "cpu_ns",
            "CPU time of the arm's threads on the host, nanoseconds",
            |row: &SliceRow| Some(row.slice.cpu_ns? as f64),
        ),
        Column::figure(
            "waited_ns",
            "how long the arm's threads on the host were ready to run and waited for a processor, nanoseconds",
            |row: &SliceRow| Some(row.slice.waited_ns? as f64),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::tests::run;
    use crate::tests::rows::CsvRows;
    #[cfg(feature = "parquet")]
    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    #[cfg(feature = "parquet")]
    use ::parquet::record::Field as ParquetField;

    fn measured() -> Vec<RunRecord> {
        let mut tuned = run(1, RunStatus::Invalid(vec!["planned MTU 1500, observed 1280".to_owned()]));
        tuned.trial.cell.settings.tuning.mss = Some(1200);
        vec![run(0, RunStatus::Valid), tuned]
    }

    #[test]
    fn csv_texts_are_no_formulas_unless_raw() {
        let runs = [run(0, RunStatus::Invalid(vec!["=1+x".to_owned()]))];
        let text = String::from_utf8(tidy(&runs, OutputFormat::Csv)).unwrap();
        assert!(text.contains("'=1+x") && !text.contains(",=1+x"), "{text}");
        let raw = String::from_utf8(tidy(&runs, OutputFormat::RawCsv)).unwrap();
        assert!(raw.contains(",=1+x"));
    }

    fn read_csv(bytes: &[u8]) -> CsvRows {
        CsvRows::read(std::str::from_utf8(bytes).unwrap())
    }

    #[test]
    fn csv_has_a_row_for_each_run_and_metric() {
        let runs = measured();
        let rows = read_csv(&tidy(&runs, OutputFormat::Csv));
        let heads = RunTable::new(value_columns()).heads();
        assert_eq!(rows.header, heads.iter().map(|head| head.name.to_string()).collect::<Vec<_>>());
        assert_eq!(rows.lines.len(), runs.iter().map(|run| run.values.len()).sum::<usize>());
        let first = [rows.at(0, "metric"), rows.at(0, "number"), rows.at(0, "mss")];
        assert_eq!(first, ["throughput", "57.312345678", ""]);
        let second = [rows.at(1, "metric"), rows.at(1, "number"), rows.at(1, "missing")];
        assert_eq!(second, ["retransmits", "", "no TCP_INFO"]);
        assert_eq!([rows.at(2, "status"), rows.at(2, "mss")], ["invalid", "1200"]);
    }

    #[cfg(feature = "parquet")]
    #[test]
    fn parquet_says_what_csv_says() {
        let runs = measured();
        let expected = read_csv(&tidy(&runs, OutputFormat::Csv));
        let file = SerializedFileReader::new(bytes::Bytes::from(tidy(&runs, OutputFormat::Parquet))).unwrap();
        let rows: Vec<_> = file.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), expected.lines.len());
        for (row, line) in rows.iter().zip(&expected.lines) {
            for (place, (name, field)) in row.get_column_iter().enumerate() {
                assert_eq!(*name, expected.header[place]);
                let written = match field {
                    ParquetField::Null => String::new(),
                    ParquetField::Long(number) => number.to_string(),
                    ParquetField::Double(figure) => figure.to_string(),
                    ParquetField::Str(text) => text.clone(),
                    other => panic!("{name} is {other}"),
                };
                assert_eq!(written, line[place], "{name}");
            }
        }
        assert_eq!(tidy(&runs, OutputFormat::Parquet), tidy(&runs, OutputFormat::Parquet));
    }

    #[test]
    fn slices_are_rows_of_their_run_and_host() {
        let mut run = run(0, RunStatus::Valid);
        run.host_reports[0].role = Role::Receiver;
        let first = Slice { round: 0, messages: 7, ..Slice::default() };
        let second = Slice { round: 1, delay_ns: Some(1500), ..first };
        run.host_reports[0].slices = vec![first, second];
        let rows = read_csv(&tidy_slices(&[run], OutputFormat::Csv));
        assert_eq!(rows.lines.len(), 2);
        assert_eq!([rows.at(0, "host"), rows.at(0, "round"), rows.at(0, "messages")], ["receiver", "0", "7"]);
        assert_eq!([rows.at(0, "delay_ns"), rows.at(1, "delay_ns"), rows.at(1, "round")], ["", "1500", "1"]);
    }

    #[test]
    fn csv_of_no_runs_has_its_header() {
        assert_eq!(String::from_utf8(tidy(&[], OutputFormat::Csv)).unwrap().lines().count(), 1);
    }

    #[cfg(feature = "parquet")]
    #[test]
    fn parquet_of_no_runs_has_no_rows() {
        let file = SerializedFileReader::new(bytes::Bytes::from(tidy(&[], OutputFormat::Parquet))).unwrap();
        assert_eq!(file.metadata().file_metadata().num_rows(), 0);
    }
}
