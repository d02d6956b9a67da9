//! What each block of a pair gave for each comparison, as a Parquet file: all that a report of a fleet reads.

use super::lake::{LakePair, pair_columns};
use super::parquet::{Column, Columns, render};
use super::{cell_fields, setting_fields};
use crate::rendering::csv::{Field, field};
use ::parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::reader::ChunkReader;
use ::parquet::file::serialized_reader::SerializedFileReader;
use stacklab_model::{ArmFigure, BlockFigures, BlockSummary, Question};

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

/// The columns.
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
    fields.extend([
        field("comparison", "number of the comparison, from 0", number),
        field("metric", "the metric", of.map(|question| question.metric.name())),
        field("unit", "unit of the figure", of.map(|question| question.metric.unit().symbol())),
        field("factor", "the factor by which the arms differ", of.map(|question| question.factor.name())),
        field(ARMS[0], "level of the factor", level(0)),
        field(ARMS[1], "level of the factor", level(1)),
    ]);
    let cell = of.map(|question| &question.baseline);
    fields.extend(cell_fields(cell));
    fields.extend(setting_fields(cell));
    fields
}

/// What a block gave. Without one, the columns.
fn block_fields(of: Option<(u32, [u32; 2], &BlockFigures)>) -> Vec<Field> {
    let count = |count: Option<u32>| count.map(u64::from);
    let mut fields = vec![
        field("block", "block, from 0", count(of.map(|(block, ..)| block))),
        field("valid_runs", "valid runs of the block", count(of.map(|(_, runs, _)| runs[0]))),
        field("runs", "runs of the block", count(of.map(|(_, runs, _)| runs[1]))),
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
            field(
                format!("{name}_number"),
                "the figure, unrounded (shares from 0 to 1); absent if there is none",
                found.and_then(ArmFigure::figure),
            ),
            field(
                format!("{name}_messages"),
                "about how many messages the run sent, if the metric counts events",
                messages,
            ),
            field(format!("{name}_missing"), "why there is no figure", absent),
            field(format!("{name}_status"), "`valid` or `invalid`; absent if it was not run", status),
        ]);
    }
    fields
}

fn status(valid: bool) -> &'static str {
    if valid { "valid" } else { "invalid" }
}

/// Reads the blocks of such a file. Figures, and the reasons where there are none, are those that were written.
///
/// # Errors
/// If it is not such a file, or not one of this many comparisons.
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
    let (baseline, candidate) = (baseline?, candidate?);
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

/// The columns of an arm.
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
    use crate::tests::fixtures::findings;
    use bytes::Bytes;

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
}
