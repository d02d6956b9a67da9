//! A sentence for each group of comparisons.

use crate::findings::claims::{Claimed, of_row};
use crate::findings::comparisons::arm;
use crate::findings::groups::Group;
use crate::rendering::document::Block;
use crate::rendering::numbers::{DisplayUnit, percent, range, signed};
use stacklab_model::{Comparison, Factor, LimitedBy, Verdict};

pub(crate) fn blocks(groups: &[Group]) -> Vec<Block> {
    if groups.is_empty() {
        return vec![];
    }
    vec![Block::Heading("Summary".to_owned()), Block::List(groups.iter().map(sentence).collect())]
}

/// `throughput, TCP, IPv6 vs IPv4: IPv4 better at 5 of 6 sizes (by 1.2 to 4.0 %), equivalent at 1`.
pub(crate) fn sentence(group: &Group) -> String {
    let mut outcomes: Vec<(String, Vec<&Comparison>)> = Vec::new();
    for row in &group.rows {
        let outcome = outcome(row);
        match outcomes.iter_mut().find(|(known, _)| *known == outcome) {
            Some((_, rows)) => rows.push(row),
            None => outcomes.push((outcome, vec![row])),
        }
    }
    // The most frequent outcome first; among equals the most informative one.
    outcomes.sort_by_key(|(_, rows)| (std::cmp::Reverse(rows.len()), rank(rows[0])));

    let total = group.rows.len();
    let where_ = if total == 1 { format!(", {}", group.row_label(group.rows[0])) } else { String::new() };
    let noun = if group.row_factors == [Factor::Size] { "sizes" } else { "cases" };
    let phrases: Vec<String> = outcomes
        .iter()
        .enumerate()
        .map(|(place, (outcome, rows))| {
            let at = match (rows.len(), place) {
                (1, _) if total == 1 => String::new(),
                (n, _) if n == total => format!(" at all {n} {noun}"),
                (n, 0) => format!(" at {n} of {total} {noun}"),
                (n, _) => format!(" at {n}"),
            };
            format!("{outcome}{at}{}", by(rows))
        })
        .collect();
    let label = format!("{}, {}{where_}", group.subject(), group.arms());
    format!("{label}: {}{}", phrases.join(", "), headers(group))
}

fn outcome(row: &Comparison) -> String {
    words(&row.verdict, |level| arm(row, level))
}

/// A verdict in words; `arm` writes the better level.
pub(crate) fn words(verdict: &Verdict, arm: impl Fn(&str) -> String) -> String {
    match verdict {
        Verdict::Better(level) => format!("{} better", arm(level)),
        Verdict::Equivalent => "equivalent".to_owned(),
        Verdict::Inconclusive => "inconclusive".to_owned(),
        Verdict::NoneSeen(_) => "none seen".to_owned(),
        Verdict::Nothing(_) => "nothing to compare".to_owned(),
    }
}

fn rank(row: &Comparison) -> u8 {
    match row.verdict {
        Verdict::Better(_) => 0,
        Verdict::Equivalent => 1,
        Verdict::NoneSeen(_) => 2,
        Verdict::Inconclusive => 3,
        Verdict::Nothing(_) => 4,
    }
}

/// ` (by 1.2 to 4.0 %)` after a better arm: the ranges that were claimed, together.
fn by(rows: &[&Comparison]) -> String {
    let claimed = rows.iter().filter_map(|row| of_row(row)).reduce(Claimed::with);
    claimed.map_or_else(String::new, |claimed| format!(" (by {claimed})"))
}

/// How large the effect of a comparison is, either way, in the difference's unit.
pub(crate) fn magnitude(group: &Group, row: &Comparison) -> Option<f64> {
    let effect = row.effect.as_ref()?;
    Some(DisplayUnit::of(group.metric).difference(effect.scale, effect.estimate).abs())
}

/// Whether the effect of a comparison is not larger than the margin: a better arm is then better by little.
pub(crate) fn is_within_margin(group: &Group, row: &Comparison) -> bool {
    let margin = DisplayUnit::of(group.metric).margin(group.metric.scale(), row.question.margin);
    magnitude(group, row).is_some_and(|by| by <= margin)
}

/// `headers explain`, or `airtime explains`.
pub(crate) fn explain(by: LimitedBy) -> &'static str {
    match by {
        LimitedBy::Headers => "headers explain",
        LimitedBy::Airtime => "airtime explains",
    }
}

/// The part that headers or airtime explain and the remainder, if they explain anything.
fn headers(group: &Group) -> String {
    let explained = || group.rows.iter().filter_map(|row| row.explained.as_ref());
    let ratios: Vec<f64> = explained().filter_map(|explained| explained.ratio).map(percent).collect();
    let residual: Vec<f64> = explained().filter_map(|explained| explained.residual).map(percent).collect();
    let Some(by) = explained().next().map(|explained| explained.by) else { return String::new() };
    if ratios.is_empty() || residual.is_empty() {
        return String::new();
    }
    format!(
        "; {} {} %, leaving {} % to the stacks",
        explain(by),
        range(&ratios, signed),
        range(&residual, signed)
    )
}
