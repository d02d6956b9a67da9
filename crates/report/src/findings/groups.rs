//! Comparisons that belong into one table.

use crate::rendering::document::Table;
use crate::rendering::numbers::DisplayUnit;
use stacklab_model::{Cell, Comparison, Control, Factor, Findings, Metric, SizeOf, Transport, once_each};
use std::collections::{BTreeMap, BTreeSet};

/// The factors that label the rows of a table; transport and meaning of size are in its heading.
const ROWS: [Factor; 3] = [Factor::Family, Factor::Size, Factor::Replica];

/// The same two levels, as printed, compared by the same metric over one transport and meaning of size.
pub(crate) struct Group<'a> {
    pub factor: Factor,
    pub baseline: String,
    pub candidate: String,
    pub metric: Metric,
    /// Transport, and the meaning of size if it is not that of a payload, unless they are the factor compared: `TCP`.
    pub place: String,
    /// The comparisons, by family, size and replica.
    pub rows: Vec<&'a Comparison>,
    /// The A/A controls of the same metric, transport and meaning of size.
    pub controls: Vec<&'a Control>,
    pub row_factors: Vec<Factor>,
}

/// Items by their key, keys in the order of their first items.
pub(crate) fn grouped<K: PartialEq, T>(items: impl Iterator<Item = (K, T)>) -> Vec<(K, Vec<T>)> {
    let mut groups: Vec<(K, Vec<T>)> = Vec::new();
    for (key, item) in items {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.push(item),
            None => groups.push((key, vec![item])),
        }
    }
    groups
}

/// The rows of each table: of one metric, transport and meaning of size, with the table's place, in the order of cells.
pub(crate) fn by_table<'a, T>(
    rows: impl IntoIterator<Item = &'a T>,
    of: impl Fn(&T) -> (Metric, &Cell),
    has_many_sizes_of: bool,
) -> Vec<(Metric, String, Vec<&'a T>)> {
    type Key = (Metric, Option<Transport>, SizeOf);
    let mut sorted: BTreeMap<Key, Vec<&T>> = BTreeMap::new();
    for row in rows {
        let (metric, cell) = of(row);
        sorted.entry((metric, cell.transport_of_messages(), cell.size_of)).or_default().push(row);
    }
    let table = |((metric, transport, size_of), mut rows): (Key, Vec<&'a T>)| {
        rows.sort_by_key(|row| sort_key(of(row).1));
        (metric, place(transport, Some(size_of).filter(|_| has_many_sizes_of)), rows)
    };
    sorted.into_iter().map(table).collect()
}

pub(crate) fn cells(findings: &Findings) -> impl Iterator<Item = &Cell> {
    let compared = findings.comparisons.iter().map(|comparison| &comparison.question);
    let compared = compared.flat_map(|question| [&question.baseline, &question.candidate]);
    findings.cells.iter().map(|estimate| &estimate.cell).chain(compared)
}

/// The settings that differ between cells; they label rows.
pub(crate) fn varied<'a>(cells: impl Iterator<Item = &'a Cell>) -> Vec<Factor> {
    levels(cells).into_iter().filter(|(_, levels)| levels.len() > 1).map(|(factor, _)| factor).collect()
}

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
    groups_of(&findings.comparisons, &findings.same_arm, varied(cells(findings)), sizes_of(findings))
}

/// The same of comparisons between cells with these settings and meanings of sizes.
pub(crate) fn groups_of<'a>(
    comparisons: &'a [Comparison],
    controls: &'a [Control],
    varied: Vec<Factor>,
    sizes_of: BTreeSet<SizeOf>,
) -> Vec<Group<'a>> {
    let mut arms: Vec<(Factor, String, String)> = Vec::new();
    // By the number of the pair of levels first.
    let mut sorted: BTreeMap<_, Vec<&Comparison>> = BTreeMap::new();
    for comparison in comparisons {
        let question = &comparison.question;
        let factor = question.factor;
        let cell = &question.baseline;
        let pair = (factor, level(cell, factor), level(&question.candidate, factor));
        let arm = arms.iter().position(|known| *known == pair).unwrap_or_else(|| {
            arms.push(pair);
            arms.len() - 1
        });
        let transport = question.transport();
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
            let controls = controls_of(controls, metric, transport, size_of);
            Group { factor, baseline, candidate, metric, place, rows, controls, row_factors }
        })
        .collect()
}

/// The controls of comparisons by a metric, over one transport and meaning of size unless these are compared.
pub(crate) fn controls_of(
    controls: &[Control],
    metric: Metric,
    transport: Option<Transport>,
    size_of: Option<SizeOf>,
) -> Vec<&Control> {
    let mut found = Vec::new();
    for control in controls.iter().filter(|control| control.metric == metric) {
        let is_of_transport = transport.is_none_or(|transport| control.transport == transport);
        let is_of_size = size_of.is_none_or(|size_of| control.cell.size_of == size_of);
        if is_of_transport && is_of_size {
            found.push(control);
        }
    }
    found
}

/// The arms of a control by a factor: `IPv4 vs IPv4`.
pub(crate) fn control_arms(control: &Control, factor: Factor) -> String {
    let level = level(&control.cell, factor);
    format!("{level} vs {level}")
}

/// Candidates of one factor and baseline from which on a study has many levels: each is a row then, not a table.
pub(crate) const MIN_MANY_LEVELS: usize = 4;

/// The same comparisons, where those of many candidates with one baseline are one group with a row for each of them.
/// The second part is whether it is one of many levels.
pub(crate) fn merged<'a>(findings: &'a Findings) -> Vec<(Group<'a>, bool)> {
    let all = groups(findings);
    let key = |group: &Group| (group.factor, group.baseline.clone());
    let candidates = grouped(all.iter().map(|group| (key(group), group.candidate.clone())));
    let many = candidates.into_iter().filter(|(_, of)| once_each(of.iter()).len() >= MIN_MANY_LEVELS);
    let many: Vec<_> = many.map(|(key, _)| key).collect();
    let mut merged: Vec<(Group, bool)> = Vec::new();
    for mut group in all {
        let is_many = many.contains(&key(&group));
        if is_many {
            group.candidate = format!("each {}", group.factor.label());
        }
        let is_same = |(other, _): &&mut (Group, bool)| {
            key(other) == key(&group) && (other.metric, &other.place) == (group.metric, &group.place)
        };
        match merged.iter_mut().find(is_same).filter(|_| is_many) {
            Some((whole, _)) => whole.rows.extend(group.rows),
            None => merged.push((group, is_many)),
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
    /// `IPv6 vs IPv4`.
    pub(crate) fn arms(&self) -> String {
        format!("{} vs {}", self.candidate, self.baseline)
    }

    /// `RTT, UDP`.
    pub(crate) fn subject(&self) -> String {
        let place = if self.place.is_empty() { String::new() } else { format!(", {}", self.place) };
        format!("{}{place}", self.metric.label())
    }

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

    /// A table with a column for each factor that labels the rows, if any has a level of it. Controls are the last
    /// rows; their arms are in the first column.
    pub(crate) fn labelled(&self) -> Table {
        let mut table = Table::default();
        for factor in &self.row_factors {
            let mut levels: Vec<String> =
                self.rows.iter().map(|row| self.level_below(row, *factor)).collect();
            if levels.iter().all(String::is_empty) {
                continue;
            }
            let is_number = is_number(&levels);
            for control in &self.controls {
                levels.push(match table.columns.is_empty() {
                    true => control_arms(control, self.factor),
                    false => level_alone(&control.cell, *factor),
                });
            }
            table.push(factor.label(), is_number, levels);
        }
        table.keys = table.columns.len();
        table
    }

    /// The margin, if all rows have the same.
    pub(crate) fn margin(&self, shown: &DisplayUnit) -> String {
        let margins = once_each(self.rows.iter().map(|row| row.question.margin));
        match margins[..] {
            [margin] => margin_text(self.metric, margin, shown),
            _ => String::new(),
        }
    }

    /// The cell that names a row: where the factor compared labels rows, they are of its candidates.
    fn cell<'r>(&self, row: &'r Comparison, factor: Factor) -> &'r Cell {
        if factor == self.factor { &row.question.candidate } else { &row.question.baseline }
    }
}

/// The factors that distinguish the rows of a table of cells: replicas only if there are any, and only those settings
/// that the study varies.
pub(crate) fn row_factors<'a>(
    cells: impl Iterator<Item = &'a Cell> + Clone,
    varied: &[Factor],
    compared: Option<Factor>,
) -> Vec<Factor> {
    // A program has no size of its messages, and most studies no replicas.
    let named = ROWS.into_iter().filter(|factor| cells.clone().any(|cell| !cell.level(*factor).is_empty()));
    named.chain(varied.iter().copied()).filter(|factor| Some(*factor) != compared).collect()
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
fn is_number(rows: &[String]) -> bool {
    let is_digits = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    rows.iter().any(|row| !row.is_empty())
        && rows.iter().all(|row| row.split(' ').next().is_some_and(is_digits))
}

/// A table with a column for each factor, which label the rows of these cells.
pub(crate) fn labelled(cells: &[&Cell], factors: &[Factor]) -> Table {
    let mut table = Table::default();
    for factor in factors {
        let levels: Vec<String> = cells.iter().map(|cell| level_alone(cell, *factor)).collect();
        table.push(factor.label(), is_number(&levels), levels);
    }
    table.keys = table.columns.len();
    table
}

/// `; margin 2 %`.
pub(crate) fn margin_text(metric: Metric, margin: f64, shown: &DisplayUnit) -> String {
    let margin = shown.margin(metric.scale(), margin);
    format!("; margin {} {}", (margin * 1e6).round() / 1e6, shown.difference_unit)
}
