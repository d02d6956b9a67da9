//! Many levels of a factor against one baseline: a table with a row for each level and a column for each metric.

use crate::findings::claims::{Claimed, of_row};
use crate::findings::groups::{Group, capital};
use crate::rendering::document::{Block, Table};
use crate::rendering::numbers::NONE;
use stacklab_model::{Comparison, Factor, Metric, Verdict, once_each};
use std::collections::BTreeMap;

pub(crate) fn blocks(groups: &[&Group]) -> Vec<Block> {
    let mut tables: Vec<(String, Vec<&Group>)> = Vec::new();
    for group in groups {
        let place = if group.place.is_empty() { String::new() } else { format!(", {}", group.place) };
        let title = format!("{} vs {}{place}", capital(&group.candidate), group.baseline);
        match tables.iter_mut().find(|(known, _)| *known == title) {
            Some((_, groups)) => groups.push(group),
            None => tables.push((title, vec![group])),
        }
    }
    let legend = "over all sizes; = equivalent, 0 none seen, ? undecided, - nothing to compare";
    let block = |(title, groups): (String, Vec<&Group>)| {
        let (table, alike) = table(&groups);
        let alike = alike.map_or_else(String::new, |alike| format!("; {alike}"));
        let text = [Block::Heading(title), Block::Text(format!("{legend}{alike}"))];
        let table = (table.columns.len() > 1).then_some(Block::Table(table));
        text.into_iter().chain(table).collect::<Vec<_>>()
    };
    tables.into_iter().flat_map(block).collect()
}

/// The comparisons of a level by each metric.
type Level<'a> = BTreeMap<Metric, Vec<&'a Comparison>>;

/// The table, and the metrics that have the same outcome with all levels.
fn table(groups: &[&Group]) -> (Table, Option<String>) {
    let mut levels: Vec<(Vec<String>, Level)> = Vec::new();
    let factors: Vec<Factor> = once_each(groups.iter().flat_map(|group| &group.row_factors).copied());
    let factors: Vec<Factor> = factors.into_iter().filter(|factor| *factor != Factor::Size).collect();
    for group in groups {
        for row in &group.rows {
            let label: Vec<String> = factors.iter().map(|factor| group.level_below(row, *factor)).collect();
            let place = levels.iter().position(|(known, _)| *known == label).unwrap_or_else(|| {
                levels.push((label, Level::new()));
                levels.len() - 1
            });
            levels[place].1.entry(group.metric).or_default().push(row);
        }
    }
    let mut table = Table::default();
    // One column, which stays beside the figures where the table is in parts.
    let heads: Vec<String> = factors.iter().map(|factor| factor.label()).collect();
    table.push(
        heads.join(", "),
        false,
        levels.iter().map(|(label, _)| label.join(" ").trim_end().to_owned()).collect(),
    );
    let mut alike: Vec<(&str, Vec<String>)> = Vec::new();
    for metric in once_each(groups.iter().map(|group| group.metric)) {
        let cells =
            levels.iter().map(|(_, level)| level.get(&metric).map_or_else(String::new, |rows| cell(rows)));
        let cells: Vec<String> = cells.collect();
        let outcome = match cells[0].as_str() {
            "?" => "undecided with all",
            "0" => "none seen with any",
            "=" => "equivalent with all",
            _ => "",
        };
        if outcome.is_empty() || cells.iter().any(|cell| *cell != cells[0]) {
            table.push(metric.label(), false, cells);
        } else if let Some((_, metrics)) = alike.iter_mut().find(|(known, _)| *known == outcome) {
            metrics.push(metric.label());
        } else {
            alike.push((outcome, vec![metric.label()]));
        }
    }
    let alike: Vec<String> =
        alike.into_iter().map(|(outcome, metrics)| format!("{outcome}: {}", metrics.join(", "))).collect();
    (table, (!alike.is_empty()).then(|| alike.join("; ")))
}

/// `worse 3.1 to 8.4 %`, `worse 0.9 to 8.7 % (2 of 3)`, `better at 1, worse at 1 of 3`, `=`, `?`.
fn cell(rows: &[&Comparison]) -> String {
    let is_of = |row: &Comparison, candidate: bool| {
        let question = &row.question;
        let cell = if candidate { &question.candidate } else { &question.baseline };
        row.verdict == Verdict::Better(cell.level(question.factor))
    };
    let count = |test: &dyn Fn(&Comparison) -> bool| rows.iter().filter(|row| test(row)).count();
    let all = rows.len();
    let [worse, better] = [false, true].map(|candidate| count(&|row| is_of(row, candidate)));
    let equivalent = count(&|row| row.verdict == Verdict::Equivalent);
    if (worse == 0) != (better == 0) && equivalent == 0 {
        let by = rows.iter().filter_map(|row| of_row(row)).reduce(Claimed::with);
        let by =
            by.map_or_else(String::new, |by| format!(" {}", by.to_string().replace("a factor of ", "x")));
        let part =
            if worse + better == all { String::new() } else { format!(" ({} of {all})", worse + better) };
        return format!("{}{by}{part}", if worse > 0 { "worse" } else { "better" });
    }
    let parts = [("worse", worse), ("better", better), ("=", equivalent)];
    let parts: Vec<String> =
        parts.into_iter().filter(|(_, n)| *n > 0).map(|(what, n)| format!("{what} at {n}")).collect();
    if equivalent == all {
        "=".to_owned()
    } else if !parts.is_empty() {
        format!("{} of {all}", parts.join(", "))
    } else if rows.iter().all(|row| matches!(row.verdict, Verdict::NoneSeen(_))) {
        "0".to_owned()
    } else if rows.iter().all(|row| matches!(row.verdict, Verdict::Nothing(_))) {
        NONE.to_owned()
    } else {
        "?".to_owned()
    }
}
