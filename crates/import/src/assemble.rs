//! Tests of files as runs of one record.

use crate::formats::csv::spec;
use crate::test::{Content, ToolFile, ToolTest};
use stacklab_model::{Cell, Drops, RunRecord, RunStatus, ToolSeries, Trial};
use std::collections::{BTreeMap, BTreeSet};

/// The number of a file, a run of it, and the run's intervals.
pub type ImportedRun = (usize, RunRecord, Option<ToolSeries>);

/// The runs of files, each with the number of its file and its intervals.
///
/// A test of another tool has a separate block: nothing says which test it is paired with. Runs of stacklab stay
/// together in their blocks. Tests of one cell that differ in the tool or in the rate that was asked for are kept apart
/// by the label `replica`.
/// Fails with the file and the number of the first test (from 0) that belongs to no cell.
pub fn runs(files: &[ToolFile]) -> Result<Vec<ImportedRun>, (usize, usize)> {
    let mut next = 0;
    let mut runs = Vec::new();
    let kinds = kinds(files);
    for (file, ToolFile { format, content, .. }) in files.iter().enumerate() {
        match content {
            Content::Runs(own) => {
                let blocks: BTreeSet<u32> = own.iter().map(|run| run.trial.block).collect();
                let blocks: BTreeMap<u32, u32> = blocks.into_iter().zip(next..).collect();
                next += blocks.len() as u32;
                for run in own {
                    let mut run = run.clone();
                    run.trial.block = blocks[&run.trial.block];
                    runs.push((file, run, None));
                }
            }
            Content::Tests(tests) => {
                for (number, test) in tests.iter().enumerate() {
                    let mut cell = test.cell().map_err(|_| (file, number))?;
                    cell.replica = label(&kinds, &cell, format.tool(), test.rate);
                    runs.push((file, run(test, cell, next), test.series.clone()));
                    next += 1;
                }
            }
        }
    }
    Ok(runs)
}

/// Tools and rates of each cell's tests.
type Kinds = BTreeMap<Cell, (BTreeSet<&'static str>, BTreeSet<String>)>;

fn kinds(files: &[ToolFile]) -> Kinds {
    let mut kinds = Kinds::new();
    for ToolFile { format, content, .. } in files {
        let Content::Tests(tests) = content else { continue };
        for test in tests {
            // The rate is one of an experiment's settings in either family.
            if let Ok(cell) = test.cell() {
                let (tools, rates) = kinds.entry(neutral(&cell)).or_default();
                tools.insert(format.tool());
                rates.insert(rate(test.rate));
            }
        }
    }
    kinds
}

fn neutral(cell: &Cell) -> Cell {
    Cell { family: stacklab_model::Family::Ipv4, ..cell.clone() }
}

fn rate(rate: Option<f64>) -> String {
    rate.map_or_else(|| "no limit".to_owned(), |rate| format!("{} Mbit/s", rate / 1e6))
}

fn label(kinds: &Kinds, cell: &Cell, tool: &str, asked: Option<f64>) -> String {
    let Some((tools, rates)) = kinds.get(&neutral(cell)) else { return String::new() };
    let tool = (tools.len() > 1).then(|| tool.to_owned());
    let rate = (rates.len() > 1).then(|| rate(asked));
    tool.into_iter().chain(rate).collect::<Vec<_>>().join(", ")
}

fn run(test: &ToolTest, cell: Cell, block: u32) -> RunRecord {
    let mut spec = spec(&cell, test.probe, test.rate, test.duration_ns);
    spec.probe.metrics = test.values.keys().copied().collect();
    RunRecord {
        trial: Trial { block, position: 0, cell, probe: test.probe },
        spec,
        started_unix_ns: test.started_unix_ns.unwrap_or(0),
        wall_ns: test.duration_ns.min(10_u64.pow(17)),
        status: match test.invalid.is_empty() {
            true => RunStatus::Valid,
            false => RunStatus::Invalid(test.invalid.clone()),
        },
        values: test.values.clone(),
        drops: Drops::default(),
        host_reports: Vec::new(),
        warnings: test.warnings.clone(),
    }
}
