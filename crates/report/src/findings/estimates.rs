//! Cells without verdicts: the tables of those that no comparison shows, of generators' bias, and of properties that
//! follow from headers.

use crate::findings::comparisons::{definition, mean_decimals, means};
use crate::findings::groups::{
    self, by_table, label_cells, level_alone, list_varied_factors, row_factors, sizes_of, sort_key,
};
use crate::rendering::document::{Block, Footnotes, Table};
use crate::rendering::numbers::{DisplayUnit, NONE, format_decimals, format_with_sign};
use stacklab_model::{Cell, CellEstimate, CpuScope, Estimate, Factor, Findings, Metric, Unit, once_each};
use std::collections::{BTreeMap, HashSet};

/// Cells and metrics that are in no comparison: all of them in a study that asks for none.
pub(crate) fn list_uncompared_estimates(findings: &Findings) -> impl Iterator<Item = &CellEstimate> {
    let questions = findings.comparisons.iter().map(|comparison| &comparison.question);
    let compared: HashSet<(&Cell, Metric)> = questions
        .flat_map(|question| [(&question.baseline, question.metric), (&question.candidate, question.metric)])
        .collect();
    findings.cells.iter().filter(move |estimate| !compared.contains(&(&estimate.cell, estimate.metric)))
}

/// A table for each metric, transport and meaning of size.
pub(crate) fn blocks(findings: &Findings) -> Vec<Block> {
    let varied = list_varied_factors(groups::cells(findings));
    // The bias of generators and properties of paths have their own tables.
    let shown = list_uncompared_estimates(findings).filter(|estimate| estimate.metric.allows_comparison());
    let tables = by_table(shown, |estimate| (estimate.metric, &estimate.cell), sizes_of(findings).len() > 1);
    let mut blocks = Vec::new();
    for (metric, place, rows) in tables {
        blocks.extend(part(metric, &place, &rows, &varied, findings.cpu_scope));
    }
    blocks
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
    let mut table = label_cells(&cells, &row_factors(cells.iter().copied(), varied, None));
    let estimates: Vec<&Estimate> = rows.iter().map(|row| &row.estimate).collect();
    let places = mean_decimals(estimates.iter().copied(), &shown);
    table.push("mean", true, means(&estimates, &shown, places, &mut notes));
    let write = |figure: f64| format_decimals(shown.factor * figure, places);
    let deviations = estimates.iter().map(|estimate| estimate.sd.map_or(NONE.to_owned(), write));
    table.push_optional("sd", deviations.collect());
    let medians = estimates.iter().map(|estimate| estimate.median.map_or(NONE.to_owned(), write));
    table.push_optional("median", medians.collect());
    table.push_optional("n", estimates.iter().map(|estimate| estimate.n.to_string()).collect());
    table.footnotes = notes;
    [
        Block::Heading(format!("{}, {place}", metric.label()).trim_end_matches(", ").to_owned()),
        Block::Text(format!("in {}", definition(metric, &shown, cpu_scope))),
        Block::Table(table),
    ]
}

/// The table of each generator's bias: its own count of payload beside what the interfaces counted. None in a study
/// that does not ask for it.
pub(crate) fn bias_of_generators(findings: &Findings) -> Vec<Block> {
    let biased: Vec<&CellEstimate> =
        findings.cells.iter().filter(|estimate| estimate.metric.is_generator_error()).collect();
    if biased.is_empty() {
        return Vec::new();
    }
    let metrics: Vec<Metric> = once_each(biased.iter().map(|estimate| estimate.metric));
    let mut cells: Vec<&Cell> = once_each(biased.iter().map(|estimate| &estimate.cell));
    cells.sort_by_key(|cell| (cell.transport, sort_key(cell)));
    let mut notes = Footnotes::default();
    let mut factors = row_factors(cells.iter().copied(), &list_varied_factors(groups::cells(findings)), None);
    if once_each(cells.iter().map(|cell| cell.transport)).len() > 1 {
        factors.insert(0, Factor::Transport);
    }
    let mut table = label_cells(&cells, &factors);
    let mut most_runs = vec![0; cells.len()];
    for metric in &metrics {
        let mut column = Vec::new();
        for (cell, runs) in cells.iter().zip(&mut most_runs) {
            let of_cell = biased.iter().find(|found| found.metric == *metric && found.cell == **cell);
            column.push(match of_cell {
                Some(found) => bias(&found.estimate, &mut notes),
                None => NONE.to_owned(),
            });
            *runs = of_cell.map_or(*runs, |found| found.estimate.n.max(*runs));
        }
        table.push(format!("{}, %", metric.label()), true, column);
    }
    table.push("n", true, most_runs.iter().map(ToString::to_string).collect());
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
    match (estimate.mean, estimate.interval, &estimate.missing) {
        (Some(mean), Some(interval), _) => {
            format!("{} ± {:.2}", format_with_sign(mean, 2), interval.half_width())
        }
        (Some(mean), None, _) => format_with_sign(mean, 2),
        (None, _, Some(reason)) => format!("{NONE} {}", notes.mark(reason)),
        (None, ..) => NONE.to_owned(),
    }
}

/// Factors that have columns where a figure depends on them. All others label rows.
const COLUMNS: [Factor; 3] = [Factor::Transport, Factor::SizeOf, Factor::Size];

/// One row for each path, one column for each metric and, where it depends on them, transport and size. Figures that
/// all paths share are a sentence.
pub(crate) fn properties(findings: &Findings) -> Vec<Block> {
    let estimates: Vec<&CellEstimate> =
        findings.cells.iter().filter(|estimate| estimate.metric.is_property()).collect();
    if estimates.is_empty() {
        return Vec::new();
    }
    let cells: Vec<&Cell> = estimates.iter().map(|estimate| &estimate.cell).collect();
    let mut rows: Vec<Factor> = Vec::new();
    for factor in Factor::ALL.iter().rev().copied() {
        let levels = once_each(cells.iter().map(|cell| cell.level(factor)));
        if levels.len() > 1 && !COLUMNS.contains(&factor) {
            rows.push(factor);
        }
    }
    let mut labels = once_each(cells.iter().map(|cell| label_path(cell, &rows)));
    let first = once_each(labels.iter().filter_map(|label| label.first().cloned()));
    labels.sort_by_key(|label| first.iter().position(|level| Some(level) == label.first()));
    let mut table = Table::default();
    let heads: Vec<String> = rows.iter().map(|factor| factor.label()).collect();
    let names = labels.iter().map(|label| label.join(" ").trim().to_owned()).collect();
    table.push(heads.join(", "), false, names);
    let mut shared: Vec<String> = Vec::new();
    for metric in once_each(estimates.iter().map(|estimate| estimate.metric)) {
        let of: Vec<&&CellEstimate> = estimates.iter().filter(|estimate| estimate.metric == metric).collect();
        let mut columns: BTreeMap<String, BTreeMap<Vec<String>, String>> = BTreeMap::new();
        let factors = find_columns(&of, &rows);
        for estimate in &of {
            let title: Vec<String> =
                factors.iter().map(|factor| factor.level_label(&estimate.cell.level(*factor))).collect();
            let title = format!("{:>30}", title.join(" "));
            let label = label_path(&estimate.cell, &rows);
            columns.entry(title).or_default().insert(label, write_property(estimate));
        }
        for (title, figures) in columns {
            let title = [metric.label(), title.trim().to_owned()].join(" ");
            let values = once_each(figures.values());
            if let ([value], true) = (&values[..], labels.len() > 1) {
                // Of columns that differ from each other the value is said once.
                let metric =
                    if factors.is_empty() { metric.label() } else { format!("other {}", metric.label()) };
                shared.push(format!("{metric} {value}"));
                continue;
            }
            let unit = DisplayUnit::of(metric).unit.replace("events per message", "per message");
            let column = labels.iter().map(|label| figures.get(label).cloned().unwrap_or_default()).collect();
            table.push(format!("{}, {unit}", title.trim()), true, column);
        }
    }
    let mut about = "means; they follow from headers and packet sizes, so they get no verdict".to_owned();
    if !shared.is_empty() {
        about += &format!("; the same on all paths: {}", once_each(shared.into_iter()).join(", "));
    }
    let table = (table.columns.len() > 1).then_some(Block::Table(table));
    let heading = Block::Heading("Properties of the paths".to_owned());
    [heading, Block::Text(about)].into_iter().chain(table).collect()
}

/// The levels of the factors that label rows.
fn label_path(cell: &Cell, rows: &[Factor]) -> Vec<String> {
    rows.iter().map(|factor| level_alone(cell, *factor)).collect()
}

/// `1480` bytes, `1.5` fragments: whole bytes, otherwise no more decimals than differ from an integer.
pub(crate) fn write_property(estimate: &CellEstimate) -> String {
    let Some(mean) = estimate.estimate.mean else { return NONE.to_owned() };
    let text = format_decimals(mean, if estimate.metric.unit() == Unit::Byte { 0 } else { 2 });
    match text.contains('.') && !text.contains('e') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// The factors of columns on which a metric's figures depend.
fn find_columns(estimates: &[&&CellEstimate], rows: &[Factor]) -> Vec<Factor> {
    let mut kept = COLUMNS.to_vec();
    for factor in COLUMNS {
        let without: Vec<Factor> = kept.iter().copied().filter(|known| *known != factor).collect();
        let mut known: BTreeMap<(Vec<String>, Vec<String>), String> = BTreeMap::new();
        let is_determined = estimates.iter().all(|estimate| {
            let levels = without.iter().map(|factor| estimate.cell.level(*factor)).collect();
            let found = write_property(estimate);
            *known.entry((label_path(&estimate.cell, rows), levels)).or_insert_with(|| found.clone()) == found
        });
        if is_determined {
            kept = without;
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WIDTH;
    use crate::rendering::text::text;
    use crate::tests::fixtures::{estimate, findings};
    use stacklab_model::{Family, Metric, SizeOf, Transport};

    #[test]
    fn paths_are_rows_and_only_what_differs_is_a_column() {
        let mut cells = Vec::new();
        for (mechanism, mtu, fragments) in [("native", 1500.0, 0.0), ("6in4", 1480.0, 2.0)] {
            for transport in [Transport::Udp, Transport::Tcp] {
                for size in [128, 1440] {
                    let fragments = if transport == Transport::Udp && size > 1000 { fragments } else { 0.0 };
                    let mut cell = Cell::new(Family::Ipv6, transport, SizeOf::Write, size);
                    cell.set(Factor::Mechanism, mechanism).unwrap();
                    for (metric, mean) in [(Metric::PathMtu, mtu), (Metric::IpFragCreates, fragments)] {
                        cells.push(CellEstimate {
                            cell: cell.clone(),
                            metric,
                            estimate: estimate(mean, 0.0),
                        });
                    }
                }
            }
        }
        let shown = text(&properties(&Findings { cells, ..findings() }), WIDTH);
        assert!(shown.contains("mechanism  path MTU, B  IP fragments UDP 1440 B, per message\n"), "{shown}");
        let row = shown.lines().find(|line| line.starts_with("6in4")).unwrap();
        assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["6in4", "1480", "2"]);
        assert!(shown.replace('\n', " ").contains("other IP fragments 0 "), "{shown}");
        assert!(!shown.contains("better\n"), "{shown}");
        assert_eq!(properties(&findings()), []);
    }
}
