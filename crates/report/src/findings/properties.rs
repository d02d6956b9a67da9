//! What describes the paths and follows from their headers: a table without verdicts.

use crate::findings::groups::level_alone;
use crate::rendering::document::{Block, Table};
use crate::rendering::numbers::{DisplayUnit, NONE, fixed};
use stacklab_model::{Cell, CellEstimate, Factor, Findings, Unit, once_each};
use std::collections::BTreeMap;

/// Factors that have columns where a figure depends on them. All others label rows.
const COLUMNS: [Factor; 3] = [Factor::Transport, Factor::SizeOf, Factor::Size];

/// One row for each path, one column for each metric and, where it depends on them, transport and size. Figures that
/// all paths share are a sentence.
pub(crate) fn blocks(findings: &Findings) -> Vec<Block> {
    let estimates: Vec<&CellEstimate> =
        findings.cells.iter().filter(|estimate| estimate.metric.is_property()).collect();
    if estimates.is_empty() {
        return Vec::new();
    }
    let cells = || estimates.iter().map(|estimate| &estimate.cell);
    let rows: Vec<Factor> = Factor::ALL
        .iter()
        .rev()
        .copied()
        .filter(|factor| {
            !COLUMNS.contains(factor) && once_each(cells().map(|cell| cell.level(*factor))).len() > 1
        })
        .collect();
    let label =
        |cell: &Cell| -> Vec<String> { rows.iter().map(|factor| level_alone(cell, *factor)).collect() };
    let mut labels = once_each(cells().map(label));
    let first = once_each(labels.iter().filter_map(|label| label.first().cloned()));
    labels.sort_by_key(|label| first.iter().position(|level| Some(level) == label.first()));
    let mut table = Table::default();
    let heads: Vec<String> = rows.iter().map(|factor| factor.label()).collect();
    table.push(
        heads.join(", "),
        false,
        labels.iter().map(|label| label.join(" ").trim().to_owned()).collect(),
    );
    let mut shared: Vec<String> = Vec::new();
    for metric in once_each(estimates.iter().map(|estimate| estimate.metric)) {
        let of: Vec<&&CellEstimate> = estimates.iter().filter(|estimate| estimate.metric == metric).collect();
        let mut columns: BTreeMap<String, BTreeMap<Vec<String>, String>> = BTreeMap::new();
        let telling = telling(&of, label);
        for estimate in &of {
            let title: Vec<String> =
                telling.iter().map(|factor| factor.level_label(&estimate.cell.level(*factor))).collect();
            let title = format!("{:>30}", title.join(" "));
            columns.entry(title).or_default().insert(label(&estimate.cell), figure(estimate));
        }
        for (title, figures) in columns {
            let title = [metric.label(), title.trim().to_owned()].join(" ");
            let values = once_each(figures.values());
            if let ([value], true) = (&values[..], labels.len() > 1) {
                // Of columns that differ from each other the value is said once.
                let metric =
                    if telling.is_empty() { metric.label() } else { format!("other {}", metric.label()) };
                shared.push(format!("{metric} {value}"));
                continue;
            }
            let unit = DisplayUnit::of(metric).unit.replace("events per message", "per message");
            let column = labels.iter().map(|label| figures.get(label).cloned().unwrap_or_default()).collect();
            table.push(format!("{}, {unit}", title.trim()), true, column);
        }
    }
    let about = "means; they follow from headers and packet sizes, so they get no verdict";
    let shared = once_each(shared.into_iter());
    let shared = if shared.is_empty() {
        String::new()
    } else {
        format!("; the same on all paths: {}", shared.join(", "))
    };
    let mut blocks =
        vec![Block::Heading("Properties of the paths".to_owned()), Block::Text(format!("{about}{shared}"))];
    if table.columns.len() > 1 {
        blocks.push(Block::Table(table));
    }
    blocks
}

/// `1480` bytes, `1.5` fragments: whole bytes, otherwise no more decimals than differ from an integer.
fn figure(estimate: &CellEstimate) -> String {
    let Some(mean) = estimate.estimate.mean else { return NONE.to_owned() };
    let text = fixed(mean, if estimate.metric.unit() == Unit::Byte { 0 } else { 2 });
    match text.contains('.') && !text.contains('e') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// The factors of columns on which a metric's figures depend.
fn telling(estimates: &[&&CellEstimate], label: impl Fn(&Cell) -> Vec<String>) -> Vec<Factor> {
    let mut kept = COLUMNS.to_vec();
    for factor in COLUMNS {
        let without: Vec<Factor> = kept.iter().copied().filter(|known| *known != factor).collect();
        let mut known: BTreeMap<(Vec<String>, Vec<String>), String> = BTreeMap::new();
        let is_determined = estimates.iter().all(|estimate| {
            let levels = without.iter().map(|factor| estimate.cell.level(*factor)).collect();
            let found = figure(estimate);
            *known.entry((label(&estimate.cell), levels)).or_insert_with(|| found.clone()) == found
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
    use crate::rendering::text;
    use crate::tests::fixtures::{estimate, findings};
    use stacklab_model::{Family, Metric, SizeOf, Transport};

    #[test]
    fn paths_are_rows_and_only_what_differs_is_a_column() {
        let of = |mechanism: &str, transport, size, metric, mean| {
            let mut cell = Cell::new(Family::Ipv6, transport, SizeOf::Write, size);
            cell.set(Factor::Mechanism, mechanism).unwrap();
            CellEstimate { cell, metric, estimate: estimate(mean, 0.0) }
        };
        let mut cells = Vec::new();
        for (mechanism, mtu, fragments) in [("native", 1500.0, 0.0), ("6in4", 1480.0, 2.0)] {
            for transport in [Transport::Udp, Transport::Tcp] {
                for size in [128, 1440] {
                    let fragments = if transport == Transport::Udp && size > 1000 { fragments } else { 0.0 };
                    cells.push(of(mechanism, transport, size, Metric::PathMtu, mtu));
                    cells.push(of(mechanism, transport, size, Metric::IpFragCreates, fragments));
                }
            }
        }
        let shown = text::render(&blocks(&Findings { cells, ..findings() }), WIDTH);
        assert!(shown.contains("mechanism  path MTU, B  IP fragments UDP 1440 B, per message\n"), "{shown}");
        let row = shown.lines().find(|line| line.starts_with("6in4")).unwrap();
        assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["6in4", "1480", "2"]);
        assert!(shown.replace('\n', " ").contains("other IP fragments 0 "), "{shown}");
        assert!(!shown.contains("better\n"), "{shown}");
        assert_eq!(blocks(&findings()), []);
    }
}
