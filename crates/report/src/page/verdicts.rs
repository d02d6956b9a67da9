//! Comparisons by their numbers: sentences, the matrix, and each alone.

use crate::findings::comparisons::{distances, verdict};
use crate::findings::groups::Group;
use crate::findings::matrix::{Line, lines, sign, sizes};
use crate::findings::summary::{explain, is_within_margin, magnitude, sentence};
use crate::page::cells::Index;
use crate::page::document::{ComparisonView, Matrix, MatrixRow, Sentence};
use crate::page::forest::{self, Pairs, margin};
use crate::rendering::document::{Footnotes, without_mark};
use crate::rendering::numbers::{
    DisplayUnit, NONE, difference_places, differences, p_value, percent, signed,
};
use stacklab_model::{Comparison, Factor, Verdict};

/// The comparisons in the order of their groups.
pub(super) struct Numbered {
    /// The number of each group's first comparison.
    first: Vec<usize>,
}

impl Numbered {
    pub(super) fn new(groups: &[Group]) -> Self {
        let first = groups.iter().scan(0, |next, group| {
            let first = *next;
            *next += group.rows.len();
            Some(first)
        });
        Numbered { first: first.collect() }
    }

    pub(super) fn sentences(&self, groups: &[Group], pairs: &Pairs) -> Vec<Sentence> {
        let of = |(group, first): (&Group, &usize)| {
            let better = |row: &&Comparison| matches!(row.verdict, Verdict::Better(_));
            let shown = group.rows.iter().position(better);
            Sentence {
                text: sentence(group),
                differs: shown.is_some(),
                comparison: first + shown.unwrap_or(0),
                pair: pairs.of(&group.rows[0].question),
            }
        };
        groups.iter().zip(&self.first).map(of).collect()
    }

    /// Columns are sizes, rows everything else.
    pub(super) fn matrix(&self, groups: &[Group], pairs: &Pairs) -> Matrix {
        let placed = groups.iter().zip(&self.first).filter(|(group, _)| group.factor != Factor::Size);
        let (firsts, lines): (Vec<usize>, Vec<Line>) = placed
            .flat_map(|(group, first)| lines(group).into_iter().map(move |line| (*first, line)))
            .unzip();
        let sizes = sizes(&lines);
        let row = |(first, Line { group, levels, rows }): (&usize, &Line)| MatrixRow {
            pair: pairs.of(&group.rows[0].question),
            label: std::iter::once(group.subject())
                .chain(levels.iter().cloned())
                .collect::<Vec<_>>()
                .join(" "),
            cells: sizes.iter().map(|size| rows.get(size).map(|place| first + place)).collect(),
        };
        Matrix { rows: firsts.iter().zip(&lines).map(row).collect(), columns: sizes.into_iter().collect() }
    }

    pub(super) fn views(&self, groups: &[Group], index: &Index) -> Vec<ComparisonView> {
        groups.iter().flat_map(|group| views(group, index)).collect()
    }
}

fn views(group: &Group, index: &Index) -> Vec<ComparisonView> {
    let shown = index.shown(group.metric);
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
    let of = |figure: Option<f64>| {
        let effect = effect?;
        Some(shown.difference(effect.scale, figure?)).filter(|figure| figure.is_finite())
    };
    let words = verdict(row, &mut Footnotes::default());
    ComparisonView {
        metric: index.metric(question.metric).unwrap_or_default(),
        factor: index.factor(question.factor),
        baseline: index.cell(&question.baseline).unwrap_or_default(),
        candidate: index.cell(&question.candidate).unwrap_or_default(),
        arms: group.arms(),
        outcome: forest::outcome(&row.verdict, &question.candidate.level(question.factor)),
        strength: strength(group, row),
        sign: sign(group, row, true),
        words: without_mark(&words),
        reason: match &row.verdict {
            Verdict::Nothing(reason) | Verdict::NoneSeen(reason) => Some(reason.clone()),
            _ => None,
        },
        difference: of(effect.map(|effect| effect.estimate)),
        low: of(effect.map(|effect| effect.interval95.low)),
        high: of(effect.map(|effect| effect.interval95.high)),
        shown: differences(distances(&[row]), shown, places).remove(0),
        margin: margin(question.metric, question.margin, shown),
        pairs: effect.map_or(0, |effect| effect.pairs),
        adjusted_p: row
            .tests
            .as_ref()
            .and_then(|tests| tests.adjusted_p)
            .filter(|p| p.is_finite())
            .map(p_value),
        headers: headers(row, places),
    }
}

pub(super) fn strength(group: &Group, row: &Comparison) -> u8 {
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

fn headers(row: &Comparison, places: usize) -> Option<String> {
    let explained = row.explained.as_ref()?;
    let part = |ratio: Option<f64>| ratio.map_or(NONE.to_owned(), |ratio| signed(percent(ratio), places));
    Some(match explained.ratio {
        Some(_) => format!(
            "{} {} %, leaving {} % to the stacks ({})",
            explain(explained.by),
            part(explained.ratio),
            part(explained.residual),
            explained.because
        ),
        None => explained.because.clone(),
    })
}
