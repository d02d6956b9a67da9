//! A fleet on the page: what holds over pairs, and the verdicts of each.

use crate::findings::comparisons::answered;
use crate::findings::matrix::sign;
use crate::fleet::matrix::{Column, LEGEND, columns, compared, groups};
use crate::fleet::{TERMS, answer, facts, over_pairs_blocks, unit};
use crate::page::document::{FleetCell, FleetVerdicts};
use crate::page::{forest, verdicts};
use crate::rendering::document::{Footnotes, without_mark};
use stacklab_model::{Comparison, FleetFindings, Verdict};
use std::collections::HashMap;

/// What holds over pairs, and the verdicts by column of each of the named pairs; of one without findings, none.
pub fn fleet_verdicts(found: &FleetFindings, pairs: &[&str]) -> (FleetVerdicts, Vec<Vec<FleetCell>>) {
    let rows = compared(found);
    let groups = groups(&rows);
    let columns = columns(&groups, found);
    let places: HashMap<&str, usize> =
        found.pairs.iter().enumerate().map(|(place, pair)| (pair.name.as_str(), place)).collect();
    let cells = |name: &&str| -> Option<Vec<FleetCell>> {
        let place = *places.get(name)?;
        columns.iter().map(|column| Some(cell(column, &column.row(place)?))).collect()
    };
    let verdicts = FleetVerdicts {
        answer: answer(found),
        facts: super::facts(facts(found)),
        blocks: groups.iter().flat_map(|group| over_pairs_blocks(group, found)).collect(),
        terms: if groups.is_empty() { String::new() } else { TERMS.to_owned() },
        legend: LEGEND.to_owned(),
        columns: columns.iter().map(|column| column.title.clone()).collect(),
    };
    (verdicts, pairs.iter().map(|name| cells(name).unwrap_or_default()).collect())
}

fn cell(column: &Column, row: &Comparison) -> FleetCell {
    let question = &row.question;
    let words = without_mark(&answered(row, &mut Footnotes::default()));
    let more = match (&row.verdict, &row.effect) {
        (Verdict::Nothing(reason) | Verdict::NoneSeen(reason), _) => format!(": {reason}"),
        (_, Some(effect)) => {
            let unit = unit(question.metric, std::iter::once(effect));
            format!(", difference {}", forest::shown(effect, &unit))
        }
        _ => String::new(),
    };
    FleetCell {
        sign: sign(column.group, row, true),
        outcome: forest::outcome(&row.verdict, &question.candidate.level(question.factor)),
        strength: verdicts::strength(column.group, row),
        words: words + &more,
    }
}
