//! The tables of cells that no comparison shows.

use crate::findings::comparisons::{definition, mean_decimals, means};
use crate::findings::groups::{self, labelled, place, row_factors, sizes_of, sort_key, varied};
use crate::rendering::document::{Block, Footnotes};
use crate::rendering::numbers::{DisplayUnit, NONE, fixed};
use stacklab_model::{Cell, CellEstimate, CpuScope, Estimate, Factor, Findings, Metric, SizeOf, Transport};
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
