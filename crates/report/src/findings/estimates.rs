//! The tables of cells that no comparison shows.

use crate::findings::comparisons::{definition, mean_decimals, means};
use crate::findings::groups::{self, labelled, place, row_factors, sizes_of, sort_key, varied};
use crate::rendering::document::{Block, Footnotes};
use crate::rendering::numbers::{DisplayUnit, NONE, fixed, signed};
use stacklab_model::{
    Cell, CellEstimate, CpuScope, Estimate, Factor, Findings, Metric, SizeOf, Transport, once_each,
};
use std::collections::{BTreeMap, HashSet};

/// Cells and metrics that are in no comparison: all of them in a study that asks for none.
pub(crate) fn uncompared(findings: &Findings) -> impl Iterator<Item = &CellEstimate> {
    let questions = findings.comparisons.iter().map(|comparison| &comparison.question);
    let compared: HashSet<(&Cell, Metric)> = questions
        .flat_map(|question| [(&question.baseline, question.metric), (&question.candidate, question.metric)])
        .collect();
    findings.cells.iter().filter(move |estimate| !compared.contains(&(&estimate.cell, estimate.metric)))
}

/// A table for each metric, transport and meaning of size.
pub(crate) fn blocks(findings: &Findings) -> Vec<Block> {
    let mut groups: BTreeMap<(Metric, Transport, SizeOf), Vec<&CellEstimate>> = BTreeMap::new();
    // The bias of generators and properties of paths have their own tables.
    for estimate in uncompared(findings).filter(|estimate| estimate.metric.is_compared()) {
        let cell = &estimate.cell;
        groups.entry((estimate.metric, cell.transport, cell.size_of)).or_default().push(estimate);
    }
    let varied = varied(groups::cells(findings));
    let sizes_of = sizes_of(findings).len();
    let group =
        |((metric, transport, size_of), mut rows): ((Metric, Transport, SizeOf), Vec<&CellEstimate>)| {
            rows.sort_by_key(|row| sort_key(&row.cell));
            part(
                metric,
                &place(Some(transport), Some(size_of).filter(|_| sizes_of > 1)),
                &rows,
                &varied,
                findings.cpu_scope,
            )
        };
    groups.into_iter().flat_map(group).collect()
}

fn part(
    metric: Metric,
    place: &str,
    rows: &[&CellEstimate],
    varied: &[Factor],
    cpu_scope: CpuScope,
) -> [Block; 3] {
    let shown = DisplayUnit::fitting(metric, rows.iter().filter_map(|row| row.estimate.mean));
    let mut notes = Footnotes::default();
    let cells: Vec<&Cell> = rows.iter().map(|row| &row.cell).collect();
    let mut table = labelled(&cells, &row_factors(cells.iter().copied(), varied, None));
    let estimates: Vec<&Estimate> = rows.iter().map(|row| &row.estimate).collect();
    let places = mean_decimals(estimates.iter().copied(), &shown);
    table.push("mean", true, means(&estimates, &shown, places, &mut notes));
    let column = |figure: fn(&Estimate) -> Option<f64>| {
        let write = |figure: f64| fixed(shown.factor * figure, places);
        estimates.iter().map(|estimate| figure(estimate).map_or(NONE.to_owned(), write)).collect()
    };
    table.push_optional("sd", column(|estimate| estimate.sd));
    table.push_optional("median", column(|estimate| estimate.median));
    table.push_optional("n", estimates.iter().map(|estimate| estimate.n.to_string()).collect());
    table.footnotes = notes;
    [
        Block::Heading(format!("{}, {place}", metric.label())),
        Block::Text(format!("in {}", definition(metric, &shown, cpu_scope))),
        Block::Table(table),
    ]
}

/// The table of each generator's bias: its own count of payload beside what the interfaces counted. None in a study
/// that does not ask for it.
pub(crate) fn bias_of_generators(findings: &Findings) -> Vec<Block> {
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
