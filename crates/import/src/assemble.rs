//! Tests of files as runs of one record.

use crate::formats::csv::spec;
use crate::test::{Content, ToolFile, ToolTest};
use stacklab_model::{
    Cell, Drops, Family, Metric, RunRecord, RunStatus, SizeOf, ToolSeries, Transport, Trial, Value, Warning,
    payload_of_frame,
};
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
    let sizes = sizes(files);
    let kinds = kinds(files, &sizes);
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
                    let cell = test.cell().map_err(|_| (file, number))?;
                    let by_frame = by_frame(&cell, &sizes);
                    let warning = by_frame.as_ref().map(|frame| size_warning(&cell, frame));
                    let mut cell = by_frame.unwrap_or(cell);
                    cell.replica = label(&kinds, &cell, format.tool(), test.rate);
                    let mut run = run(test, cell, next);
                    run.warnings.extend(warning);
                    runs.push((file, run, test.series.clone()));
                    next += 1;
                }
            }
        }
    }
    Ok(runs)
}

/// Tools and rates of each cell's tests.
type Kinds = BTreeMap<Cell, (BTreeSet<&'static str>, BTreeSet<String>)>;

fn kinds(files: &[ToolFile], sizes: &Sizes) -> Kinds {
    let mut kinds = Kinds::new();
    for ToolFile { format, content, .. } in files {
        let Content::Tests(tests) = content else { continue };
        for test in tests {
            // The rate is one of an experiment's settings in either family.
            if let Ok(cell) = test.cell() {
                let cell = by_frame(&cell, sizes).unwrap_or(cell);
                let (tools, rates) = kinds.entry(neutral(&cell)).or_default();
                tools.insert(format.tool());
                rates.insert(rate(test.rate));
            }
        }
    }
    kinds
}

fn neutral(cell: &Cell) -> Cell {
    Cell { family: Family::Ipv4, ..cell.clone() }
}

/// Families and sizes of all datagrams.
type Sizes = BTreeSet<(Family, u32)>;

fn sizes(files: &[ToolFile]) -> Sizes {
    let tests = files.iter().flat_map(|ToolFile { content, .. }| match content {
        Content::Tests(tests) => &tests[..],
        Content::Runs(_) => &[],
    });
    let cells = tests.filter_map(|test| test.cell().ok());
    cells.filter(|cell| cell.transport == Transport::Udp).map(|cell| (cell.family, cell.size)).collect()
}

/// The largest frame by which datagrams are compared: a jumbo frame.
const MAX_FRAME_BYTES: u32 = 9018;
/// Ethernet's header and checksum.
const FRAMING_BYTES: u32 = 18;

/// The cell by the frame's size, where the datagrams of both families differ in size and their packets do not: iperf3
/// sends 1448 bytes over IPv4 and 1428 over IPv6, each in a packet of 1476. `None` if the other family has datagrams of
/// this size, or none whose packets are as long.
fn by_frame(cell: &Cell, sizes: &Sizes) -> Option<Cell> {
    let other = if cell.family == Family::Ipv4 { Family::Ipv6 } else { Family::Ipv4 };
    let frame = cell.size + Transport::Udp.header_bytes() + cell.family.header_bytes() + FRAMING_BYTES;
    let twin = payload_of_frame(other, Transport::Udp, frame)?;
    let is_twin = cell.transport == Transport::Udp && sizes.contains(&(other, twin));
    let is_paired = sizes.contains(&(other, cell.size)) || sizes.contains(&(cell.family, twin));
    let is_framed = is_twin && !is_paired && frame <= MAX_FRAME_BYTES;
    is_framed.then(|| Cell { size_of: SizeOf::Frame, size: frame, ..cell.clone() })
}

fn size_warning(cell: &Cell, frame: &Cell) -> Warning {
    Warning {
        code: "tool_size".to_owned(),
        text: format!(
            "datagrams of {} bytes are compared by their frame of {} bytes: those of the other family have another size \
             and are in packets as long",
            cell.size, frame.size
        ),
        advice: "for datagrams of the same size in both families, choose it (iperf3 -l)".to_owned(),
    }
}

/// Metrics without a figure, and why there is none.
pub type EmptyMetrics = BTreeMap<(Transport, Metric), String>;

/// Takes metrics out of the runs of other tools that no run of their transport has a figure of, but for those that are
/// named. A transport without any figure keeps all of them, with their reasons.
pub fn leave_out_empty(files: &[ToolFile], runs: &mut [ImportedRun], named: &[Metric]) -> EmptyMetrics {
    let mut measured: BTreeSet<(Transport, Metric)> = BTreeSet::new();
    for (_, run, _) in runs.iter() {
        let transport = run.trial.cell.transport;
        let with_figure = run.values.iter().filter(|(_, value)| value.measured().is_some());
        measured.extend(with_figure.map(|(metric, _)| (transport, *metric)));
    }
    let mut empty = EmptyMetrics::new();
    for (file, run, _) in runs {
        let transport = run.trial.cell.transport;
        let is_of_tool = matches!(files[*file].content, Content::Tests(_));
        if !is_of_tool || !measured.iter().any(|(of, _)| *of == transport) {
            continue;
        }
        run.values.retain(|metric, value| {
            let is_kept = measured.contains(&(transport, *metric)) || named.contains(metric);
            if let (false, Value::Missing(reason)) = (is_kept, value) {
                empty.entry((transport, *metric)).or_insert_with(|| reason.clone());
            }
            is_kept
        });
        run.spec.probe.metrics = run.values.keys().copied().collect();
    }
    empty
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
        values: test.values.clone().into(),
        drops: Drops::default(),
        host_reports: Vec::new(),
        warnings: test.warnings.clone(),
    }
}
