//! Runs as rows for other programs, one for each run and metric; slices of interleaved trials, one for each slice and
//! host.

#[cfg(feature = "parquet")]
mod fleet;
#[cfg(feature = "parquet")]
mod parquet;

#[cfg(feature = "parquet")]
pub use fleet::{LakePair, comparisons_file, lake_files, read_comparisons};

use crate::findings::csv::metric_fields;
use crate::rendering::csv::{self, Field, cell_fields, field, setting_fields};
use crate::rendering::format::OutputFormat;
use stacklab_model::{HostReport, Metric, Role, RunRecord, RunStatus, Slice, Value};
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
    write(&metric_columns(), each_row(runs, |run| metric_rows(run).collect()), format, to)
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

fn metric_columns() -> Vec<Field> {
    whole_row(None, value_fields(None, None))
}

fn metric_rows(run: &RunRecord) -> impl Iterator<Item = Vec<Field>> {
    // They are the same in each row.
    let before = run_fields(Some(run));
    let after: Vec<Field> = setting_fields(Some(&run.trial.cell), None).collect();
    run.values.iter().map(move |value| {
        let of_row = value_fields(Some(run), Some(value));
        before.iter().cloned().chain(of_row).chain(after.iter().cloned()).collect()
    })
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
    write(&whole_row(None, slice_fields(None)), each_row(runs, slice_rows), format, to)
}

fn slice_rows(run: &RunRecord) -> Vec<Vec<Field>> {
    let of_host = |report: &HostReport| {
        let slices = report.slices.iter();
        slices.map(|slice| whole_row(Some(run), slice_fields(Some((report.role, slice))))).collect::<Vec<_>>()
    };
    run.host_reports.iter().flat_map(of_host).collect()
}

fn write<E: From<io::Error>>(
    columns: &[Field],
    rows: impl Iterator<Item = Result<Vec<Field>, E>>,
    format: OutputFormat,
    to: impl Write + Send,
) -> Result<(), E> {
    match format {
        #[cfg(feature = "parquet")]
        OutputFormat::Parquet => parquet::write(columns, rows, to),
        #[cfg(not(feature = "parquet"))]
        OutputFormat::Parquet => panic!("this build writes no Parquet: see HAS_PARQUET"),
        _ => csv::write(columns, rows, format, to),
    }
}

/// The run's fields, its row's, and its settings. Without a run, the columns.
fn whole_row(run: Option<&RunRecord>, of_row: Vec<Field>) -> Vec<Field> {
    let settings = setting_fields(run.map(|run| &run.trial.cell), None);
    run_fields(run).into_iter().chain(of_row).chain(settings).collect()
}

fn run_fields(run: Option<&RunRecord>) -> Vec<Field> {
    let trial = run.map(|run| &run.trial);
    // A time; files of other tools may not have it, and it is 0 then.
    let time = |of: fn(&RunRecord) -> u64| run.map(of).filter(|ns| *ns > 0);
    let reasons = run.and_then(|run| match &run.status {
        RunStatus::Valid => None,
        RunStatus::Invalid(reasons) => Some(reasons.join("; ")),
    });
    let mut fields = vec![
        field("block", trial.map(|trial| u64::from(trial.block))),
        field("position", trial.map(|trial| u64::from(trial.position))),
        field("started_unix_ns", time(|run| run.started_unix_ns)),
        field("wall_ns", time(|run| run.wall_ns)),
        field("status", run.map(|run| status(run.is_valid()))),
        field("reasons", reasons),
        field("probe", trial.map(|trial| trial.probe.name())),
    ];
    fields.extend(cell_fields(trial.map(|trial| &trial.cell), None));
    fields
}

fn status(is_valid: bool) -> &'static str {
    if is_valid { "valid" } else { "invalid" }
}

fn value_fields(run: Option<&RunRecord>, value: Option<(&Metric, &Value)>) -> Vec<Field> {
    let metric = value.map(|(metric, _)| *metric);
    let in_study = |run: &RunRecord| {
        if metric.is_some_and(|metric| run.spec.probe.metrics.contains(&metric)) { "yes" } else { "no" }
    };
    let missing = match value {
        Some((_, Value::Missing(reason) | Value::Invalid(reason))) => Some(reason.as_str()),
        _ => None,
    };
    let number = value.and_then(|(_, value)| value.measured());
    let of_value = [field("number", number), field("in_study", run.map(in_study)), field("missing", missing)];
    metric_fields(metric).into_iter().chain(of_value).collect()
}

fn slice_fields(slice: Option<(Role, &Slice)>) -> Vec<Field> {
    let host = slice.map(|(role, _)| if role == Role::Receiver { "receiver" } else { "sender" });
    let slice = slice.map(|(_, slice)| slice);
    let number = |of: fn(&Slice) -> u64| slice.map(|slice| of(slice) as f64);
    let ns = |of: fn(&Slice) -> Option<u64>| slice.and_then(of).map(|ns| ns as f64);
    vec![
        field("host", host),
        field("round", slice.map(|slice| f64::from(slice.round))),
        field("messages", number(|slice| slice.messages)),
        field("at_first", number(|slice| slice.at_first)),
        field("first_ns", number(|slice| slice.first_ns)),
        field("last_ns", number(|slice| slice.last_ns)),
        field("delay_ns", ns(|slice| slice.delay_ns)),
        field("jitter_ns", slice.and_then(|slice| slice.jitter_ns)),
        field("cpu_ns", ns(|slice| slice.cpu_ns)),
        field("waited_ns", ns(|slice| slice.waited_ns)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::tests::run;
    use crate::rendering::csv::FieldValue;
    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    use ::parquet::record::Field as ParquetField;
    use stacklab_model::Factor;

    fn measured() -> Vec<RunRecord> {
        let mut tuned = run(1, RunStatus::Invalid(vec!["planned MTU 1500, observed 1280".to_owned()]));
        tuned.trial.cell.settings.tuning.mss = Some(1200);
        vec![run(0, RunStatus::Valid), tuned]
    }

    #[test]
    fn csv_texts_are_no_formulas_unless_raw() {
        let runs = [run(0, RunStatus::Invalid(vec!["=1+x".to_owned()]))];
        let written = |format| String::from_utf8(tidy(&runs, format)).unwrap();
        let text = written(OutputFormat::Csv);
        assert!(text.contains("'=1+x") && !text.contains(",=1+x"), "{text}");
        assert!(written(OutputFormat::RawCsv).contains(",=1+x"));
    }

    #[test]
    fn both_formats_say_the_same_of_every_run_and_metric() {
        let runs = measured();
        let text = tidy(&runs, OutputFormat::Csv);
        let mut reader = ::csv::Reader::from_reader(&text[..]);
        let header: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
        let columns = metric_columns();
        assert_eq!(header, columns.iter().map(|column| column.name.to_string()).collect::<Vec<_>>());
        let lines: Vec<::csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        assert_eq!(lines.len(), runs.iter().map(|run| run.values.len()).sum::<usize>());

        let file = SerializedFileReader::new(bytes::Bytes::from(tidy(&runs, OutputFormat::Parquet))).unwrap();
        let rows: Vec<_> = file.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), lines.len());
        for (row, line) in rows.iter().zip(&lines) {
            for (place, (name, field)) in row.get_column_iter().enumerate() {
                assert_eq!(*name, header[place]);
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
        let at =
            |line: usize, name: &str| &lines[line][header.iter().position(|known| known == name).unwrap()];
        assert_eq!((at(0, "metric"), at(0, "number"), at(0, "mss")), ("throughput", "57.312345678", ""));
        assert_eq!((at(1, "metric"), at(1, "number"), at(1, "missing")), ("retransmits", "", "no TCP_INFO"));
        assert_eq!((at(2, "status"), at(2, "mss")), ("invalid", "1200"));
        assert_eq!(tidy(&runs, OutputFormat::Parquet), tidy(&runs, OutputFormat::Parquet));
    }

    fn is_setting(field: &Field) -> bool {
        Factor::ALL.iter().any(|factor| factor.is_setting() && factor.name() == field.name)
    }

    #[test]
    fn every_column_is_documented() {
        let page = include_str!("../../../../docs/export.md");
        for Field { name, value } in run_fields(None)
            .into_iter()
            .chain(value_fields(None, None))
            .chain(slice_fields(None))
            .chain(fleet::pair_fields(None))
            .chain(fleet::columns().into_iter().filter(|field| !is_setting(field)))
        {
            let kind = match value {
                FieldValue::Number(_) => "INT64",
                FieldValue::Figure(_) => "DOUBLE",
                FieldValue::Text(_) => "STRING",
            };
            let row = page.lines().find_map(|line| line.strip_prefix(&format!("| `{name}` | {kind} | ")));
            assert!(row.is_some_and(|text| text.trim_end_matches('|').trim().len() > 3), "{name}");
        }
    }

    #[test]
    fn slices_are_rows_of_their_run_and_host() {
        let mut run = run(0, RunStatus::Valid);
        run.host_reports[0].role = Role::Receiver;
        let slice = |round, delay_ns| Slice { round, messages: 7, delay_ns, ..Slice::default() };
        run.host_reports[0].slices = vec![slice(0, None), slice(1, Some(1500))];
        let text = tidy_slices(&[run], OutputFormat::Csv);
        let mut reader = ::csv::Reader::from_reader(&text[..]);
        let header = reader.headers().unwrap().clone();
        let lines: Vec<::csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        let at =
            |line: usize, name: &str| &lines[line][header.iter().position(|known| known == name).unwrap()];
        assert_eq!(lines.len(), 2);
        assert_eq!((at(0, "host"), at(0, "round"), at(0, "messages")), ("receiver", "0", "7"));
        assert_eq!((at(0, "delay_ns"), at(1, "delay_ns"), at(1, "round")), ("", "1500", "1"));
    }

    #[test]
    fn a_campaign_of_nothing_has_columns_all_the_same() {
        assert_eq!(String::from_utf8(tidy(&[], OutputFormat::Csv)).unwrap().lines().count(), 1);
        let file = SerializedFileReader::new(bytes::Bytes::from(tidy(&[], OutputFormat::Parquet))).unwrap();
        assert_eq!(file.metadata().file_metadata().num_rows(), 0);
    }
}
