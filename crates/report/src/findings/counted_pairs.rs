//! Tables of pairs of cells whose instructions were counted: what those of messages and of programs have in common.

use crate::findings::comparisons::distance;
use crate::findings::groups::{cells, group_by_key, level, list_varied_factors, row_factors, sort_key};
use crate::rendering::document::{Block, Table, plain};
use crate::rendering::numbers::{DisplayUnit, difference_heading, difference_places, differences};
use stacklab_model::{Cell, Comparison, Explanation, Factor, Findings, Metric};

/// Adds a table of each pair of levels, with a row for each pair of cells.
pub(super) fn push_pairs<'a>(
    blocks: &mut Vec<Block>,
    pairs: Vec<Vec<&'a Explanation>>,
    table: impl Fn(&[&'a Explanation]) -> Table,
) {
    for mut rows in pairs {
        rows.sort_by_key(|row| sort_key(&row.baseline));
        let one = rows[0];
        let arms = [&one.candidate, &one.baseline].map(|cell| level(cell, one.factor));
        blocks.push(Block::Text(plain(&format!("{} vs {}", arms[0], arms[1]))));
        blocks.push(Block::Table(table(&rows)));
    }
}

/// The explanations that were counted, those of each pair of levels together.
pub(super) fn group_pairs<'a>(counted: impl Iterator<Item = &'a Explanation>) -> Vec<Vec<&'a Explanation>> {
    let groups = group_by_key(counted.map(|one| ((one.factor, one.arms()), one)));
    groups.into_iter().map(|(_, rows)| rows).collect()
}

/// The factors in which the rows differ. Most tables are of one size of messages.
pub(super) fn list_row_factors(findings: &Findings, rows: &[&Cell], compared: Factor) -> Vec<Factor> {
    let varied = list_varied_factors(cells(findings));
    let mut factors = row_factors(rows.iter().copied(), &varied, Some(compared));
    factors.retain(|factor| {
        *factor == Factor::Family || rows.iter().any(|cell| cell.level(*factor) != rows[0].level(*factor))
    });
    factors
}

/// The measured difference of the first of these metrics that was measured by the probe whose messages or requests were
/// counted.
pub(super) fn push_time(table: &mut Table, findings: &Findings, rows: &[&Explanation], metrics: &[Metric]) {
    for metric in metrics.iter().copied() {
        let found: Vec<Option<&Comparison>> =
            rows.iter().map(|row| find_comparison(findings, row, metric)).collect();
        if found.iter().all(Option::is_none) {
            continue;
        }
        let distances: Vec<_> = found.iter().map(|row| distance((*row)?)).collect();
        let unit = DisplayUnit::of(metric);
        let places = difference_places(distances.iter().copied().flatten(), &unit);
        let cells = differences(distances.into_iter(), &unit, places);
        let title = difference_heading(unit.difference_unit, &cells);
        table.push(format!("{}: {title}", metric.label()), true, cells);
        return;
    }
}

fn find_comparison<'a>(findings: &'a Findings, row: &Explanation, metric: Metric) -> Option<&'a Comparison> {
    findings.comparisons.iter().find(|one| one.question.metric == metric && is_of_cells(row, one))
}

/// Whether a comparison is of the cells that were counted, by the same probe.
pub(super) fn is_of_cells(row: &Explanation, comparison: &Comparison) -> bool {
    let question = &comparison.question;
    row.probe == question.metric.probe()
        && row.factor == question.factor
        && (&row.baseline, &row.candidate) == (&question.baseline, &question.candidate)
}
