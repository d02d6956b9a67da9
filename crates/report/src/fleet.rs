//! The report of a fleet: what holds over pairs of hosts, and the matrix of verdicts, whose rows are pairs.

#[cfg(test)]
mod tests;

use crate::findings::answer::of_headlines;
use crate::findings::comparisons::better;
use crate::findings::groups::{Group, groups_of, list_varied_factors};
use crate::findings::verdicts::{format_answer, sign};
use crate::rendering::document::{Block, Footnotes, Table, Width};
use crate::rendering::format::versioned_json;
use crate::rendering::numbers::{
    DisplayUnit, Distance, NONE, align_columns, difference_heading, difference_places, differences,
};
use crate::rendering::text::text;
use stacklab_model::{
    Better, Comparison, Effect, Estimate, FleetComparison, FleetFindings, Interval, MIN_FLEET_PAIRS,
    MIN_PAIRS_OF_MEAN, Metric, PairAnswer, PooledEffect, Scale, StopReason, Verdict, count, once_each,
};

const FLEET_FORMAT_VERSION: u32 = 1;
const LISTED: usize = 100;

/// What the words of the tables mean.
pub(crate) fn terms() -> String {
    format!(
        "difference: the mean over pairs of hosts, with its 95 % interval. spread: the standard deviation of the pairs' \
         true differences. another pair: where the true difference of another such pair is expected, 95 %. pairs: those \
         with a figure. The verdicts of a pair are as in its report. With fewer than {MIN_PAIRS_OF_MEAN} pairs a claim is \
         about the typical pair, \"better at 7 of 7 pairs\", and needs {MIN_FLEET_PAIRS} of them; the mean is a \
         description then. At most one in twenty of the claims over pairs (better, equivalent) is expected to be false, \
         and so of the claims of each pair."
    )
}

/// The findings of a fleet as JSON, unrounded.
pub fn fleet_json(found: &FleetFindings) -> String {
    versioned_json(FLEET_FORMAT_VERSION, found)
}

/// The findings of a fleet as text: the answer, a table over pairs for each metric, and the matrix of pairs.
pub fn fleet_text(found: &FleetFindings, width: Width) -> String {
    text(&document(found), width)
}

fn document(found: &FleetFindings) -> Vec<Block> {
    let rows = list_comparisons(found);
    let groups = groups(&rows);
    let mut blocks =
        vec![Block::Title(found.title.clone()), Block::Text(answer(found)), Block::Facts(facts(found))];
    blocks.extend(groups.iter().flat_map(|group| over_pairs_blocks(group, found)));
    blocks.extend(matrix(&groups, found));
    if !groups.is_empty() {
        blocks.extend([Block::Heading("Terms".to_owned()), Block::Text(terms())]);
    }
    blocks
}

/// `At the typical one of 12 pairs of hosts: over UDP, IPv6 has 3.9 to 4.9 % lower throughput than IPv4. 1 of 2
/// comparisons answered. 2 pairs show the opposite: a -> b, a -> c.`
pub(crate) fn answer(found: &FleetFindings) -> String {
    let pairs = count(found.pairs.len(), "pair");
    let unclaimed = match found.pairs.len() {
        0 => "No pair of hosts has findings yet.",
        1 => {
            "Only one pair of hosts has findings. How much pairs differ is not known from one, so nothing is claimed \
             over pairs."
        }
        _ if !found.has_ended => {
            &format!("The campaign has not ended: nothing is claimed over {pairs} of hosts yet.")
        }
        few if few < MIN_FLEET_PAIRS => &format!(
            "Nothing is claimed over {pairs} of hosts: that needs {MIN_FLEET_PAIRS}. Each pair has its own verdicts."
        ),
        _ => "",
    };
    if !unclaimed.is_empty() {
        return unclaimed.to_owned();
    }
    let Some(said) = of_headlines(&found.overall, &[], &[], false) else {
        return format!("{pairs} of hosts, and nothing was compared.");
    };
    let said = said.strip_prefix("Over ").map_or(said.clone(), |rest| format!("over {rest}"));
    let opposite = opposite(found).map_or_else(String::new, |said| format!(" {said}"));
    let scope = if found.comparisons.iter().any(is_of_typical_pair) {
        format!("At the typical one of {pairs} of hosts")
    } else {
        format!("On average over {pairs} of hosts")
    };
    format!("{scope}: {said}{opposite}")
}

/// Whether a claim is about the typical pair instead of the mean.
fn is_of_typical_pair(of: &FleetComparison) -> bool {
    of.counted < MIN_PAIRS_OF_MEAN
}

/// The verdict over pairs: `IPv4 better at 6 of 7 pairs` where it is about the typical one.
fn verdict_over_pairs(row: &Comparison, of: Option<&FleetComparison>, notes: &mut Footnotes) -> String {
    let words = format_answer(row, notes);
    match of {
        Some(of) if is_of_typical_pair(of) && matches!(of.verdict, Verdict::Better(_)) => {
            format!("{words} at {} of {} pairs", count_agreeing(of), of.counted)
        }
        _ => words,
    }
}

/// The pairs whose estimate has the direction of the verdict.
fn count_agreeing(of: &FleetComparison) -> usize {
    let question = &of.question;
    let is_candidate = of.verdict == Verdict::Better(question.candidate.level(question.factor));
    let is_higher = is_candidate == (question.metric.better() == Better::Higher);
    let none = Interval::of_margin(question.metric.scale(), 0.0).low;
    let mut agreeing = 0;
    for answer in &of.answers {
        if let (Some(effect), false) = (&answer.effect, matches!(answer.verdict, Verdict::Nothing(_))) {
            let agrees = if is_higher { effect.estimate > none } else { effect.estimate < none };
            agreeing += usize::from(agrees);
        }
    }
    agreeing
}

/// The pairs in whose own reports the other arm is better.
fn opposite(found: &FleetFindings) -> Option<String> {
    const NAMED: usize = 3;
    let claims: Vec<&FleetComparison> =
        found.comparisons.iter().filter(|of| matches!(of.verdict, Verdict::Better(_))).collect();
    if claims.is_empty() {
        return None;
    }
    let pairs: Vec<usize> =
        (0..found.pairs.len()).filter(|pair| claims.iter().any(|of| shows_opposite(of, *pair))).collect();
    let names: Vec<&str> = pairs.iter().take(NAMED).map(|pair| found.pairs[*pair].name.as_str()).collect();
    let more = match pairs.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(match pairs.len() {
        0 => "No pair shows the opposite.".to_owned(),
        1 => format!("1 pair shows the opposite: {}.", names[0]),
        n => format!("{n} pairs show the opposite: {}{more}.", names.join(", ")),
    })
}

/// Whether a pair's own report says that the other arm is better.
fn shows_opposite(of: &FleetComparison, pair: usize) -> bool {
    match of.answers.get(pair) {
        Some(answer) => matches!(answer.verdict, Verdict::Better(_)) && answer.verdict != of.verdict,
        None => false,
    }
}

pub(crate) fn facts(found: &FleetFindings) -> Vec<(&'static str, String)> {
    let valid: usize = found.pairs.iter().map(|pair| pair.valid_runs).sum();
    let invalid: usize = found.pairs.iter().map(|pair| pair.invalid_runs).sum();
    let blocks = found.pairs.iter().map(|pair| pair.blocks);
    let blocks = match (blocks.clone().min(), blocks.max()) {
        (Some(least), Some(most)) if least < most => format!("{least} to {most} blocks each"),
        (Some(all), _) => format!("{} each", count(all as usize, "block")),
        _ => return Vec::new(),
    };
    let runs = format!("{}, {invalid} invalid", count(valid, "valid run"));
    vec![("pairs", format!("{}, {blocks}", found.pairs.len())), ("runs", runs)]
}

/// Heading, direction and table of the differences over pairs.
pub(crate) fn over_pairs_blocks(group: &Group, found: &FleetFindings) -> [Block; 3] {
    let of: Vec<&FleetComparison> = group.rows.iter().filter_map(|row| find_of(found, row)).collect();
    let scale = group.metric.scale();
    let shown = unit(group.metric, of.iter().filter_map(|of| Some(&of.pooled.as_ref()?.effect)));
    let mut means = Vec::new();
    let mut spreads = Vec::new();
    let mut others = Vec::new();
    for of in &of {
        let pooled = of.pooled.as_ref();
        means.push(pooled.map(|pooled| Distance::from(&pooled.effect)));
        spreads.push(pooled.map(|pooled| spread(pooled, scale)));
        others.push(pooled.and_then(|pooled| expect_another(pooled, scale)));
    }
    let places = difference_places(means.iter().copied().flatten(), &shown);
    let mut notes = Footnotes::default();
    let mut table = group.label_rows();
    let cells = differences(means.into_iter(), &shown, places);
    table.push(difference_heading(shown.difference_unit, &cells), true, cells);
    let unsigned: Vec<String> =
        differences(spreads.into_iter(), &shown, places).iter().map(|cell| cell.replace('+', "")).collect();
    table.push("spread [95 %]", true, unsigned);
    table.push_optional("another pair", write_ranges(&others, &shown, places));
    let verdicts = group.rows.iter().map(|row| verdict_over_pairs(row, find_of(found, row), &mut notes));
    table.push("verdict", false, verdicts.collect());
    // Of few pairs the verdict has their number.
    if of.iter().any(|of| of.left_out > 0 || !is_of_typical_pair(of)) {
        table.push("pairs", true, of.iter().map(|of| count_pairs(of)).collect());
    }
    table.footnotes = notes;
    [
        Block::Heading(format!("{}: {}", group.subject(), group.arms())),
        Block::Text(format!("over pairs; {} is better{}", better(group.metric), group.margin(&shown))),
        Block::Table(table),
    ]
}

fn find_of<'a>(found: &'a FleetFindings, row: &Comparison) -> Option<&'a FleetComparison> {
    found.comparisons.iter().find(|of| of.question == row.question)
}

/// As a share of the figure: a spread of logarithms of 0.02 is 2 %.
fn spread(pooled: &PooledEffect, scale: Scale) -> Distance {
    let Interval { low, high } = pooled.spread_interval;
    let ends = [pooled.spread, low, high];
    Distance::new(scale, if scale == Scale::Ratio { ends.map(f64::exp) } else { ends })
}

fn expect_another(pooled: &PooledEffect, scale: Scale) -> Option<Distance> {
    let Interval { low, high } = pooled.prediction?;
    Some(Distance::new(scale, [pooled.effect.estimate, low, high]))
}

fn write_ranges(ranges: &[Option<Distance>], shown: &DisplayUnit, places: usize) -> Vec<String> {
    let mut ends = Vec::new();
    for range in ranges {
        ends.push(range.map(|range| {
            let [_, low, high] = range.parts(shown, places);
            [low, high]
        }));
    }
    align_columns(&ends)
        .into_iter()
        .map(|cell| cell.map_or(NONE.to_owned(), |cell| cell.trim().to_owned()))
        .collect()
}

fn count_pairs(of: &FleetComparison) -> String {
    match of.left_out {
        0 => of.counted.to_string(),
        left_out => format!("{} of {}", of.counted, of.counted + left_out),
    }
}

pub(crate) fn unit<'a>(metric: Metric, effects: impl Iterator<Item = &'a Effect>) -> DisplayUnit {
    let ends = effects.flat_map(|effect| [effect.interval95.low, effect.interval95.high]);
    DisplayUnit::of_differences(metric, metric.scale(), ends)
}

fn matrix(groups: &[Group], found: &FleetFindings) -> Vec<Block> {
    if groups.is_empty() || found.pairs.is_empty() {
        return vec![];
    }
    let listed = &found.pairs[..found.pairs.len().min(LISTED)];
    let mut table = Table::default();
    table.push("pair", false, listed.iter().map(|pair| pair.name.clone()).collect());
    for column in columns(groups, found) {
        let mut cells = Vec::new();
        for pair in 0..listed.len() {
            cells.push(column.row(pair).map_or_else(String::new, |row| sign(column.group, &row, true)));
        }
        table.push(column.title.clone(), false, cells);
    }
    let rest = match found.pairs.len() - listed.len() {
        0 => String::new(),
        rest => format!("; the JSON report has {} more", count(rest, "pair")),
    };
    vec![Block::Heading("Pairs".to_owned()), Block::Text(format!("{LEGEND}{rest}")), Block::Table(table)]
}

pub(crate) const LEGEND: &str = "the better arm of each pair and by how much, in parentheses where that is within the \
     margin; = equivalent, 0 none seen, ? inconclusive, - nothing to compare";

pub(crate) struct Column<'a, 'b> {
    pub title: String,
    pub group: &'b Group<'a>,
    of: &'b FleetComparison,
}

impl Column<'_, '_> {
    /// What a pair answers, as a comparison of a campaign; `None` without such a pair.
    pub(crate) fn row(&self, pair: usize) -> Option<Comparison> {
        let PairAnswer { verdict, effect, claimed_interval } = self.of.answers.get(pair)?;
        Some(comparison(self.of, effect.clone(), verdict, *claimed_interval))
    }
}

pub(crate) fn columns<'a, 'b>(groups: &'b [Group<'a>], found: &'b FleetFindings) -> Vec<Column<'a, 'b>> {
    let has_many_arms = once_each(groups.iter().map(|group| group.arms())).len() > 1;
    let mut columns = Vec::new();
    for group in groups {
        for row in &group.rows {
            let Some(of) = find_of(found, row) else { continue };
            let place = format!("{} {}", group.subject(), group.row_label(row));
            let mut title = place.trim_end().to_owned();
            if has_many_arms {
                title += &format!(", {}", group.arms());
            }
            columns.push(Column { title, group, of });
        }
    }
    columns
}

/// The comparisons with their differences over pairs, as those of a campaign.
pub(crate) fn list_comparisons(found: &FleetFindings) -> Vec<Comparison> {
    let mut rows = Vec::new();
    for of in &found.comparisons {
        let effect = of.pooled.as_ref().map(|pooled| pooled.effect.clone());
        rows.push(comparison(of, effect, &of.verdict, of.claimed_interval));
    }
    rows
}

pub(crate) fn groups(rows: &[Comparison]) -> Vec<Group<'_>> {
    let cells = || rows.iter().flat_map(|row| [&row.question.baseline, &row.question.candidate]);
    groups_of(rows, &[], list_varied_factors(cells()), cells().map(|cell| cell.size_of).collect())
}

fn comparison(
    of: &FleetComparison,
    effect: Option<Effect>,
    verdict: &Verdict,
    claimed_interval: Option<Interval>,
) -> Comparison {
    Comparison {
        question: of.question.clone(),
        baseline_estimate: Estimate::default(),
        candidate_estimate: Estimate::default(),
        effect,
        fitted: None,
        tests: None,
        explained: None,
        verdict: verdict.clone(),
        claimed_interval,
        stop_reason: StopReason::Decided,
        more_blocks: None,
        unpaired: None,
        is_bound_wide: false,
        remarks: Vec::new(),
    }
}
