//! The matrix of a fleet: rows are pairs of hosts, columns are comparisons.

use crate::findings::groups::{Group, groups_of, varied};
use stacklab_model::{
    Comparison, Effect, Estimate, FleetComparison, FleetFindings, Interval, PairAnswer, StopReason, Verdict,
    once_each,
};

/// What its signs mean.
pub(crate) const LEGEND: &str = "the better arm of each pair and by how much, in parentheses where that is within the \
     margin; = equivalent, 0 none seen, ? inconclusive, - nothing to compare";

/// A column.
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
    let column = |group: &'b Group<'a>, row: &Comparison| {
        let of = found.comparisons.iter().find(|of| of.question == row.question)?;
        let arms = has_many_arms.then(|| group.arms());
        let place = format!("{} {}", group.subject(), group.row_label(row));
        let title = std::iter::once(place.trim_end().to_owned()).chain(arms).collect::<Vec<_>>().join(", ");
        Some(Column { title, group, of })
    };
    groups.iter().flat_map(|group| group.rows.iter().filter_map(move |row| column(group, row))).collect()
}

/// The comparisons with their differences over pairs, as those of a campaign.
pub(crate) fn compared(found: &FleetFindings) -> Vec<Comparison> {
    let row = |of: &FleetComparison| {
        let effect = of.pooled.as_ref().map(|pooled| pooled.effect.clone());
        comparison(of, effect, &of.verdict, of.claimed_interval)
    };
    found.comparisons.iter().map(row).collect()
}

/// The same in groups.
pub(crate) fn groups(rows: &[Comparison]) -> Vec<Group<'_>> {
    let cells = || rows.iter().flat_map(|row| [&row.question.baseline, &row.question.candidate]);
    groups_of(rows, varied(cells()), cells().map(|cell| cell.size_of).collect())
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
    }
}
