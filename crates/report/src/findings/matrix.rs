//! The matrix of all verdicts: columns are sizes, rows everything else.

use crate::findings::comparisons::arm;
use crate::findings::groups::{Group, level};
use crate::findings::summary::{is_within_margin, magnitude};
use crate::rendering::document::{Block, Table};
use crate::rendering::numbers::{DisplayUnit, NONE, factor, fixed, is_factor, range};
use stacklab_model::{Cell, Comparison, Factor, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// The matrix, with magnitudes if they fit the width. Comparisons of sizes are not included.
pub(crate) fn blocks(groups: &[&Group], width: usize) -> Vec<Block> {
    let groups: Vec<&Group> = groups.iter().copied().filter(|group| group.factor != Factor::Size).collect();
    if groups.is_empty() {
        return vec![];
    }
    let full = table(&groups, true);
    let (table, legend) = if full.width() <= width {
        (full, "the better arm and by how much")
    } else {
        (table(&groups, false), "the better arm")
    };
    let is_nothing = |row: &Comparison| matches!(row.verdict, Verdict::Nothing(_));
    let lacks_some = groups.iter().flat_map(|group| &group.rows).any(|row| is_nothing(row));
    let nothing = if lacks_some { format!(", {NONE} nothing to compare") } else { String::new() };
    vec![
        Block::Heading("Verdicts".to_owned()),
        Block::Text(format!(
            "{legend}, in parentheses where that is within the margin; = equivalent, 0 none seen, ? inconclusive{nothing}"
        )),
        Block::Table(table),
    ]
}

/// A line of the matrix: a group, the levels besides the size, and the places of its rows by size.
pub(crate) struct Line<'a, 'b> {
    pub group: &'b Group<'a>,
    pub levels: Vec<String>,
    pub rows: BTreeMap<u32, usize>,
}

/// The lines of a group: one for each family or replica that its rows tell apart besides the size.
pub(crate) fn lines<'a, 'b>(group: &'b Group<'a>) -> Vec<Line<'a, 'b>> {
    let mut lines: BTreeMap<Vec<String>, BTreeMap<u32, usize>> = BTreeMap::new();
    for (place, row) in group.rows.iter().enumerate() {
        let cell = &row.question.baseline;
        lines.entry(beside_size(cell, &group.row_factors)).or_default().insert(cell.size, place);
    }
    lines.into_iter().map(|(levels, rows)| Line { group, levels, rows }).collect()
}

pub(crate) fn sizes(lines: &[Line]) -> BTreeSet<u32> {
    lines.iter().flat_map(|line| line.rows.keys().copied()).collect()
}

fn table(groups: &[&Group], magnitudes: bool) -> Table {
    let arms: BTreeSet<String> = groups.iter().map(|group| group.arms()).collect();
    let lines: Vec<Line> = groups.iter().flat_map(|group| lines(group)).collect();
    let label = |Line { group, levels, .. }: &Line| {
        let pair = (arms.len() > 1).then(|| group.arms());
        let parts = std::iter::once(group.subject()).chain(levels.iter().cloned()).chain(pair);
        parts.collect::<Vec<_>>().join(", ")
    };
    let mut table = Table::default();
    table.push("size in bytes", false, lines.iter().map(label).collect());
    for size in sizes(&lines) {
        let cell = |Line { group, rows, .. }: &Line| {
            rows.get(&size).map_or_else(String::new, |row| sign(group, group.rows[*row], magnitudes))
        };
        table.push(size.to_string(), false, lines.iter().map(cell).collect());
    }
    table
}

/// The levels of a row besides its size. A factor that the cell does not set has no level.
fn beside_size(cell: &Cell, factors: &[Factor]) -> Vec<String> {
    let levels = factors.iter().filter(|factor| **factor != Factor::Size).map(|factor| level(cell, *factor));
    levels.filter(|level| !level.is_empty()).collect()
}

/// A verdict in a few characters: `IPv4 9.8 %`, `=`, `?`.
pub(crate) fn sign(group: &Group, row: &Comparison, magnitudes: bool) -> String {
    match &row.verdict {
        Verdict::Better(level) => {
            let by = magnitude(group, row).filter(|_| magnitudes).map(|by| {
                let unit = match DisplayUnit::of(group.metric).difference_unit {
                    "points" => " pt",
                    "events" => "",
                    unit => &format!(" {unit}"),
                };
                match row.effect.as_ref() {
                    Some(effect) if is_factor(effect.scale, effect.estimate) => {
                        format!(" {}", factor(effect.estimate))
                    }
                    _ => format!(" {}{unit}", range(&[by], fixed)),
                }
            });
            let sign = format!("{}{}", arm(row, level), by.unwrap_or_default());
            if is_within_margin(group, row) { format!("({sign})") } else { sign }
        }
        Verdict::Equivalent => "=".to_owned(),
        Verdict::Inconclusive => "?".to_owned(),
        Verdict::NoneSeen(_) => "0".to_owned(),
        Verdict::Nothing(_) => NONE.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::{Family, SizeOf, Transport};

    #[test]
    fn a_factor_without_a_level_leaves_no_gap() {
        let mut cell = Cell::new(Family::Ipv4, Transport::Udp, SizeOf::Payload, 128);
        cell.set(Factor::WifiStations, "2").unwrap();
        let factors = [Factor::Family, Factor::WifiNeighbourLifetime, Factor::Size, Factor::WifiStations];
        assert_eq!(beside_size(&cell, &factors), ["IPv4", "stations 2"]);
    }
}
