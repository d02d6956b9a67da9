//! Verdicts in words: of a row, in a few characters, and a sentence for each group of comparisons.

use crate::findings::claims::{Claimed, of_row};
use crate::findings::groups::{Group, group_by_key, level};
use crate::rendering::document::{Block, Footnotes};
use crate::rendering::numbers::{
    DisplayUnit, NONE, factor, format_decimals, is_factor, percent, percent_range, range,
};
use stacklab_model::{Comparison, Factor, LimitedBy, StopReason, Verdict};

/// The name of a verdict in CSV and metrics.
pub fn verdict_name(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Better(_) => "better",
        Verdict::Equivalent => "equivalent",
        Verdict::Inconclusive => "inconclusive",
        Verdict::NoneSeen(_) => "none_seen",
        Verdict::Nothing(_) => "nothing",
    }
}

/// A verdict in words; `arm` writes the better level.
pub(crate) fn words(verdict: &Verdict, arm: impl Fn(&str) -> String) -> String {
    match verdict {
        Verdict::Better(level) => format!("{} better", arm(level)),
        Verdict::NoneSeen(_) => "none seen".to_owned(),
        Verdict::Nothing(_) => "nothing to compare".to_owned(),
        verdict => verdict_name(verdict).to_owned(),
    }
}

/// The reason of a row whose runs are not paired.
const NOT_PAIRED: &str = "the runs of the arms are not paired: the difference is between 20 % trimmed means (Yuen and Welch), n \
     are the runs of each arm, and there is no verdict";

fn arm(row: &Comparison, better: &str) -> String {
    let factor = row.question.factor;
    let cells = [&row.question.baseline, &row.question.candidate];
    let cell = cells.into_iter().find(|cell| cell.level(factor) == better);
    cell.map_or_else(|| better.to_owned(), |cell| level(cell, factor))
}

pub(crate) fn format_answer(row: &Comparison, notes: &mut Footnotes) -> String {
    let mut text = match &row.verdict {
        Verdict::NoneSeen(bounds) => format!("none seen {}", notes.mark(bounds)),
        Verdict::Nothing(_) if row.unpaired.is_some() => {
            return format!("no verdict {}", notes.mark(NOT_PAIRED));
        }
        Verdict::Nothing(reason) => format!("nothing {}", notes.mark(reason)),
        verdict => words(verdict, |level| arm(row, level)),
    };
    for remark in &row.remarks {
        text = format!("{text} {}", notes.mark(remark));
    }
    text
}

/// The verdict, and why the measurement ended if the interval was not the reason.
pub(crate) fn verdict(row: &Comparison, notes: &mut Footnotes) -> String {
    let ended = match row.stop_reason {
        _ if row.unpaired.is_some() => "",
        StopReason::Precise | StopReason::Decided => "",
        StopReason::Cap => " (most blocks)",
        StopReason::Budget => " (time was up)",
        StopReason::Unfinished => " (unfinished)",
    };
    format!("{}{ended}", format_answer(row, notes))
}

/// A verdict in a few characters: `IPv4 9.8 %`, `=`, `?`.
pub(crate) fn sign(group: &Group, row: &Comparison, magnitudes: bool) -> String {
    let level = match &row.verdict {
        Verdict::Better(level) => level,
        Verdict::Equivalent => return "=".to_owned(),
        Verdict::Inconclusive => return "?".to_owned(),
        Verdict::NoneSeen(_) => return "0".to_owned(),
        Verdict::Nothing(_) => return NONE.to_owned(),
    };
    let mut sign = arm(row, level);
    if let (Some(by), Some(effect), true) = (magnitude(group, row), &row.effect, magnitudes) {
        sign += " ";
        sign += &match DisplayUnit::of(group.metric).difference_unit {
            _ if is_factor(effect.scale, effect.estimate) => factor(effect.estimate),
            "points" => format!("{} pt", range(&[by], format_decimals)),
            "events" => range(&[by], format_decimals),
            unit => format!("{} {unit}", range(&[by], format_decimals)),
        };
    }
    if is_within_margin(group, row) { format!("({sign})") } else { sign }
}

pub(crate) fn blocks(groups: &[Group]) -> Vec<Block> {
    if groups.is_empty() {
        return vec![];
    }
    vec![Block::Heading("Summary".to_owned()), Block::List(groups.iter().map(sentence).collect())]
}

/// `throughput, TCP, IPv6 vs IPv4: IPv4 better at 5 of 6 sizes (by 1.2 to 4.0 %), equivalent at 1`.
pub(crate) fn sentence(group: &Group) -> String {
    let mut outcomes = group_by_key(group.rows.iter().map(|row| (describe_outcome(row), *row)));
    // The most frequent outcome first; among equals the most informative one.
    outcomes.sort_by_key(|(_, rows)| (std::cmp::Reverse(rows.len()), rank(&rows[0].verdict)));

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

fn describe_outcome(row: &Comparison) -> String {
    match &row.unpaired {
        Some(_) => "no verdict, runs not paired".to_owned(),
        None => words(&row.verdict, |level| arm(row, level)),
    }
}

/// `headers explain -3.2 %, leaving +5.6 % to the stacks`: to what the arms are.
pub(crate) fn explained_part(by: LimitedBy, factor: Factor, part: &str, rest: &str) -> String {
    let whose = match factor {
        Factor::Family | Factor::Os => "the stacks".to_owned(),
        Factor::Generator | Factor::Programs | Factor::Program | Factor::Mechanism | Factor::Translator => {
            format!("the {}", factor.plural())
        }
        _ => "other causes".to_owned(),
    };
    format!("{} {part}, leaving {rest} to {whose}", explain(by))
}

/// The most informative verdict is the first.
fn rank(verdict: &Verdict) -> Option<usize> {
    let names = ["better", "equivalent", "none_seen", "inconclusive", "nothing"];
    names.iter().position(|name| *name == verdict_name(verdict))
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
fn explain(by: LimitedBy) -> &'static str {
    match by {
        LimitedBy::Headers => "headers explain",
        LimitedBy::Airtime => "airtime explains",
    }
}

/// The part that headers or airtime explain and the remainder, if they explain anything.
fn headers(group: &Group) -> String {
    let explained: Vec<_> = group.rows.iter().filter_map(|row| row.explained.as_ref()).collect();
    let ratios: Vec<f64> = explained.iter().filter_map(|one| one.ratio).map(percent).collect();
    let residual: Vec<f64> = explained.iter().filter_map(|one| one.residual).map(percent).collect();
    if ratios.is_empty() || residual.is_empty() {
        return String::new();
    }
    let by = explained[0].by;
    let text = explained_part(by, group.factor, &percent_range(&ratios), &percent_range(&residual));
    format!("; {text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_of_what_the_arms_are() {
        fn of(factor: Factor) -> String {
            explained_part(LimitedBy::Headers, factor, "-1.3 %", "nothing")
        }
        assert_eq!(of(Factor::Family), "headers explain -1.3 %, leaving nothing to the stacks");
        assert_eq!(of(Factor::Generator), "headers explain -1.3 %, leaving nothing to the generators");
        assert_eq!(of(Factor::Size), "headers explain -1.3 %, leaving nothing to other causes");
    }
}
