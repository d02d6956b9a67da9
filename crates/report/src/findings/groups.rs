//! Comparisons that belong into one table.

use stacklab_model::{Cell, Comparison, Factor, Findings, Framing, Metric, Transport};
use std::collections::{BTreeMap, BTreeSet};

/// The factors that label the rows of a table; transport and framing are in its heading.
const ROWS: [Factor; 3] = [Factor::Family, Factor::Size, Factor::Replica];

/// The key of a group, in the order of groups: the pair of levels compared, by its first mention.
type Key = (usize, Metric, Option<Transport>, Option<Framing>);

/// The same two levels compared by the same metric over one transport and framing.
pub(crate) struct Group<'a> {
    /// The factor compared.
    pub factor: Factor,
    /// The baseline's level, as printed.
    pub baseline: String,
    /// The candidate's level, as printed.
    pub candidate: String,
    /// The metric.
    pub metric: Metric,
    /// Transport and framing, unless they are the factor compared: `tcp segment`.
    pub place: String,
    /// The comparisons, by family, size and replica.
    pub rows: Vec<&'a Comparison>,
    /// The factors that label the rows.
    pub row_factors: Vec<Factor>,
}

/// The settings that a study has, each with its levels, in order.
fn settings(findings: &Findings) -> BTreeMap<Factor, BTreeSet<String>> {
    let compared = findings.comparisons.iter().map(|comparison| &comparison.question);
    let compared = compared.flat_map(|question| [&question.baseline, &question.candidate]);
    levels(findings.cells.iter().map(|estimate| &estimate.cell).chain(compared))
}

/// The settings that differ between cells.
pub(crate) fn varied<'a>(cells: impl Iterator<Item = &'a Cell>) -> Vec<Factor> {
    let found = levels(cells).into_iter().filter(|(_, levels)| levels.len() > 1);
    found.map(|(factor, _)| factor).collect()
}

/// The settings of cells, each with its levels, in order.
fn levels<'a>(cells: impl Iterator<Item = &'a Cell>) -> BTreeMap<Factor, BTreeSet<String>> {
    let mut found: BTreeMap<Factor, BTreeSet<String>> = BTreeMap::new();
    for (factor, level) in cells.flat_map(|cell| cell.settings.levels()) {
        found.entry(factor).or_default().insert(level);
    }
    found
}

/// The settings that a study varies; they label rows.
pub(crate) fn varied_settings(findings: &Findings) -> Vec<Factor> {
    settings(findings).into_iter().filter(|(_, levels)| levels.len() > 1).map(|(factor, _)| factor).collect()
}

/// The settings that hold in all cells that can have them, as printed: `mss=1200`.
pub(crate) fn fixed_settings(findings: &Findings) -> Vec<String> {
    let fixed = settings(findings).into_iter().filter(|(_, levels)| levels.len() == 1);
    fixed
        .flat_map(|(factor, levels)| levels.into_iter().map(move |level| format!("{factor}={level}")))
        .collect()
}

/// All comparisons in groups: pairs of levels in the study's order, then by metric, transport and framing.
pub(crate) fn groups(findings: &Findings) -> Vec<Group<'_>> {
    let varied = varied_settings(findings);
    let mut arms: Vec<(Factor, String, String)> = Vec::new();
    let mut sorted: BTreeMap<Key, Vec<&Comparison>> = BTreeMap::new();
    for comparison in &findings.comparisons {
        let question = &comparison.question;
        let (factor, cell) = (question.factor, &question.baseline);
        let pair = (factor, level(cell, factor), level(&question.candidate, factor));
        let arm = arms.iter().position(|known| *known == pair).unwrap_or_else(|| {
            arms.push(pair);
            arms.len() - 1
        });
        let transport = (factor != Factor::Transport).then_some(cell.transport);
        let framing = (factor != Factor::Framing).then_some(cell.framing);
        sorted.entry((arm, question.metric, transport, framing)).or_default().push(comparison);
    }
    sorted
        .into_iter()
        .map(|((arm, metric, transport, framing), mut rows)| {
            let (factor, baseline, candidate) = arms[arm].clone();
            rows.sort_by_key(|row| sort_key(&row.question.baseline));
            let place = [transport.map(Transport::name), framing.map(Framing::name)];
            let place = place.into_iter().flatten().collect::<Vec<_>>().join(" ");
            let cells = rows.iter().map(|row| &row.question.baseline);
            let row_factors = row_factors(cells, &varied, Some(factor));
            Group { factor, baseline, candidate, metric, place, rows, row_factors }
        })
        .collect()
}

impl Group<'_> {
    /// Both levels of the comparison: `ipv6 against ipv4`.
    pub(crate) fn arms(&self) -> String {
        format!("{} against {}", self.candidate, self.baseline)
    }

    /// The label of a row: `128 B`.
    pub(crate) fn row_label(&self, row: &Comparison) -> String {
        let levels: Vec<String> =
            self.row_factors.iter().map(|factor| level(&row.question.baseline, *factor)).collect();
        levels.join(" ")
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
    (cell.family, cell.transport, cell.framing, cell.size, cell.replica.clone(), settings)
}

/// A level as printed without its factor's name nearby: sizes with their unit, settings with their name.
pub(crate) fn level(cell: &Cell, factor: Factor) -> String {
    match cell.settings.get(factor) {
        Some(level) => format!("{factor}={level}"),
        None => level_alone(cell, factor),
    }
}

/// The same of a level by itself.
pub(crate) fn level_name(factor: Factor, level: &str) -> String {
    match factor {
        Factor::Size => format!("{level} B"),
        factor if factor.is_setting() => format!("{factor}={level}"),
        _ => level.to_owned(),
    }
}

/// A level as printed under its factor's name.
pub(crate) fn level_alone(cell: &Cell, factor: Factor) -> String {
    match factor {
        Factor::Size => format!("{} B", cell.size),
        _ => cell.level(factor),
    }
}

/// Whether a factor's levels are numbers, to be printed flush right.
pub(crate) fn is_number(rows: &[String]) -> bool {
    rows.iter().any(|row| !row.is_empty())
        && rows
            .iter()
            .all(|row| row.split(' ').next().is_some_and(|word| word.bytes().all(|b| b.is_ascii_digit())))
}
