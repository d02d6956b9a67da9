//! Runs as rows for other programs, one for each run and metric; slices of interleaved trials, one for each slice and
//! host.

mod column;
mod csv;
mod parquet;

use crate::rendering::format::OutputFormat;
use crate::tidy::column::{Field, Kind, RowOf, TidyColumn, TidyRow};
use stacklab_model::{Factor, Metric, Role, RunRecord, RunStatus, Slice, Value};

/// Renders runs as rows of CSV or Parquet.
pub fn tidy(runs: &[RunRecord], format: OutputFormat) -> Vec<u8> {
    let of = |(metric, value): (&Metric, _)| RowOf::Metric(*metric, value);
    let rows = runs.iter().flat_map(|run| run.values.iter().map(move |each| TidyRow { run, of: of(each) }));
    rendered(&columns(metric_columns()), rows, format)
}

/// Renders the slices of runs with their host reports as rows.
pub fn tidy_slices(runs: &[RunRecord], format: OutputFormat) -> Vec<u8> {
    let rows = runs.iter().flat_map(|run| {
        run.host_reports.iter().flat_map(move |report| {
            report.slices.iter().map(|slice| TidyRow { run, of: RowOf::Slice(report.role, slice) })
        })
    });
    rendered(&columns(slice_columns()), rows, format)
}

fn rendered<'a>(
    columns: &[TidyColumn],
    rows: impl Iterator<Item = TidyRow<'a>>,
    format: OutputFormat,
) -> Vec<u8> {
    let rows = rows.map(|row| columns.iter().map(|column| (column.value)(&row)).collect());
    match format {
        OutputFormat::Csv | OutputFormat::RawCsv => csv::render(columns, rows, format.cells()),
        OutputFormat::Parquet => parquet::render(columns, rows),
        _ => format.unsupported(),
    }
}

/// The columns of every row's run.
fn run_columns() -> Vec<TidyColumn> {
    vec![
        number("block", "block, from 0", |row| row.run.trial.block.into()),
        number("position", "place in the block, from 0; with the block it names a run", |row| {
            row.run.trial.position.into()
        }),
        known_number("started_unix_ns", "start of the run, nanoseconds since the Unix epoch", |row| {
            known(row.run.started_unix_ns)
        }),
        known_number("wall_ns", "nanoseconds that it took, with set-up, warm-up and drain", |row| {
            known(row.run.wall_ns)
        }),
        name("status", "`valid` or `invalid`: a run that is invalid is not counted", |row| {
            if row.run.is_valid() { "valid" } else { "invalid" }
        }),
        text("reasons", "why it is invalid", |row| match &row.run.status {
            RunStatus::Valid => None,
            RunStatus::Invalid(reasons) => Some(reasons.join("; ")),
        }),
        name("probe", "the probe", |row| row.run.trial.probe.name()),
        name("transport", "transport protocol", |row| row.run.trial.cell.transport.name()),
        name("size_of", "what size means", |row| row.run.trial.cell.size_of.name()),
        name("family", "address family", |row| row.run.trial.cell.family.name()),
        number("size", "bytes", |row| row.run.trial.cell.size.into()),
        text("replica", "replica; absent if the study has none", |row| {
            Some(row.run.trial.cell.level(Factor::Replica)).filter(|replica| !replica.is_empty())
        }),
    ]
}

/// The columns of a metric.
fn metric_columns() -> Vec<TidyColumn> {
    let metric = |row: &TidyRow<'_>| if let RowOf::Metric(metric, _) = row.of { Some(metric) } else { None };
    vec![
        TidyColumn {
            name: "metric",
            kind: Kind::Text,
            doc: "the metric",
            value: Box::new(move |row| Field::Text(metric(row).map(|metric| metric.name().to_owned()))),
        },
        TidyColumn {
            name: "unit",
            kind: Kind::Text,
            doc: "unit of the figure",
            value: Box::new(move |row| Field::Text(metric(row).map(|of| of.unit().symbol().to_owned()))),
        },
        TidyColumn {
            name: "number",
            kind: Kind::Figure,
            doc: "the figure, unrounded (shares from 0 to 1); absent if there is none",
            value: Box::new(|row| {
                Field::Figure(if let RowOf::Metric(_, value) = row.of { value.measured() } else { None })
            }),
        },
        name(
            "in_study",
            "`yes` if the study names the metric for this probe, so that it is compared; else `no`",
            |row| match row.of {
                RowOf::Metric(metric, _) if row.run.spec.probe.metrics.contains(&metric) => "yes",
                _ => "no",
            },
        ),
        text("missing", "why there is no figure", |row| match row.of {
            RowOf::Metric(_, Value::Missing(reason) | Value::Invalid(reason)) => Some(reason.clone()),
            _ => None,
        }),
    ]
}

/// The columns of a slice.
fn slice_columns() -> Vec<TidyColumn> {
    vec![
        name("host", "`sender` or `receiver`: the host that counted", |row| match row.of {
            RowOf::Slice(Role::Receiver, _) => "receiver",
            _ => "sender",
        }),
        of_slice("round", "round of the trial, from 0; every arm has one slice in each", |slice| {
            Some(slice.round.into())
        }),
        of_slice("messages", "messages that the host sent or received", |slice| Some(slice.messages as f64)),
        of_slice(
            "at_first",
            "number of these that the first receive returned; a rate counts from it on",
            |slice| Some(slice.at_first as f64),
        ),
        of_slice("first_ns", "the host's clock at the first message, nanoseconds", |slice| {
            Some(slice.first_ns as f64)
        }),
        of_slice("last_ns", "the host's clock at the last one, nanoseconds", |slice| {
            Some(slice.last_ns as f64)
        }),
        of_slice(
            "delay_ns",
            "median delay, nanoseconds: round trips at the sender of an echo, one-way delays at the receiver of a stream",
            |slice| slice.delay_ns.map(|ns| ns as f64),
        ),
        of_slice("jitter_ns", "mean absolute difference of consecutive delays, nanoseconds", |slice| {
            slice.jitter_ns
        }),
        of_slice("cpu_ns", "CPU time of the arm's threads on the host, nanoseconds", |slice| {
            slice.cpu_ns.map(|ns| ns as f64)
        }),
        of_slice(
            "waited_ns",
            "how long the arm's threads on the host were ready to run and waited for a processor, nanoseconds",
            |slice| slice.waited_ns.map(|ns| ns as f64),
        ),
    ]
}

fn of_slice(name: &'static str, doc: &'static str, value: fn(&Slice) -> Option<f64>) -> TidyColumn {
    let value = move |row: &TidyRow<'_>| {
        Field::Figure(if let RowOf::Slice(_, slice) = row.of { value(slice) } else { None })
    };
    TidyColumn { name, kind: Kind::Figure, doc, value: Box::new(value) }
}

/// All columns: the run's, its row's, and its settings (`io` and so on), which are texts and absent if they keep their
/// defaults.
fn columns(of_row: Vec<TidyColumn>) -> Vec<TidyColumn> {
    let settings = Factor::ALL.iter().copied().filter(|factor| factor.is_setting());
    let settings = settings.map(|factor| TidyColumn {
        name: factor.name(),
        kind: Kind::Text,
        doc: "the level of the setting; absent if the default applies",
        value: Box::new(move |row| {
            let level = row.run.trial.cell.level(factor);
            Field::Text(Some(level).filter(|level| !level.is_empty()))
        }),
    });
    run_columns().into_iter().chain(of_row).chain(settings).collect()
}

fn number(name: &'static str, doc: &'static str, value: fn(&TidyRow<'_>) -> u64) -> TidyColumn {
    known_number(name, doc, move |row| Some(value(row)))
}

/// A time; files of other tools may not have it, and it is 0 then.
fn known(ns: u64) -> Option<u64> {
    (ns > 0).then_some(ns)
}

/// A number that may not be known.
fn known_number(
    name: &'static str,
    doc: &'static str,
    value: impl Fn(&TidyRow<'_>) -> Option<u64> + 'static,
) -> TidyColumn {
    let value = move |row: &TidyRow<'_>| {
        Field::Number(value(row).map(|value| i64::try_from(value).unwrap_or(i64::MAX)))
    };
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
        tuned.trial.cell.settings.tuning.mss = Some(1200);
        vec![run(0, RunStatus::Valid), tuned]
    }

    #[test]
    fn texts_in_csv_are_no_formulas_but_where_they_are_asked_for_as_they_are() {
        let runs = [run(0, RunStatus::Invalid(vec!["=1+x".to_owned()]))];
        let told = |format| String::from_utf8(tidy(&runs, format)).unwrap();
        let text = told(OutputFormat::Csv);
        assert!(text.contains("'=1+x") && !text.contains(",=1+x"), "{text}");
        assert!(told(OutputFormat::RawCsv).contains(",=1+x"));
    }

    #[test]
    fn both_formats_say_the_same_of_every_run_and_metric() {
        let runs = measured();
        let text = tidy(&runs, OutputFormat::Csv);
        let mut reader = ::csv::Reader::from_reader(&text[..]);
        let header: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
        assert_eq!(header, columns(metric_columns()).iter().map(|column| column.name).collect::<Vec<_>>());
        let lines: Vec<::csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        assert_eq!(lines.len(), runs.iter().map(|run| run.values.len()).sum::<usize>());

        let file = SerializedFileReader::new(bytes::Bytes::from(tidy(&runs, OutputFormat::Parquet))).unwrap();
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
        assert_eq!((at(0, "metric"), at(0, "number"), at(0, "mss")), ("throughput", "57.312345678", ""));
        assert_eq!((at(1, "metric"), at(1, "number"), at(1, "missing")), ("retransmits", "", "no TCP_INFO"));
        assert_eq!((at(2, "status"), at(2, "mss")), ("invalid", "1200"));
        assert_eq!(tidy(&runs, OutputFormat::Parquet), tidy(&runs, OutputFormat::Parquet));
    }

    #[test]
    fn every_column_is_documented() {
        let page = include_str!("../../../../docs/export.md");
        for TidyColumn { name, kind, doc, .. } in
            run_columns().into_iter().chain(metric_columns()).chain(slice_columns())
        {
            let kind = match kind {
                Kind::Number => "INT64",
                Kind::Figure => "DOUBLE",
                Kind::Text => "STRING",
            };
            assert!(page.contains(&format!("| `{name}` | {kind} | {doc} |")), "{name}");
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
