//! The runs of a record, and those that its study plans.

use super::program::record;
use stacklab_model::Trial;
use stacklab_study::{Input, Plan};
use std::path::Path;

/// A run of a record: block, position, and probe and cell.
pub(crate) type Row = (u32, u32, String);

/// The runs of a record in the order of measuring.
pub(crate) fn measured(path: &Path) -> Vec<Row> {
    let record = record(path);
    let mut query = record
        .prepare("SELECT block, position, probe, family, transport, size_of, size FROM run ORDER BY id")
        .unwrap();
    query.query_map([], read_row).unwrap().map(Result::unwrap).collect()
}

fn read_row(row: &rusqlite::Row) -> rusqlite::Result<Row> {
    let mut words: Vec<String> = Vec::new();
    for place in 2..6 {
        words.push(row.get(place)?);
    }
    let size: u32 = row.get(6)?;
    Ok((row.get(0)?, row.get(1)?, format!("{} {size}", words.join(" "))))
}

/// The runs in the plan of a study whose minimum and maximum number of blocks are equal.
pub(crate) fn planned(study: &str, seed: u64) -> Vec<Row> {
    let study = stacklab_study::parse(&Input::file("study.toml", study)).unwrap();
    let plan = Plan::new(&study, seed);
    let mut rows = Vec::new();
    for block in 0..study.rule.max {
        rows.extend(plan.active(&study, plan.block(block), &[], &study.questions()).into_iter().map(as_row));
    }
    rows
}

fn as_row(Trial { block, position, cell, probe }: Trial) -> Row {
    let words = [probe.name(), cell.family.name(), cell.transport.name(), cell.size_of.name()];
    (block, position, format!("{} {}", words.join(" "), cell.size))
}
