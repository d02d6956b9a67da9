//! The matrix of all verdicts: columns are sizes, rows everything else. And the table of many levels.

use crate::findings::claims::{Claimed, of_row};
use crate::findings::control::{self, CONTROL};
use crate::findings::groups::{Group, control_arms, group_by_key, level};
use crate::findings::so_far::{self, is_plain};
use crate::findings::verdicts::sign;
use crate::rendering::document::{Block, Table};
use crate::rendering::numbers::{Distance, NONE, format_with_sign};
use stacklab_model::{Cell, Comparison, Control, Factor, Metric, Verdict, capitalize, once_each};
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
    let mut rows = groups.iter().flat_map(|group| &group.rows);
    let lacks_some = rows.any(|row| matches!(row.verdict, Verdict::Nothing(_)));
    let nothing = if lacks_some { format!(", {NONE} nothing to compare") } else { String::new() };
    let is_any_unpaired = groups.iter().flat_map(|group| &group.rows).any(|row| row.unpaired.is_some());
    let nothing = if is_any_unpaired { format!("{nothing}, or runs not paired") } else { nothing };
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

/// What a figure behind a question mark means, if there is any.
fn describe_figures(groups: &[&Group]) -> &'static str {
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

fn control_legend(groups: &[&Group]) -> String {
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

/// Many levels of a factor against one baseline: a table with a row for each level and a column for each metric.
pub(crate) fn levels(groups: &[&Group]) -> Vec<Block> {
    let tables = group_by_key(groups.iter().map(|group| (write_title(group), *group)));
    let plain = describe_figures(groups);
    let has_sizes = groups.iter().flat_map(|group| &group.rows).any(|row| row.question.baseline.size > 0);
    let over = if has_sizes { "over all sizes; " } else { "" };
    let legend = format!("{over}= equivalent, 0 none seen, ? undecided{plain}, - nothing to compare");
    let mut blocks = Vec::new();
    for (title, groups) in tables {
        let (table, alike) = levels_table(&groups);
        let controls = control_legend(&groups);
        let alike = alike.map_or_else(String::new, |alike| format!("; {alike}"));
        blocks.push(Block::Heading(title));
        blocks.push(Block::Text(format!("{legend}{alike}{controls}")));
        if table.columns.len() > 1 {
            blocks.push(Block::Table(table));
        }
    }
    blocks
}

/// `Each mechanism vs native, UDP`.
fn write_title(group: &Group) -> String {
    let place = if group.place.is_empty() { String::new() } else { format!(", {}", group.place) };
    format!("{} vs {}{place}", capitalize(&group.candidate), group.baseline)
}

/// The table, and the metrics that have the same outcome with all levels.
fn levels_table(groups: &[&Group]) -> (Table, Option<String>) {
    let mut factors: Vec<Factor> = once_each(groups.iter().flat_map(|group| &group.row_factors).copied());
    factors.retain(|factor| *factor != Factor::Size);
    let mut labelled = Vec::new();
    for group in groups {
        for row in &group.rows {
            let label: Vec<String> = factors.iter().map(|factor| group.level_below(row, *factor)).collect();
            labelled.push((label, *row));
        }
    }
    let levels = group_by_key(labelled.into_iter());
    let controls: Vec<&Control> = groups.iter().flat_map(|group| &group.controls).copied().collect();
    let control_cells = once_each(controls.iter().map(|control| &control.cell));
    let mut table = Table::default();
    // One column, which stays beside the figures where the table is in parts.
    let heads: Vec<String> = factors.iter().map(|factor| factor.label()).collect();
    let mut labels: Vec<String> =
        levels.iter().map(|(label, _)| label.join(" ").trim_end().to_owned()).collect();
    for cell in &control_cells {
        let of_cell = groups.iter().find_map(|group| {
            let control = group.controls.iter().find(|control| control.cell == **cell)?;
            Some(format!("{CONTROL} {}", control_arms(control, group.factor)))
        });
        labels.extend(of_cell);
    }
    table.push(heads.join(", "), false, labels);
    let mut alike: Vec<(&str, String)> = Vec::new();
    for metric in once_each(groups.iter().map(|group| group.metric)) {
        let mut cells: Vec<String> = Vec::new();
        for (_, rows) in &levels {
            let rows: Vec<_> = rows.iter().copied().filter(|row| row.question.metric == metric).collect();
            cells.push(if rows.is_empty() { String::new() } else { cell(&rows) });
        }
        let outcome = match cells[0].as_str() {
            "?" => "undecided with all",
            "0" => "none seen with any",
            "=" => "equivalent with all",
            _ => "",
        };
        if outcome.is_empty() || cells.iter().any(|cell| *cell != cells[0]) {
            for cell in &control_cells {
                let of_cell = controls.iter().find(|one| one.metric == metric && one.cell == **cell);
                cells.push(of_cell.map_or_else(String::new, |control| control::sign(control)));
            }
            table.push(metric.label(), false, cells);
        } else {
            alike.push((outcome, metric.label()));
        }
    }
    let alike = group_by_key(alike.into_iter());
    let alike: Vec<String> =
        alike.into_iter().map(|(outcome, metrics)| format!("{outcome}: {}", metrics.join(", "))).collect();
    (table, (!alike.is_empty()).then(|| alike.join("; ")))
}

/// `worse 3.1 to 8.4 %`, `worse 0.9 to 8.7 % (2 of 3)`, `better at 1, worse at 1 of 3`, `=`, `?`.
fn cell(rows: &[&Comparison]) -> String {
    let all = rows.len();
    let mut worse = 0;
    let mut better = 0;
    let mut equivalent = 0;
    let mut none_seen = 0;
    let mut nothing = 0;
    for row in rows {
        let question = &row.question;
        match &row.verdict {
            Verdict::Better(level) => {
                worse += usize::from(*level == question.baseline.level(question.factor));
                better += usize::from(*level == question.candidate.level(question.factor));
            }
            Verdict::Equivalent => equivalent += 1,
            Verdict::NoneSeen(_) => none_seen += 1,
            Verdict::Nothing(_) => nothing += 1,
            Verdict::Inconclusive => {}
        }
    }
    if (worse == 0) != (better == 0) && equivalent == 0 {
        let by = rows.iter().filter_map(|row| of_row(row)).reduce(Claimed::with);
        let by = by.map(|by| format!(" {}", by.to_string().replace("a factor of ", "x"))).unwrap_or_default();
        let claims = worse + better;
        let part = if claims == all { String::new() } else { format!(" ({claims} of {all})") };
        return format!("{}{by}{part}", if worse > 0 { "worse" } else { "better" });
    }
    let parts = [("worse", worse), ("better", better), ("=", equivalent)];
    let parts: Vec<String> =
        parts.into_iter().filter(|(_, n)| *n > 0).map(|(what, n)| format!("{what} at {n}")).collect();
    match parts[..] {
        _ if equivalent == all => "=".to_owned(),
        [_, ..] => format!("{} of {all}", parts.join(", ")),
        [] if none_seen == all => "0".to_owned(),
        [] if nothing == all => NONE.to_owned(),
        [] => so_far::describe_estimates(rows).map_or_else(|| "?".to_owned(), |so_far| format!("? {so_far}")),
    }
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
