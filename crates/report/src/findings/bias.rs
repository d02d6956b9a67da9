//! The table of each generator's bias: its own count of payload beside what the interfaces counted.

use crate::findings::groups::{self, labelled, row_factors, sort_key, varied};
use crate::rendering::document::{Block, Footnotes};
use crate::rendering::numbers::{NONE, signed};
use stacklab_model::{Cell, Estimate, Factor, Findings, Metric, once_each};

/// One table of all cells; none in a study that does not ask for it.
pub(crate) fn blocks(findings: &Findings) -> Vec<Block> {
    let metrics: Vec<Metric> = once_each(
        findings.cells.iter().map(|estimate| estimate.metric).filter(|metric| metric.is_generator_error()),
    );
    if metrics.is_empty() {
        return Vec::new();
    }
    let biased = findings.cells.iter().filter(|estimate| estimate.metric.is_generator_error());
    let mut cells: Vec<&Cell> = once_each(biased.map(|estimate| &estimate.cell));
    cells.sort_by_key(|cell| (cell.transport, sort_key(cell)));
    let mut notes = Footnotes::default();
    let mut factors = row_factors(cells.iter().copied(), &varied(groups::cells(findings)), None);
    if once_each(cells.iter().map(|cell| cell.transport)).len() > 1 {
        factors.insert(0, Factor::Transport);
    }
    let mut table = labelled(&cells, &factors);
    let of = |cell: &Cell, metric: Metric| {
        findings.cells.iter().find(|found| found.metric == metric && found.cell == *cell)
    };
    for metric in &metrics {
        let figure = |cell: &&Cell| match of(cell, *metric) {
            Some(found) => bias(&found.estimate, &mut notes),
            None => NONE.to_owned(),
        };
        table.push(format!("{}, %", metric.label()), true, cells.iter().map(figure).collect());
    }
    let most = |cell: &&Cell| {
        metrics.iter().filter_map(|metric| of(cell, *metric)).map(|found| found.estimate.n).max()
    };
    table.push("n", true, cells.iter().map(|cell| most(cell).unwrap_or(0).to_string()).collect());
    table.footnotes = notes;
    let definitions = metrics.iter().map(|metric| format!("{}: {}.", metric.label(), metric.definition()));
    let about = definitions.chain(["Mean and half of its 95 % interval.".to_owned()]);
    vec![
        Block::Heading("Bias of generators".to_owned()),
        Block::Text(about.collect::<Vec<_>>().join(" ")),
        Block::Table(table),
    ]
}

/// `-0.12 ± 0.03`.
fn bias(estimate: &Estimate, notes: &mut Footnotes) -> String {
    let Some(mean) = estimate.mean else {
        return match &estimate.missing {
            Some(reason) => format!("{NONE} {}", notes.mark(reason)),
            None => NONE.to_owned(),
        };
    };
    match estimate.interval {
        Some(interval) => format!("{} ± {:.2}", signed(mean, 2), (interval.high - interval.low) / 2.0),
        None => signed(mean, 2),
    }
}
