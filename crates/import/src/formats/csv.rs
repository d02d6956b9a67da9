//! Rows of `stacklab export`, back as runs.

use super::forms::CUT;
use super::row_bytes::RowBytes;
use crate::test::{Content, Format, ToolFile, check_range};
use crate::value::{At, ImportError, MAX_TESTS};
use stacklab_model::{
    ArmSchedule, Cell, CpuScope, Drops, Factor, Length, Metric, Pacing, Probe, ProbeSpec, RunRecord,
    RunStatus, Trial, TrialSpec, Value, Values,
};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Read;
use std::str::FromStr;

/// Columns without which a row tells nothing.
const NEEDED: &str =
    "block position started_unix_ns wall_ns status probe transport size_of family size metric number";
/// The other columns of an export, beside those of settings.
const OTHERS: &str = "reasons replica unit in_study missing";
/// The largest block and position of a record.
const LAST_TRIAL: u32 = 1 << 30;
const MAX_MESSAGE_LENGTH: u32 = 16 << 20;

pub(crate) fn read(text: &str) -> Result<ToolFile, ImportError> {
    read_rows(text.as_bytes())
}

/// Whether a file begins with the names of an export's columns, as other programs save them too: in quotes, with other
/// separators, or behind a column without a name.
pub fn starts_rows(begin: &[u8]) -> bool {
    let begin = begin.strip_prefix(b"\xef\xbb\xbf").unwrap_or(begin);
    let bare: Vec<u8> = begin.iter().copied().filter(|byte| *byte != b'"').collect();
    let behind_index = bare.strip_prefix(b",").or(bare.strip_prefix(b";")).or(bare.strip_prefix(b"\t"));
    let names = behind_index.unwrap_or(&bare);
    [b"block,", b"block;", b"block\t"].iter().any(|first| names.starts_with(*first))
}

/// Reads the rows of an export one after another: the file may be of any length.
/// Fails at the first row that cannot be read.
pub fn read_rows(inner: impl Read) -> Result<ToolFile, ImportError> {
    let mut reader = ::csv::Reader::from_reader(RowBytes::new(inner));
    let header = reader.headers().map_err(|error| broken(error, false))?.clone();
    check_separator(&header).map_err(|reason| ImportError::new(At::Line(1), reason))?;
    let place: HashMap<&str, usize> = header.iter().enumerate().map(|(place, name)| (name, place)).collect();
    if let Some(name) = NEEDED.split(' ').find(|name| !place.contains_key(name)) {
        let reason = format!(
            "there is no column `{name}`: this is not output of `stacklab export` (--slices is not read)"
        );
        return Err(ImportError::new(At::Line(1), reason));
    }
    check_columns(&header).map_err(|reason| ImportError::new(At::Line(1), reason))?;
    let mut runs: BTreeMap<(u32, u32), RunRecord> = BTreeMap::new();
    let mut record = ::csv::StringRecord::new();
    let mut at = At::Line(1);
    while reader.read_record(&mut record).map_err(|error| broken(error, is_windows(&reader)))? {
        reader.get_mut().allow_row(record.position().map_or(0, |position| position.byte()));
        at = place_of(record.position(), is_windows(&reader));
        let failed = |reason: String| ImportError::new(at, reason);
        let field = |name: &str| place.get(name).and_then(|place| record.get(*place)).unwrap_or_default();
        if runs.len() == MAX_TESTS {
            return Err(failed("there are too many runs".to_owned()));
        }
        let run = run(&field).map_err(failed)?;
        let metric: Metric = parse("metric", field("metric")).map_err(failed)?;
        let value = value(metric, &field).map_err(failed)?;
        let known = runs.entry((run.trial.block, run.trial.position)).or_insert_with(|| run.clone());
        if known.trial != run.trial {
            let Trial { block, position, .. } = run.trial;
            return Err(failed(format!("block {block} has two runs at position {position}")));
        }
        // Files of before have no such column: everything is the study's then.
        match field("in_study") {
            "" | "yes" => known.spec.probe.metrics.push(metric),
            "no" => {}
            other => {
                return Err(failed(format!("`{}` in `in_study` is not yes or no", other.escape_debug())));
            }
        }
        if known.values.insert(metric, value).is_some() {
            return Err(failed(format!("{metric} occurs twice")));
        }
    }
    if !reader.get_ref().is_last_line_whole() {
        return Err(ImportError::new(at, CUT));
    }
    let mut runs: Vec<RunRecord> = runs.into_values().collect();
    // Arms of one interleaved trial began together.
    let mut began: HashMap<(u32, u64), usize> = HashMap::new();
    runs.iter().for_each(|run| *began.entry((run.trial.block, run.started_unix_ns)).or_default() += 1);
    for run in &mut runs {
        if began[&(run.trial.block, run.started_unix_ns)] > 1 && run.started_unix_ns > 0 {
            run.spec.schedule = ArmSchedule::TokenPassing(None);
        }
    }
    Ok(ToolFile { format: Format::Csv, version: None, content: Content::Runs(runs), left_out: Vec::new() })
}

/// Fails if columns are separated by another mark, as where a decimal comma is usual.
fn check_separator(header: &::csv::StringRecord) -> Result<(), String> {
    let first = header.get(0).unwrap_or_default();
    match [";", "\t"].iter().find(|mark| header.len() == 1 && first.contains(**mark)) {
        Some(mark) => Err(format!(
            "its columns are separated by `{}`: save it with commas, and with decimal points",
            mark.escape_debug()
        )),
        None => Ok(()),
    }
}

/// Fails at a column that an export does not have, or has once: an unknown one may be what rows differ by.
fn check_columns(header: &::csv::StringRecord) -> Result<(), String> {
    let settings = Factor::ALL.iter().filter(|factor| factor.is_setting()).map(|factor| factor.name());
    let mut left: HashSet<&str> = NEEDED.split(' ').chain(OTHERS.split(' ')).chain(settings).collect();
    let known = left.clone();
    for name in header {
        if name.is_empty() {
            return Err(
                "a column has no name, as an index of rows: remove it (pandas: index=False)".to_owned()
            );
        }
        if !known.contains(name) {
            let name = name.escape_debug();
            return Err(format!(
                "the column `{name}` is not one of `stacklab export`, and rows may differ by it: remove it"
            ));
        }
        if !left.remove(name) {
            return Err(format!("the column `{name}` occurs twice"));
        }
    }
    Ok(())
}

/// The value of a row, in the metric's unit.
fn value<'a>(metric: Metric, field: &impl Fn(&str) -> &'a str) -> Result<Value, String> {
    let unit = field("unit");
    let expected = metric.unit().symbol();
    if !unit.is_empty() && unit != expected {
        let unit = unit.escape_debug();
        return Err(format!("{metric} is in `{unit}`, and its unit is {expected}: convert it"));
    }
    match (field("number"), strip_guard(field("missing"))) {
        ("", "") => Ok(Value::Missing("not stated".to_owned())),
        ("", reason) => Ok(Value::Missing(reason.to_owned())),
        (figure, "") => {
            let number = crate::value::number(figure).ok_or_else(|| {
                let figure = figure.escape_debug();
                format!("the column `number` has `{figure}`, which is not a number with a decimal point")
            })?;
            let number = check_range(metric, number).map_err(|reason| format!("{metric}: {reason}"))?;
            Ok(Value::Measured(number))
        }
        _ => Err(format!("{metric} has a number, and is missing")),
    }
}

fn is_windows<R: Read>(reader: &::csv::Reader<RowBytes<R>>) -> bool {
    reader.get_ref().has_windows_lines()
}

/// The line of a record. With line ends of Windows, a record begins at the second byte of the one before.
fn place_of(position: Option<&::csv::Position>, is_windows: bool) -> At {
    position.map_or(At::File, |position| At::Line(position.line() as usize + usize::from(is_windows)))
}

fn broken(error: ::csv::Error, is_windows: bool) -> ImportError {
    let at = place_of(error.position(), is_windows);
    let reason = match error.kind() {
        ::csv::ErrorKind::UnequalLengths { expected_len: expected, len, .. } => {
            format!("it has {len} fields, and the first line {expected}: the file is damaged or cut short")
        }
        _ => error.to_string(),
    };
    ImportError::new(at, reason)
}

fn parse<T: FromStr>(name: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("`{}` is not a valid {name}", text.escape_debug()))
}

/// A text without the apostrophe that keeps spreadsheets from taking it for a formula.
fn strip_guard(text: &str) -> &str {
    text.strip_prefix('\'').filter(|text| text.starts_with(['=', '+', '-', '@'])).unwrap_or(text)
}

fn run<'a>(field: &impl Fn(&str) -> &'a str) -> Result<RunRecord, String> {
    let size: u32 = read_field(field, "size")?;
    let block: u32 = read_field(field, "block")?;
    let position: u32 = read_field(field, "position")?;
    if size > MAX_MESSAGE_LENGTH || block > LAST_TRIAL || position > LAST_TRIAL {
        return Err("block, position or size is larger than any record's".to_owned());
    }
    let transport = read_field(field, "transport")?;
    let size_of = read_field(field, "size_of")?;
    let mut cell = Cell::new(read_field(field, "family")?, transport, size_of, size);
    for factor in Factor::ALL.iter().copied() {
        if factor != Factor::Replica && !factor.is_setting() {
            continue;
        }
        let level = strip_guard(field(factor.name()));
        if !level.is_empty() {
            cell.set(factor, level)
                .map_err(|_| format!("`{}` is not a level of {factor}", level.escape_debug()))?;
        }
    }
    let status = match (field("status"), strip_guard(field("reasons"))) {
        ("valid", _) => RunStatus::Valid,
        ("invalid", reasons) => RunStatus::Invalid(reasons.split("; ").map(str::to_owned).collect()),
        (other, _) => return Err(format!("`{}` is not a status", other.escape_debug())),
    };
    let started_unix_ns = read_time(field, "started_unix_ns")?.min(i64::MAX as u64);
    let wall_ns = read_time(field, "wall_ns")?.min(10_u64.pow(17));
    let probe: Probe = read_field(field, "probe")?;
    Ok(RunRecord {
        // The time of a run is longer than that of its traffic, which rows do not have.
        spec: spec(&cell, probe, None, 0),
        trial: Trial { block, position, cell, probe },
        started_unix_ns,
        wall_ns,
        status,
        values: Values::default(),
        drops: Drops::default(),
        host_reports: Vec::new(),
        warnings: Vec::new(),
    })
}

fn read_field<'a, T: FromStr>(field: &impl Fn(&str) -> &'a str, name: &str) -> Result<T, String> {
    parse(name, field(name))
}

/// A time of a run; 0 without one, as an imported run may be.
fn read_time<'a>(field: &impl Fn(&str) -> &'a str, name: &str) -> Result<u64, String> {
    if field(name).is_empty() { Ok(0) } else { read_field(field, name) }
}

/// What is known of how a run was made.
pub(crate) fn spec(cell: &Cell, probe: Probe, rate: Option<f64>, lasted_ns: u64) -> TrialSpec {
    let bits = 8.0 * f64::from(cell.payload_bytes().max(1));
    let pacing = match rate {
        Some(rate) => Pacing::Schedule(rate / bits),
        None if probe == Probe::Echo => Pacing::Lockstep,
        None => Pacing::Flood,
    };
    let length = Length::Time(lasted_ns);
    let probe =
        ProbeSpec { probe, pacing, length, warmup_ns: 0, interval_ns: lasted_ns.max(1), metrics: Vec::new() };
    TrialSpec { cpu_scope: CpuScope::Various, ..TrialSpec::new(0, cell, probe) }
}
