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
pub(crate) fn group_by_key<K: PartialEq, T>(items: impl Iterator<Item = (K, T)>) -> Vec<(K, Vec<T>)> {
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
    let mut tables = Vec::new();
    for ((metric, transport, size_of), mut rows) in sorted {
        rows.sort_by_key(|row| sort_key(of(row).1));
        let size_of = if has_many_sizes_of { Some(size_of) } else { None };
        tables.push((metric, place(transport, size_of), rows));
    }
    tables
}

pub(crate) fn cells(findings: &Findings) -> impl Iterator<Item = &Cell> {
    let compared = findings.comparisons.iter().map(|comparison| &comparison.question);
    let compared = compared.flat_map(|question| [&question.baseline, &question.candidate]);
    findings.cells.iter().map(|estimate| &estimate.cell).chain(compared)
}

/// The settings that differ between cells; they label rows.
pub(crate) fn list_varied_factors<'a>(cells: impl Iterator<Item = &'a Cell>) -> Vec<Factor> {
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
    groups_of(
        &findings.comparisons,
        &findings.same_arm,
        list_varied_factors(cells(findings)),
        sizes_of(findings),
    )
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
pub(crate) const MIN_MANY_LEVELS: usize = 3;
/// The same from which on a sentence counts them instead of naming each.
pub(crate) const MIN_COUNTED_LEVELS: usize = 4;

/// The same comparisons, where those of many candidates with one baseline are one group with a row for each of them.
/// The second part is whether it is one of many levels.
pub(crate) fn merge_groups<'a>(findings: &'a Findings) -> Vec<(Group<'a>, bool)> {
    let all = groups(findings);
    let mut candidates: BTreeMap<(Factor, String), BTreeSet<String>> = BTreeMap::new();
    for group in &all {
        let key = (group.factor, group.baseline.clone());
        candidates.entry(key).or_default().insert(group.candidate.clone());
    }
    let mut merged: Vec<(Group, bool)> = Vec::new();
    for mut group in all {
        let key = (group.factor, group.baseline.clone());
        if candidates[&key].len() < MIN_MANY_LEVELS {
            merged.push((group, false));
            continue;
        }
        group.candidate = format!("each {}", group.factor.label());
        match merged.iter_mut().find(|(whole, _)| belongs_to(&group, whole)) {
            Some((whole, _)) => whole.rows.extend(group.rows),
            None => merged.push((group, true)),
        }
    }
    for (group, _) in merged.iter_mut().filter(|(_, is_many)| *is_many) {
        group.row_factors = choose_row_factors(group);
    }
    merged
}

/// Whether the rows of a group can stand in the table of another one with its factor and baseline.
fn belongs_to(group: &Group, whole: &Group) -> bool {
    group.factor == whole.factor
        && group.baseline == whole.baseline
        && group.metric == whole.metric
        && group.place == whole.place
}

/// The factors that distinguish the rows of many levels: the factor compared, and those that differ.
fn choose_row_factors(group: &Group) -> Vec<Factor> {
    let cells = group.rows.iter().map(|row| &row.question.baseline);
    let families: BTreeSet<_> = cells.clone().map(|cell| cell.family).collect();
    let sizes: BTreeSet<_> = cells.clone().map(|cell| cell.size).collect();
    let mut factors = vec![group.factor];
    if families.len() > 1 {
        factors.push(Factor::Family);
    }
    if sizes.len() > 1 {
        factors.push(Factor::Size);
    }
    let replicas: BTreeSet<_> = cells.clone().map(|cell| &cell.replica).collect();
    if replicas.len() > 1 && group.factor != Factor::Replica {
        factors.push(Factor::Replica);
    }
    factors.extend(list_varied_factors(cells).into_iter().filter(|factor| *factor != group.factor));
    factors
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
        self.with_place(&self.metric.label())
    }

    /// `Each mechanism vs native, UDP`: a text with the transport and the meaning of sizes, as far as they vary.
    pub(crate) fn with_place(&self, text: &str) -> String {
        let place = if self.place.is_empty() { String::new() } else { format!(", {}", self.place) };
        format!("{text}{place}")
    }

    pub(crate) fn choose_unit(&self) -> DisplayUnit {
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
    pub(crate) fn label_rows(&self) -> Table {
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
    let mut settings = Vec::new();
    for (factor, level) in cell.settings.levels() {
        settings.push((factor, level.parse::<u64>().unwrap_or(u64::MAX), level));
    }
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
    rows.iter().any(|row| !row.is_empty()) && rows.iter().all(|row| begins_with_number(row))
}

/// Whether the first word has nothing but digits; an empty text counts too.
fn begins_with_number(text: &str) -> bool {
    let word = text.split(' ').next().unwrap_or_default();
    word.bytes().all(|byte| byte.is_ascii_digit())
}

/// A table with a column for each factor, which label the rows of these cells.
pub(crate) fn label_cells(cells: &[&Cell], factors: &[Factor]) -> Table {
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
