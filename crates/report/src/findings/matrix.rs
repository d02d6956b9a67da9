//! The matrix of all verdicts: columns are sizes, rows everything else.

use crate::findings::control::{self, CONTROL};
use crate::findings::groups::{Group, control_arms, level};
use crate::findings::so_far::is_plain;
use crate::findings::verdicts::sign;
use crate::rendering::document::{Block, Table};
use crate::rendering::numbers::{Distance, NONE, format_with_sign};
use stacklab_model::{Cell, Comparison, Control, Factor, Metric, Verdict};
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
    let nothing = describe_nothing(&groups);
    let plain = describe_figures(&groups);
    let controls = control_legend(&groups);
    vec![
        Block::Heading("Verdicts".to_owned()),
        Block::Text(format!(
            "{legend}, in parentheses where that is within the margin; = equivalent, 0 none seen, ? inconclusive{plain}{nothing}{controls}"
        )),
        Block::Table(table),
    ]
}

/// What a dash means, if there is any.
pub(crate) fn describe_nothing(groups: &[&Group]) -> String {
    let mut rows = groups.iter().flat_map(|group| &group.rows);
    let lacks_some = rows.any(|row| matches!(row.verdict, Verdict::Nothing(_)));
    let nothing = if lacks_some { format!(", {NONE} nothing to compare") } else { String::new() };
    let is_any_unpaired = groups.iter().flat_map(|group| &group.rows).any(|row| row.unpaired.is_some());
    if is_any_unpaired { format!("{nothing}, or runs not paired") } else { nothing }
}

/// What a figure behind a question mark means, if there is any.
pub(crate) fn describe_figures(groups: &[&Group]) -> &'static str {
    let is_any_plain = groups.iter().flat_map(|group| &group.rows).any(|row| is_plain(row));
    if is_any_plain { ", with a figure: how it looks so far, without a claim" } else { "" }
}

/// As [`sign`]; of a campaign that has not ended with the estimate, where it is plain but not claimed: `? -18.8 %`.
fn sign_so_far(group: &Group, row: &Comparison, magnitudes: bool) -> String {
    let sign = sign(group, row, magnitudes);
    match row.effect.as_ref().filter(|_| magnitudes && is_plain(row)) {
        Some(effect) => {
            let unit = group.choose_unit();
            let [estimate, ..] = Distance::from(effect).within(&unit);
            format!("{sign} {} {}", format_with_sign(estimate, 1), unit.difference_unit)
        }
        None => sign,
    }
}

pub(crate) fn control_legend(groups: &[&Group]) -> String {
    let has_controls = groups.iter().any(|group| !group.controls.is_empty());
    if has_controls { format!("; {}", control::LEGEND) } else { String::new() }
}

/// A line of the matrix: a group, the levels besides the size, and the places of its rows by size.
pub(crate) struct MatrixLine<'a, 'b> {
    pub group: &'b Group<'a>,
    pub levels: Vec<String>,
    pub rows: BTreeMap<u32, usize>,
}

/// The lines of a group: one for each family or replica that its rows tell apart besides the size.
pub(crate) fn lines<'a, 'b>(group: &'b Group<'a>) -> Vec<MatrixLine<'a, 'b>> {
    let mut lines: BTreeMap<Vec<String>, BTreeMap<u32, usize>> = BTreeMap::new();
    for (place, row) in group.rows.iter().enumerate() {
        let cell = &row.question.baseline;
        lines.entry(beside_size(cell, &group.row_factors)).or_default().insert(cell.size, place);
    }
    lines.into_iter().map(|(levels, rows)| MatrixLine { group, levels, rows }).collect()
}

/// The columns: the sizes of comparisons and of controls.
pub(crate) fn sizes(lines: &[MatrixLine]) -> BTreeSet<u32> {
    let mut sizes = BTreeSet::new();
    for line in lines {
        sizes.extend(line.rows.keys());
        sizes.extend(line.group.controls.iter().map(|control| control.cell.size));
    }
    sizes
}

fn table(groups: &[&Group], magnitudes: bool) -> Table {
    let arms: BTreeSet<String> = groups.iter().map(|group| group.arms()).collect();
    let lines: Vec<MatrixLine> = groups.iter().flat_map(|group| lines(group)).collect();
    let sizes = sizes(&lines);
    let mut table = Table::default();
    // Programs have no sizes.
    let [first, others] = match sizes.iter().all(|size| *size == 0) {
        true => ["compared".to_owned(), "verdict".to_owned()].map(|name| vec![(name, false)]),
        false => [
            vec![("size in bytes".to_owned(), false)],
            sizes.iter().map(|size| (size.to_string(), false)).collect(),
        ],
    };
    table.columns = [first, others].concat();
    let mut controlled: Vec<(Metric, &Cell, String)> = Vec::new();
    for (place, MatrixLine { group, levels, rows }) in lines.iter().enumerate() {
        let mut label = vec![group.subject()];
        label.extend(levels.iter().cloned());
        if arms.len() > 1 {
            label.push(group.arms());
        }
        let mut row = vec![label.join(", ")];
        for size in &sizes {
            row.push(match rows.get(size) {
                Some(row) => sign_so_far(group, group.rows[*row], magnitudes),
                None => String::new(),
            });
        }
        table.rows.push(row);
        // Below the last line of the first table that it belongs to.
        let is_last = lines.get(place + 1).is_none_or(|next| !std::ptr::eq(next.group, *group));
        for control in group.controls.iter().filter(|_| is_last) {
            let named = control_arms(control, group.factor);
            let key = (control.metric, &control.cell, named.clone());
            if controlled.contains(&key) {
                continue;
            }
            controlled.push(key);
            let subject = if arms.len() > 1 { format!("{}, ", group.subject()) } else { String::new() };
            let mut row = vec![format!("{subject}{CONTROL} {named}")];
            row.extend(sizes.iter().map(|size| control_cell(control, *size)));
            table.rows.push(row);
        }
    }
    table
}

fn control_cell(control: &Control, size: u32) -> String {
    if control.cell.size == size { control::sign(control) } else { String::new() }
}

/// The levels of a row besides its size. A factor that the cell does not set has no level.
fn beside_size(cell: &Cell, factors: &[Factor]) -> Vec<String> {
    let levels = factors.iter().filter(|factor| **factor != Factor::Size).map(|factor| level(cell, *factor));
    levels.filter(|level| !level.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WIDTH;
    use crate::findings::groups::groups;
    use crate::rendering::text::text;
    use crate::tests::fixtures::findings;
    use stacklab_model::{APPEARS, Family, Findings, SizeOf, Transport};

    #[test]
    fn an_interrupted_campaign_shows_what_is_plain() {
        let mut found = findings();
        let row = found.comparisons.iter_mut().find(|row| row.question.metric == Metric::Throughput);
        let row = row.unwrap();
        row.verdict = Verdict::Inconclusive;
        row.effect.as_mut().unwrap().estimate = 0.812;
        row.remarks =
            vec![format!("{APPEARS} lower by 17.0 to 20.6 %: no claim before the campaign has ended")];
        let text = blocks_of(&found);
        assert!(text.contains("? -18.8 %"), "{text}");
        assert!(
            text.replace('\n', " ").contains("? inconclusive, with a figure: how it looks so far"),
            "{text}"
        );
        assert!(!blocks_of(&findings()).contains("how it looks"));
    }

    fn blocks_of(found: &Findings) -> String {
        let groups = groups(found);
        text(&blocks(&groups.iter().collect::<Vec<_>>(), 200), WIDTH)
    }

    #[test]
    fn a_factor_without_a_level_leaves_no_gap() {
        let mut cell = Cell::new(Family::Ipv4, Transport::Udp, SizeOf::Payload, 128);
        cell.set(Factor::WifiStations, "2").unwrap();
        let factors = [Factor::Family, Factor::WifiNeighbourLifetime, Factor::Size, Factor::WifiStations];
        assert_eq!(beside_size(&cell, &factors), ["IPv4", "stations 2"]);
    }
}
