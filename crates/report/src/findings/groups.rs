//! Comparisons that belong into one table.

use crate::rendering::document::Table;
use crate::rendering::numbers::DisplayUnit;
use stacklab_model::{Cell, Comparison, Factor, Findings, Metric, SizeOf, Transport};
use std::collections::{BTreeMap, BTreeSet};

/// The factors that label the rows of a table; transport and meaning of size are in its heading.
const ROWS: [Factor; 3] = [Factor::Family, Factor::Size, Factor::Replica];

/// The key of a group, in the order of groups: the pair of levels compared, by its first mention.
type TableKey = (usize, Metric, Option<Transport>, Option<SizeOf>);

/// The same two levels compared by the same metric over one transport and meaning of size.
pub(crate) struct Group<'a> {
    /// The factor compared.
    pub factor: Factor,
    /// The baseline's level, as printed.
    pub baseline: String,
    /// The candidate's level, as printed.
    pub candidate: String,
    /// The metric.
    pub metric: Metric,
    /// Transport, and the meaning of size if it is not that of a payload, unless they are the factor compared: `TCP`.
    pub place: String,
    /// The comparisons, by family, size and replica.
    pub rows: Vec<&'a Comparison>,
    /// The factors that label the rows.
    pub row_factors: Vec<Factor>,
}

/// The cells of a study.
pub(crate) fn cells(findings: &Findings) -> impl Iterator<Item = &Cell> {
    let compared = findings.comparisons.iter().map(|comparison| &comparison.question);
    let compared = compared.flat_map(|question| [&question.baseline, &question.candidate]);
    findings.cells.iter().map(|estimate| &estimate.cell).chain(compared)
}

/// The settings that differ between cells; they label rows.
pub(crate) fn varied<'a>(cells: impl Iterator<Item = &'a Cell>) -> Vec<Factor> {
    levels(cells).into_iter().filter(|(_, levels)| levels.len() > 1).map(|(factor, _)| factor).collect()
}

/// The settings of cells, each with its levels, in order.
fn levels<'a>(cells: impl Iterator<Item = &'a Cell>) -> BTreeMap<Factor, BTreeSet<String>> {
    let mut found: BTreeMap<Factor, BTreeSet<String>> = BTreeMap::new();
    for (factor, level) in cells.flat_map(|cell| cell.settings.levels()) {
        found.entry(factor).or_default().insert(level);
    }
    found
}

/// The settings that hold in all cells that can have them, as printed: `MSS 1200`. First what sizes mean, unless that
/// is the size of a payload or varies.
pub(crate) fn fixed_settings(findings: &Findings) -> Vec<String> {
    let fixed = levels(cells(findings)).into_iter().filter(|(_, levels)| levels.len() == 1);
    let sizes_of = sizes_of(findings);
    let size_of = sizes_of.first().filter(|size_of| sizes_of.len() == 1 && **size_of != SizeOf::Payload);
    let size_of = size_of.map(|size_of| Factor::SizeOf.level_label(size_of.name()));
    let fixed = fixed.flat_map(|(factor, levels)| {
        levels.into_iter().map(move |level| format!("{} {level}", factor.label()))
    });
    size_of.into_iter().chain(fixed).collect()
}

/// All comparisons in groups: pairs of levels in the study's order, then by metric, transport and meaning of size.
pub(crate) fn groups(findings: &Findings) -> Vec<Group<'_>> {
    groups_of(&findings.comparisons, varied(cells(findings)), sizes_of(findings))
}

/// The same of comparisons between cells with these settings and meanings of sizes.
pub(crate) fn groups_of(
    comparisons: &[Comparison],
    varied: Vec<Factor>,
    sizes_of: BTreeSet<SizeOf>,
) -> Vec<Group<'_>> {
    let mut arms: Vec<(Factor, String, String)> = Vec::new();
    let mut sorted: BTreeMap<TableKey, Vec<&Comparison>> = BTreeMap::new();
    for comparison in comparisons {
        let question = &comparison.question;
        let (factor, cell) = (question.factor, &question.baseline);
        let pair = (factor, level(cell, factor), level(&question.candidate, factor));
        let arm = arms.iter().position(|known| *known == pair).unwrap_or_else(|| {
            arms.push(pair);
            arms.len() - 1
        });
        let transport = (factor != Factor::Transport).then_some(cell.transport);
        let size_of = (factor != Factor::SizeOf).then_some(cell.size_of);
        sorted.entry((arm, question.metric, transport, size_of)).or_default().push(comparison);
    }
    sorted
        .into_iter()
        .map(|((arm, metric, transport, size_of), mut rows)| {
            let (factor, baseline, candidate) = arms[arm].clone();
            rows.sort_by_key(|row| sort_key(&row.question.baseline));
            let place = place(transport, size_of.filter(|_| sizes_of.len() > 1));
            let cells = rows.iter().map(|row| &row.question.baseline);
            let row_factors = row_factors(cells, &varied, Some(factor));
            Group { factor, baseline, candidate, metric, place, rows, row_factors }
        })
        .collect()
}

/// Candidates of one factor and baseline from which on a study has many levels: each is a row then, not a table.
pub(crate) const MANY: usize = 4;

/// The same comparisons, where those of many candidates with one baseline are one group with a row for each of them.
/// The second part is whether it is one of many levels.
pub(crate) fn merged<'a>(findings: &'a Findings) -> Vec<(Group<'a>, bool)> {
    let all = groups(findings);
    let key = |group: &Group| (group.factor, group.baseline.clone());
    let mut candidates: BTreeMap<(Factor, String), BTreeSet<String>> = BTreeMap::new();
    for group in &all {
        candidates.entry(key(group)).or_default().insert(group.candidate.clone());
    }
    let mut merged: Vec<(Group, bool)> = Vec::new();
    let mut places: BTreeMap<(Factor, String, Metric, String), usize> = BTreeMap::new();
    for group in all {
        if candidates[&key(&group)].len() < MANY {
            merged.push((group, false));
            continue;
        }
        let whole = (group.factor, group.baseline.clone(), group.metric, group.place.clone());
        match places.get(&whole) {
            Some(place) => merged[*place].0.rows.extend(group.rows),
            None => {
                places.insert(whole, merged.len());
                let row_factors = std::iter::once(group.factor).chain(group.row_factors).collect();
                let candidate = format!("each {}", group.factor.label());
                merged.push((Group { candidate, row_factors, ..group }, true));
            }
        }
    }
    for (group, _) in merged.iter_mut().filter(|(_, is_many)| *is_many) {
        let cells = group.rows.iter().map(|row| &row.question.baseline);
        let varied = varied(cells.clone()).into_iter().filter(|factor| *factor != group.factor);
        let families = BTreeSet::from_iter(cells.clone().map(|cell| cell.family)).len();
        let sizes = BTreeSet::from_iter(cells.map(|cell| cell.size)).len();
        let named = [(Factor::Family, families > 1), (Factor::Size, sizes > 1)];
        let named = named.into_iter().filter(|(_, differs)| *differs).map(|(factor, _)| factor);
        group.row_factors = std::iter::once(group.factor).chain(named).chain(varied).collect();
    }
    merged
}

/// The meanings that sizes of a study have.
pub(crate) fn sizes_of(findings: &Findings) -> BTreeSet<SizeOf> {
    cells(findings).map(|cell| cell.size_of).collect()
}

/// `TCP`, `UDP, size of a write`; the size_of only where it varies.
pub(crate) fn place(transport: Option<Transport>, size_of: Option<SizeOf>) -> String {
    let transport = transport.map(|transport| Factor::Transport.level_label(transport.name()));
    let size_of = size_of.map(|size_of| Factor::SizeOf.level_label(size_of.name()));
    transport.into_iter().chain(size_of).collect::<Vec<_>>().join(", ")
}

impl Group<'_> {
    /// Both levels of the comparison: `IPv6 vs IPv4`.
    pub(crate) fn arms(&self) -> String {
        format!("{} vs {}", self.candidate, self.baseline)
    }

    /// Metric and place: `RTT, UDP`.
    pub(crate) fn subject(&self) -> String {
        let place = if self.place.is_empty() { String::new() } else { format!(", {}", self.place) };
        format!("{}{place}", self.metric.label())
    }

    /// The unit that fits the figures of its tables.
    pub(crate) fn shown(&self) -> DisplayUnit {
        let figures = self.rows.iter().flat_map(|row| match row.fitted {
            Some(fitted) => fitted.map(Some),
            None => [row.baseline_estimate.mean, row.candidate_estimate.mean],
        });
        DisplayUnit::fitting(self.metric, figures.flatten())
    }

    /// The label of a row: `128 B`.
    pub(crate) fn row_label(&self, row: &Comparison) -> String {
        let levels = self.row_factors.iter().map(|factor| level(self.cell(row, *factor), *factor));
        levels.filter(|level| !level.is_empty()).collect::<Vec<_>>().join(" ")
    }

    pub(crate) fn level_below(&self, row: &Comparison, factor: Factor) -> String {
        level_alone(self.cell(row, factor), factor)
    }

    /// The cell that names a row: where the factor compared labels rows, they are of its candidates.
    fn cell<'r>(&self, row: &'r Comparison, factor: Factor) -> &'r Cell {
        if factor == self.factor { &row.question.candidate } else { &row.question.baseline }
    }
}

/// The factors that distinguish the rows of a table of cells: replicas only if there are any, and only those settings
/// that the study varies.
pub(crate) fn row_factors<'a>(
    mut cells: impl Iterator<Item = &'a Cell>,
    varied: &[Factor],
    compared: Option<Factor>,
) -> Vec<Factor> {
    let replicas = cells.any(|cell| !cell.replica.is_empty());
    let shown = |factor: &Factor| Some(*factor) != compared && (replicas || *factor != Factor::Replica);
    ROWS.into_iter().chain(varied.iter().copied()).filter(shown).collect()
}

/// The order of rows; levels that are numbers by number.
pub(crate) fn sort_key(cell: &Cell) -> impl Ord + use<> {
    let number = |level: &String| level.parse::<u64>().unwrap_or(u64::MAX);
    let settings: Vec<_> =
        cell.settings.levels().map(|(factor, level)| (factor, number(&level), level)).collect();
    (cell.family, cell.transport, cell.size_of, cell.size, cell.replica.clone(), settings)
}

/// A level as printed without its factor's name nearby: `IPv6`, `128 B`, `MTU 1280`.
pub(crate) fn level(cell: &Cell, factor: Factor) -> String {
    factor.level_label(&cell.level(factor))
}

/// A level as printed under its factor's name.
pub(crate) fn level_alone(cell: &Cell, factor: Factor) -> String {
    factor.level_below(&cell.level(factor))
}

/// Whether a factor's levels are numbers, to be printed flush right.
pub(crate) fn is_number(rows: &[String]) -> bool {
    rows.iter().any(|row| !row.is_empty())
        && rows
            .iter()
            .all(|row| row.split(' ').next().is_some_and(|word| word.bytes().all(|b| b.is_ascii_digit())))
}

/// A table with a column for each factor, which label the rows of these cells.
pub(crate) fn labelled(cells: &[&Cell], factors: &[Factor]) -> Table {
    let mut table = Table::default();
    for factor in factors {
        let levels: Vec<String> = cells.iter().map(|cell| level_alone(cell, *factor)).collect();
        table.push(factor.label(), is_number(&levels), levels);
    }
    table
}

/// With a capital first letter.
pub(crate) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
