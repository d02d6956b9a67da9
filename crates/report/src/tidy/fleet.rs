//! The results of a fleet as Parquet files: its runs, partitioned by campaign and day in the style of Hive, and what
//! each block of a pair gave for each comparison, which is all that a report of a fleet reads.

use super::parquet::{Columns, Values, render};
use super::{RunTable, list_values, status, value_columns};
use crate::rendering::column::{
    Column, ColumnHead, Compares, Field, Subject, cell_columns, list_heads, metric_columns, read_fields,
    setting_columns,
};
use ::parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::reader::ChunkReader;
use ::parquet::file::serialized_reader::SerializedFileReader;
use jiff::Timestamp;
use stacklab_model::{ArmFigure, BlockFigures, BlockSummary, Question, RunRecord};
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
    let attempts = attempt_columns();
    let table = RunTable::new(value_columns());
    let heads = [list_heads(&attempts), table.heads()].concat();
    let mut files = BTreeMap::new();
    for (day, runs) in days {
        let rows = runs.into_iter().flat_map(|(attempt, run)| {
            let before = read_fields(&attempts, &AttemptRow { pair, attempt: *attempt });
            let rows = table.list_fields(run, &list_values(run)).into_iter();
            rows.map(move |row| [&before[..], &row].concat())
        });
        files.insert(day, render(&heads, rows));
    }
    files
}

/// The attempt of a pair at a block.
pub(crate) struct AttemptRow<'a> {
    pair: LakePair<'a>,
    attempt: u32,
}

/// The columns before those of every run.
pub(crate) fn attempt_columns<'a>() -> Vec<Column<'a, AttemptRow<'a>>> {
    let mut columns: Vec<Column<AttemptRow>> = Vec::from(pair_columns(|row: &AttemptRow| &row.pair));
    let about = "attempt at the block that gave the result, from 1";
    columns.push(Column::number("attempt", about, |row: &AttemptRow| Some(row.attempt.into())));
    columns
}

fn pair_columns<'a, Row: 'a>(find: for<'r> fn(&'r Row) -> &'r LakePair<'r>) -> [Column<'a, Row>; 3] {
    [
        Column::number("pair", "number of the pair, from 0", move |row| Some(find(row).number.into())),
        Column::text("sender", "name of the sender's agent", move |row| Some(find(row).sender)),
        Column::text("receiver", "name of the receiver's agent", move |row| Some(find(row).receiver)),
    ]
}

fn folder_of_day(unix_ns: u64) -> String {
    // Every u64 of nanoseconds is a time that jiff knows: they end in 2554.
    let time = Timestamp::from_nanosecond(unix_ns.into()).unwrap_or_default();
    time.strftime("day=%Y-%m-%d").to_string()
}

const ARMS: [&str; 2] = ["baseline", "candidate"];

/// The blocks of a pair, each with its number, as one file.
pub fn comparisons_file(pair: LakePair, questions: &[Question], blocks: &[(u32, BlockSummary)]) -> Vec<u8> {
    let columns = question_columns();
    let mut named = Vec::new();
    for (number, question) in (0..).zip(questions) {
        named.push(read_fields(&columns, &QuestionRow { pair, number, question }));
    }
    let columns = block_columns();
    let rows = blocks.iter().flat_map(|(block, summary)| list_block_rows(&named, &columns, *block, summary));
    render(&list_comparison_heads(), rows)
}

/// A row for each question, whose own fields are `named`.
fn list_block_rows<'a>(
    named: &[Vec<Field>],
    columns: &[Column<'a, BlockRow<'a>>],
    block: u32,
    summary: &'a BlockSummary,
) -> Vec<Vec<Field>> {
    let mut rows = Vec::new();
    for (named, figures) in named.iter().zip(&summary.figures) {
        let row = BlockRow { block, runs: summary.runs, figures };
        rows.push([&named[..], &read_fields(columns, &row)].concat());
    }
    rows
}

fn list_comparison_heads() -> Vec<ColumnHead> {
    [list_heads(&question_columns()), list_heads(&block_columns())].concat()
}

/// What is the same in each block.
pub(crate) struct QuestionRow<'a> {
    pair: LakePair<'a>,
    number: u32,
    question: &'a Question,
}

fn find_subject<'a>(row: &'a QuestionRow) -> Subject<'a> {
    Subject { cell: &row.question.baseline, compared: None }
}

pub(crate) fn question_columns<'a>() -> Vec<Column<'a, QuestionRow<'a>>> {
    let mut columns: Vec<Column<QuestionRow>> = Vec::from(pair_columns(|row: &QuestionRow| &row.pair));
    columns.push(Column::number("comparison", "number of the comparison, from 0", |row: &QuestionRow| {
        Some(row.number.into())
    }));
    columns.extend(metric_columns("unit of the figure", |row: &QuestionRow| row.question.metric));
    columns.extend([
        Column::text("factor", "the factor by which the arms differ", |row: &QuestionRow| {
            Some(row.question.factor.name())
        }),
        Column::new_text(ARMS[0], "level of the factor", |row: &QuestionRow| {
            Some(row.question.baseline.level(row.question.factor))
        }),
        Column::new_text(ARMS[1], "level of the factor", |row: &QuestionRow| {
            Some(row.question.candidate.level(row.question.factor))
        }),
    ]);
    columns.extend(cell_columns(Compares::Nothing, find_subject));
    columns.extend(setting_columns(Compares::Nothing, find_subject));
    columns
}

/// What a block gave for a comparison.
pub(crate) struct BlockRow<'a> {
    block: u32,
    runs: [u32; 2],
    figures: &'a BlockFigures,
}

pub(crate) fn block_columns<'a>() -> Vec<Column<'a, BlockRow<'a>>> {
    let mut columns = vec![
        Column::number("block", "block, from 0", |row: &BlockRow| Some(row.block.into())),
        Column::number("valid_runs", "valid runs of the block", |row: &BlockRow| Some(row.runs[0].into())),
        Column::number("runs", "runs of the block", |row: &BlockRow| Some(row.runs[1].into())),
    ];
    for (arm, name) in ARMS.into_iter().enumerate() {
        columns.extend([
            Column::figure(
                format!("{name}_number"),
                "the figure, unrounded (shares from 0 to 1); absent if there is none",
                move |row: &BlockRow| row.figures[arm].as_ref()?.figure(),
            ),
            Column::figure(
                format!("{name}_messages"),
                "about how many messages the run sent, if the metric counts events",
                move |row: &BlockRow| match row.figures[arm].as_ref()? {
                    ArmFigure::Events([_, messages]) => Some(*messages),
                    _ => None,
                },
            ),
            Column::text(
                format!("{name}_missing"),
                "why there is no figure",
                move |row: &BlockRow| match row.figures[arm].as_ref()? {
                    ArmFigure::Absent { absent, .. } => Some(absent.as_str()),
                    _ => None,
                },
            ),
            Column::text(
                format!("{name}_status"),
                "`valid` or `invalid`; absent if it was not run",
                move |row: &BlockRow| match row.figures[arm].as_ref()? {
                    ArmFigure::Absent { valid, .. } => Some(status(*valid)),
                    _ => Some(status(true)),
                },
            ),
        ]);
    }
    columns
}

/// Reads the blocks of such a file. Figures, and the reasons where there are none, are those that were written.
pub fn read_comparisons(
    file: impl ChunkReader + 'static,
    comparisons: usize,
) -> Result<Vec<(u32, BlockSummary)>, String> {
    let mut blocks = Vec::new();
    let read = SerializedFileReader::new(file).and_then(|file| {
        Columns::of_groups(&file).try_for_each(|group| add(&group?, comparisons, &mut blocks))
    });
    read.map_err(|error| error.to_string())?;
    match blocks.iter().find(|(_, summary)| summary.figures.len() != comparisons) {
        Some((block, _)) => Err(format!("block {block} lacks comparisons")),
        None => Ok(blocks),
    }
}

fn add(
    group: &Columns,
    comparisons: usize,
    blocks: &mut Vec<(u32, BlockSummary)>,
) -> Result<(), ParquetError> {
    let mut columns = Vec::new();
    for name in ["block", "comparison", "valid_runs", "runs"] {
        columns.push(group.read::<Int64Type>(name)?);
    }
    let [baseline, candidate] = ARMS.map(|arm| Arm::read(group, arm));
    let baseline = baseline?;
    let candidate = candidate?;
    for row in 0..columns[0].len() {
        let mut numbers = [0; 4];
        for (number, column) in numbers.iter_mut().zip(&columns) {
            let found = column.get(row).copied().flatten().and_then(|number| u32::try_from(number).ok());
            *number = found.ok_or_else(|| refuse("a number is missing or out of range"))?;
        }
        let [block, comparison, valid, runs] = numbers;
        if comparison as usize >= comparisons {
            return Err(refuse("it has more comparisons than the study"));
        }
        if comparison == 0 && blocks.last().is_none_or(|(last, _)| *last < block) {
            let figures = Vec::with_capacity(comparisons);
            blocks.push((block, BlockSummary { runs: [valid, runs], figures }));
        }
        match blocks.last_mut() {
            Some((last, summary)) if *last == block && summary.figures.len() == comparison as usize => {
                summary.figures.push([baseline.figure(row)?, candidate.figure(row)?]);
            }
            _ => return Err(refuse("its rows are not in order")),
        }
    }
    Ok(())
}

fn refuse(reason: &str) -> ParquetError {
    ParquetError::General(reason.to_owned())
}

struct Arm {
    number: Values<f64>,
    messages: Values<f64>,
    missing: Values<ByteArray>,
    status: Values<ByteArray>,
}

impl Arm {
    fn read(group: &Columns, name: &str) -> Result<Self, ParquetError> {
        Ok(Arm {
            number: group.read::<DoubleType>(&format!("{name}_number"))?,
            messages: group.read::<DoubleType>(&format!("{name}_messages"))?,
            missing: group.read::<ByteArrayType>(&format!("{name}_missing"))?,
            status: group.read::<ByteArrayType>(&format!("{name}_status"))?,
        })
    }

    fn figure(&self, row: usize) -> Result<Option<ArmFigure>, ParquetError> {
        let Some(status) = self.status.get(row).and_then(Option::as_ref) else { return Ok(None) };
        let number = self.number.get(row).copied().flatten();
        let messages = self.messages.get(row).copied().flatten();
        if [number, messages].into_iter().flatten().any(|figure| !figure.is_finite()) {
            return Err(refuse("a figure is not finite"));
        }
        Ok(Some(match (number, messages) {
            (Some(number), Some(messages)) => ArmFigure::Events([number, messages]),
            (Some(number), None) => ArmFigure::Measured(number),
            (None, _) => {
                let missing = self.missing.get(row).and_then(Option::as_ref);
                let absent = missing.map(|text| String::from_utf8_lossy(text.data()).into_owned());
                ArmFigure::Absent { absent: absent.unwrap_or_default(), valid: status.data() == b"valid" }
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::tests::run;
    use crate::tests::fixtures::findings;
    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    use ::parquet::record::RowAccessor;
    use bytes::Bytes;
    use stacklab_model::RunStatus;
    use std::collections::BTreeSet;

    const PAIR: LakePair = LakePair { number: 3, sender: "a", receiver: "b" };

    fn absent(reason: &str, valid: bool) -> Option<ArmFigure> {
        Some(ArmFigure::Absent { absent: reason.to_owned(), valid })
    }

    fn figure_of(figure: f64) -> Option<ArmFigure> {
        Some(ArmFigure::Measured(figure))
    }

    #[test]
    fn blocks_are_read_as_they_were_written() {
        let questions: Vec<Question> = findings().comparisons.into_iter().map(|of| of.question).collect();
        let questions = &questions[..2];
        let blocks = vec![
            (
                0,
                BlockSummary {
                    runs: [4, 4],
                    figures: vec![[figure_of(0.1 + 0.2), figure_of(-1e300)], [None, figure_of(2.0)]],
                },
            ),
            (
                7,
                BlockSummary {
                    runs: [1, 4],
                    figures: vec![
                        [absent("no arrivals", true), absent("MTU is 1280", false)],
                        [Some(ArmFigure::Events([0.0, 1e6])), None],
                    ],
                },
            ),
        ];
        let file = comparisons_file(PAIR, questions, &blocks);
        assert_eq!(read_comparisons(Bytes::from(file.clone()), 2).unwrap(), blocks);
        assert_eq!(read_comparisons(Bytes::from(comparisons_file(PAIR, questions, &[])), 2).unwrap(), []);
        for again in &blocks {
            let blocks = [again.clone(), blocks[0].clone()];
            let file = Bytes::from(comparisons_file(PAIR, questions, &blocks));
            assert!(read_comparisons(file, 2).unwrap_err().contains("not in order"));
        }
        let endless = BlockSummary { runs: [1, 1], figures: vec![[figure_of(f64::INFINITY), None]; 2] };
        let unfit = Bytes::from(comparisons_file(PAIR, questions, &[(0, endless)]));
        assert!(read_comparisons(unfit, 2).unwrap_err().contains("not finite"));
        for wrong in [1, 3] {
            assert!(read_comparisons(Bytes::from(file.clone()), wrong).unwrap_err().contains("comparisons"));
        }
        for length in 0..file.len() {
            assert!(read_comparisons(Bytes::from(file[..length].to_vec()), 2).is_err(), "{length} bytes");
        }
    }

    const DAY_NS: u64 = 86_400_000_000_000;

    fn make_attempt(attempt: u32, unix_ns: u64) -> (u32, RunRecord) {
        (attempt, RunRecord { started_unix_ns: unix_ns, ..run(0, RunStatus::Valid) })
    }

    #[test]
    fn splits_runs_by_utc_day() {
        let runs = [
            make_attempt(1, 20_000 * DAY_NS - 1),
            make_attempt(3, 20_000 * DAY_NS),
            make_attempt(1, u64::MAX),
        ];
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
