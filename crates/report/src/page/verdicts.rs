//! Comparisons by their numbers: sentences, the matrix, and each alone. And a fleet: what holds over pairs, and the
//! verdicts of each.

use crate::findings::comparisons::{distance, distances};
use crate::findings::groups::Group;
use crate::findings::matrix::{MatrixLine, lines, sizes};
use crate::findings::verdicts::{
    explained_part, format_answer, is_within_margin, magnitude, sentence, sign, verdict,
};
use crate::fleet::{
    Column, LEGEND, answer, columns, facts, groups, list_comparisons, over_pairs_blocks, terms, unit,
};
use crate::page::cells::Index;
use crate::page::document::{
    ComparisonView, FleetCell, FleetVerdicts, Matrix, MatrixRow, Sentence, facts as page_facts,
};
use crate::page::forest::{self, LevelPairs, margin};
use crate::rendering::document::{Footnotes, without_mark};
use crate::rendering::numbers::{
    DisplayUnit, NONE, difference_places, differences, p_value, percent, percent_range,
};
use stacklab_model::{Comparison, Factor, FleetFindings, Verdict};
use std::collections::HashMap;

/// The groups, each with the number of its first comparison.
pub(super) fn number_groups<'a, 'b>(groups: &'b [Group<'a>]) -> Vec<(usize, &'b Group<'a>)> {
    let first = groups.iter().scan(0, |next, group| {
        let first = *next;
        *next += group.rows.len();
        Some((first, group))
    });
    first.collect()
}

pub(super) fn sentences(groups: &[(usize, &Group)], pairs: &LevelPairs) -> Vec<Sentence> {
    let mut sentences = Vec::new();
    for (first, group) in groups {
        let shown = group.rows.iter().position(|row| matches!(row.verdict, Verdict::Better(_)));
        sentences.push(Sentence {
            text: sentence(group),
            differs: shown.is_some(),
            comparison: first + shown.unwrap_or(0),
            pair: pairs.of(&group.rows[0].question),
        });
    }
    sentences
}

pub(super) fn matrix(groups: &[(usize, &Group)], pairs: &LevelPairs, index: &Index) -> Matrix {
    let placed = groups.iter().filter(|(_, group)| group.factor != Factor::Size);
    let (firsts, lines): (Vec<usize>, Vec<MatrixLine>) =
        placed.flat_map(|(first, group)| lines(group).into_iter().map(move |line| (*first, line))).unzip();
    let sizes = sizes(&lines);
    let mut found: Vec<MatrixRow> = Vec::new();
    for (place, (first, MatrixLine { group, levels, rows })) in firsts.iter().zip(&lines).enumerate() {
        let mut controls = Vec::new();
        // Below the last line of the group.
        if firsts.get(place + 1) != Some(first) {
            let unit = index.find_unit(group.metric);
            controls.extend(group.controls.iter().map(|one| forest::control_view(one, group.factor, &unit)));
        }
        found.push(MatrixRow {
            pair: pairs.of(&group.rows[0].question),
            label: [&[group.subject()], &levels[..]].concat().join(" "),
            cells: sizes.iter().map(|size| rows.get(size).map(|row| first + row)).collect(),
            controls,
        });
    }
    Matrix { rows: found, columns: sizes.into_iter().collect() }
}

pub(super) fn views(group: &Group, index: &Index) -> Vec<ComparisonView> {
    let shown = index.find_unit(group.metric);
    let places = difference_places(distances(&group.rows).flatten(), &shown);
    group.rows.iter().map(|row| view(group, row, &shown, places, index)).collect()
}

fn view(
    group: &Group,
    row: &Comparison,
    shown: &DisplayUnit,
    places: usize,
    index: &Index,
) -> ComparisonView {
    let question = &row.question;
    let effect = row.effect.as_ref();
    let adjusted_p = row.tests.as_ref().and_then(|tests| tests.adjusted_p);
    let ends = distance(row).map(|distance| distance.within(shown));
    let of = |end: usize| Some(ends?[end]).filter(|figure| figure.is_finite());
    ComparisonView {
        metric: index.metric(question.metric).unwrap_or_default(),
        factor: index.factor(question.factor),
        baseline: index.cell(&question.baseline).unwrap_or_default(),
        candidate: index.cell(&question.candidate).unwrap_or_default(),
        arms: group.arms(),
        outcome: forest::outcome(&row.verdict, &question.candidate.level(question.factor)),
        strength: strength(group, row),
        sign: sign(group, row, true),
        words: without_mark(&verdict(row, &mut Footnotes::default())),
        reason: match &row.verdict {
            Verdict::Nothing(reason) | Verdict::NoneSeen(reason) => {
                Some([std::slice::from_ref(reason), &row.remarks[..]].concat().join("; "))
            }
            _ if row.remarks.is_empty() => None,
            _ => Some(row.remarks.join("; ")),
        },
        difference: of(0),
        low: of(1),
        high: of(2),
        shown: differences(distances(&[row]), shown, places).remove(0),
        margin: margin(question.metric, question.margin, shown),
        pairs: effect.map_or(0, |effect| effect.pairs),
        adjusted_p: adjusted_p.filter(|p| p.is_finite()).map(p_value),
        headers: headers(row),
    }
}

fn strength(group: &Group, row: &Comparison) -> u8 {
    if !matches!(row.verdict, Verdict::Better(_)) {
        return 0;
    }
    let margin = DisplayUnit::of(group.metric).margin(group.metric.scale(), row.question.margin);
    match magnitude(group, row) {
        _ if is_within_margin(group, row) => 0,
        Some(by) => forest::strength(by, margin),
        None => 1,
    }
}

fn headers(row: &Comparison) -> Option<String> {
    let explained = row.explained.as_ref()?;
    if explained.ratio.is_none() {
        return Some(explained.because.clone());
    }
    let [part, rest] = [explained.ratio, explained.residual].map(write_part);
    let text = explained_part(explained.by, row.question.factor, &part, &rest);
    Some(format!("{text} ({})", explained.because))
}

fn write_part(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| format!("{NONE} %"), |ratio| percent_range(&[percent(ratio)]))
}

/// What holds over pairs, and the verdicts by column of each of the named pairs; of one without findings, none.
pub fn fleet_verdicts(found: &FleetFindings, pairs: &[&str]) -> (FleetVerdicts, Vec<Vec<FleetCell>>) {
    let rows = list_comparisons(found);
    let groups = groups(&rows);
    let columns = columns(&groups, found);
    let places: HashMap<&str, usize> =
        found.pairs.iter().enumerate().map(|(place, pair)| (pair.name.as_str(), place)).collect();
    let mut cells = Vec::new();
    for name in pairs {
        let of_pair = places.get(name).and_then(|place| list_cells(&columns, *place));
        cells.push(of_pair.unwrap_or_default());
    }
    let verdicts = FleetVerdicts {
        answer: answer(found),
        facts: page_facts(facts(found)),
        blocks: groups.iter().flat_map(|group| over_pairs_blocks(group, found)).collect(),
        terms: if groups.is_empty() { String::new() } else { terms() },
        legend: LEGEND.to_owned(),
        columns: columns.iter().map(|column| column.title.clone()).collect(),
    };
    (verdicts, cells)
}

/// A pair's verdict in each column; `None` if one of them lacks the pair.
fn list_cells(columns: &[Column], pair: usize) -> Option<Vec<FleetCell>> {
    columns.iter().map(|column| Some(cell(column, &column.row(pair)?))).collect()
}

fn cell(column: &Column, row: &Comparison) -> FleetCell {
    let question = &row.question;
    let words = without_mark(&format_answer(row, &mut Footnotes::default()));
    let more = match (&row.verdict, &row.effect) {
        (Verdict::Nothing(reason) | Verdict::NoneSeen(reason), _) => format!(": {reason}"),
        (_, Some(effect)) => {
            let unit = unit(question.metric, std::iter::once(effect));
            format!(", difference {}", forest::format_effect(effect, &unit))
        }
        _ => String::new(),
    };
    FleetCell {
        sign: sign(column.group, row, true),
        outcome: forest::outcome(&row.verdict, &question.candidate.level(question.factor)),
        strength: strength(column.group, row),
        words: words + &more,
    }
}
