//! Comparisons that belong into one table.

use stacklab_model::{Cell, Comparison, Factor, Findings, Framing, Metric, Transport};
use std::collections::BTreeMap;

/// What tells the rows of a table apart; transport and framing stand in its heading.
const ROWS: [Factor; 3] = [Factor::Family, Factor::Size, Factor::Replica];

/// What puts comparisons into one group, in the order of groups: the pair of levels compared, by its first mention.
type Key = (usize, Metric, Option<Transport>, Option<Framing>);

/// The same two levels compared by the same metric over one transport and framing.
pub struct Group<'a> {
    /// What is compared.
    pub factor: Factor,
    /// The baseline's level, as printed.
    pub baseline: String,
    /// The candidate's level, as printed.
    pub candidate: String,
    /// By what.
    pub metric: Metric,
    /// Transport and framing, as far as they are not what is compared: `tcp segment`.
    pub place: String,
    /// The comparisons, by family, size and replica.
    pub rows: Vec<&'a Comparison>,
    /// What tells them apart.
    pub row_factors: Vec<Factor>,
}

/// All comparisons in groups: pairs of levels in the study's order, then by metric, transport and framing.
pub fn groups(findings: &Findings) -> Vec<Group<'_>> {
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
            let row_factors = row_factors(rows.iter().map(|row| &row.question.baseline), Some(factor));
            Group { factor, baseline, candidate, metric, place, rows, row_factors }
        })
        .collect()
}

impl Group<'_> {
    /// What is compared with what: `ipv6 against ipv4`.
    pub fn arms(&self) -> String {
        format!("{} against {}", self.candidate, self.baseline)
    }

    /// What tells a row apart: `128 B`.
    pub fn row_label(&self, row: &Comparison) -> String {
        let levels: Vec<String> =
            self.row_factors.iter().map(|factor| level(&row.question.baseline, *factor)).collect();
        levels.join(" ")
    }
}

/// The factors that tell the rows of a table of cells apart; replicas only where there are any.
pub fn row_factors<'a>(cells: impl Iterator<Item = &'a Cell>, compared: Option<Factor>) -> Vec<Factor> {
    let replicas = cells.into_iter().any(|cell| !cell.replica.is_empty());
    let shown = |factor: &Factor| Some(*factor) != compared && (replicas || *factor != Factor::Replica);
    ROWS.into_iter().filter(shown).collect()
}

/// The order of rows.
pub fn sort_key(cell: &Cell) -> impl Ord + use<> {
    (cell.family, cell.transport, cell.framing, cell.size, cell.replica.clone())
}

/// A level as printed: sizes with their unit.
pub fn level(cell: &Cell, factor: Factor) -> String {
    match factor {
        Factor::Size => format!("{} B", cell.size),
        _ => cell.level(factor),
    }
}
