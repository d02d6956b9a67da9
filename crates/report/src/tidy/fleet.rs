//! The results of a fleet as Parquet files: its runs, partitioned by campaign and day in the style of Hive, and what
//! each block of a pair gave for each comparison, which is all that a report of a fleet reads.

use super::parquet::{Column, Columns, render};
use super::{metric_columns, metric_rows, status};
use crate::findings::csv::metric_fields;
use crate::rendering::csv::{Field, cell_fields, field, setting_fields};
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
    let columns = [pair_fields(None), metric_columns()].concat();
    let file = |runs: Vec<&(u32, RunRecord)>| {
        let rows = runs.into_iter().flat_map(|(attempt, run)| {
            metric_rows(run).map(move |row| [pair_fields(Some((pair, *attempt))), row].concat())
        });
        render(&columns, rows)
    };
    days.into_iter().map(|(day, runs)| (day, file(runs))).collect()
}

/// The columns before those of every run. Without a pair, their names.
pub(super) fn pair_fields(of: Option<(LakePair, u32)>) -> Vec<Field> {
    let mut fields = pair_columns(of.map(|(pair, _)| pair));
    let attempt = of.map(|(_, attempt)| u64::from(attempt));
    fields.push(field("attempt", attempt));
    fields
}

fn pair_columns(pair: Option<LakePair>) -> Vec<Field> {
    vec![
        field("pair", pair.map(|pair| u64::from(pair.number))),
        field("sender", pair.map(|pair| pair.sender)),
        field("receiver", pair.map(|pair| pair.receiver)),
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
    let named: Vec<Vec<Field>> =
        (0..).zip(questions).map(|question| question_fields(Some((pair, question)))).collect();
    let rows = blocks.iter().flat_map(|(block, summary)| {
        named.iter().zip(&summary.figures).map(move |(named, figures)| {
            let of_block = block_fields(Some((*block, summary.runs, figures)));
            named.iter().cloned().chain(of_block).collect()
        })
    });
    render(&columns(), rows)
}

pub(super) fn columns() -> Vec<Field> {
    [question_fields(None), block_fields(None)].concat()
}

/// What is the same in each block. Without a question, the columns.
fn question_fields(of: Option<(LakePair, (u32, &Question))>) -> Vec<Field> {
    let mut fields = pair_columns(of.map(|(pair, _)| pair));
    let number = of.map(|(_, (number, _))| u64::from(number));
    let of = of.map(|(_, (_, question))| question);
    let level =
        |arm: usize| of.map(|question| [&question.baseline, &question.candidate][arm].level(question.factor));
    fields.push(field("comparison", number));
    fields.extend(metric_fields(of.map(|question| question.metric)));
    fields.extend([
        field("factor", of.map(|question| question.factor.name())),
        field(ARMS[0], level(0)),
        field(ARMS[1], level(1)),
    ]);
    let cell = of.map(|question| &question.baseline);
    fields.extend(cell_fields(cell, None));
    fields.extend(setting_fields(cell, None));
    fields
}

/// What a block gave. Without one, the columns.
fn block_fields(of: Option<(u32, [u32; 2], &BlockFigures)>) -> Vec<Field> {
    let count = |count: Option<u32>| count.map(u64::from);
    let mut fields = vec![
        field("block", count(of.map(|(block, ..)| block))),
        field("valid_runs", count(of.map(|(_, runs, _)| runs[0]))),
        field("runs", count(of.map(|(_, runs, _)| runs[1]))),
    ];
    for (arm, name) in ARMS.into_iter().enumerate() {
        let found = of.and_then(|(.., figures)| figures[arm].as_ref());
        let messages = match found {
            Some(ArmFigure::Events([_, messages])) => Some(*messages),
            _ => None,
        };
        let (absent, status) = match found {
            Some(ArmFigure::Absent { absent, valid }) => (Some(absent.as_str()), Some(status(*valid))),
            Some(_) => (None, Some(status(true))),
            None => (None, None),
        };
        fields.extend([
            field(format!("{name}_number"), found.and_then(ArmFigure::figure)),
            field(format!("{name}_messages"), messages),
            field(format!("{name}_missing"), absent),
            field(format!("{name}_status"), status),
        ]);
    }
    fields
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
    let other = |reason: &str| ParquetError::General(reason.to_owned());
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
            *number = found.ok_or_else(|| other("a number is missing or out of range"))?;
        }
        let [block, comparison, valid, runs] = numbers;
        if comparison as usize >= comparisons {
            return Err(other("it has more comparisons than the study"));
        }
        if comparison == 0 && blocks.last().is_none_or(|(last, _)| *last < block) {
            let figures = Vec::with_capacity(comparisons);
            blocks.push((block, BlockSummary { runs: [valid, runs], figures }));
        }
        match blocks.last_mut() {
            Some((last, summary)) if *last == block && summary.figures.len() == comparison as usize => {
                summary.figures.push([baseline.figure(row)?, candidate.figure(row)?]);
            }
            _ => return Err(other("its rows are not in order")),
        }
    }
    Ok(())
}

struct Arm {
    number: Column<f64>,
    messages: Column<f64>,
    missing: Column<ByteArray>,
    status: Column<ByteArray>,
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
        let number = |column: &Column<f64>| column.get(row).copied().flatten();
        if [&self.number, &self.messages].into_iter().filter_map(number).any(|number| !number.is_finite()) {
            return Err(ParquetError::General("a figure is not finite".to_owned()));
        }
        Ok(Some(match (number(&self.number), number(&self.messages)) {
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

    #[test]
    fn blocks_are_read_as_they_were_written() {
        let questions: Vec<Question> = findings().comparisons.into_iter().map(|of| of.question).collect();
        let questions = &questions[..2];
        let figure = |figure| Some(ArmFigure::Measured(figure));
        let blocks = vec![
            (
                0,
                BlockSummary {
                    runs: [4, 4],
                    figures: vec![[figure(0.1 + 0.2), figure(-1e300)], [None, figure(2.0)]],
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
        let endless = BlockSummary { runs: [1, 1], figures: vec![[figure(f64::INFINITY), None]; 2] };
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
