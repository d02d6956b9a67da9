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
    let row = |row: &rusqlite::Row| -> rusqlite::Result<Row> {
        let word = |place: usize| row.get::<_, String>(place);
        let size: u32 = row.get(6)?;
        let cell = [word(2)?, word(3)?, word(4)?, word(5)?, size.to_string()].join(" ");
        Ok((row.get(0)?, row.get(1)?, cell))
    };
    query.query_map([], row).unwrap().map(Result::unwrap).collect()
}

/// The runs in the plan of a study whose minimum and maximum number of blocks are equal.
pub(crate) fn planned(study: &str, seed: u64) -> Vec<Row> {
    let study = stacklab_study::parse(&Input::file("study.toml", study)).unwrap();
    let row = |Trial { block, position, cell, probe }: Trial| {
        let words = [probe.name(), cell.family.name(), cell.transport.name(), cell.size_of.name()];
        (block, position, format!("{} {}", words.join(" "), cell.size))
    };
    let plan = Plan::new(&study, seed);
    let trials = |block| plan.active(&study, plan.block(block), &[], &study.questions());
    (0..study.rule.max).flat_map(trials).map(row).collect()
}
