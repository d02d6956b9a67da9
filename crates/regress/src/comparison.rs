//! Candidate minus baseline, by cell and function.

use crate::NOTICEABLE;
use crate::condition::{Check, Condition, Quantity};
use crate::counter::{Counted, Counts};
use serde::Serialize;
use std::collections::BTreeMap;

/// Changes of functions below this are not listed, instructions per message.
const LEAST: f64 = 0.5;

/// Which families changed by more than [`NOTICEABLE`] in a steady cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// IPv6 changed.
    Ipv6Only,
    /// IPv4 changed.
    Ipv4Only,
    /// Both changed.
    Both,
    /// Neither changed.
    Neither,
}

impl Outcome {
    fn of(ipv4: bool, ipv6: bool) -> Self {
        match (ipv4, ipv6) {
            (false, true) => Outcome::Ipv6Only,
            (true, false) => Outcome::Ipv4Only,
            (true, true) => Outcome::Both,
            (false, false) => Outcome::Neither,
        }
    }

    /// As a phrase.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Ipv6Only => "IPv6 only",
            Outcome::Ipv4Only => "IPv4 only",
            Outcome::Both => "both families",
            Outcome::Neither => "neither family",
        }
    }
}

/// The change of a cell, instructions per message, IPv4 and IPv6.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct CellChange {
    pub(crate) name: String,
    pub(crate) baseline: [f64; 2],
    pub(crate) candidate: [f64; 2],
    /// Functions that changed, the largest change first.
    pub(crate) functions: Vec<FunctionChange>,
}

/// The change of a function, or of the two functions that do the same for a family each.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct FunctionChange {
    pub(crate) name: String,
    pub(crate) baseline: [f64; 2],
    pub(crate) candidate: [f64; 2],
}

impl FunctionChange {
    pub(crate) fn change(&self) -> [f64; 2] {
        [0, 1].map(|family| self.candidate[family] - self.baseline[family])
    }

    pub(crate) fn largest(&self) -> f64 {
        self.change().map(f64::abs).into_iter().fold(0.0, f64::max)
    }
}

impl CellChange {
    #[cfg(test)]
    pub(crate) fn new(name: &str, baseline: [f64; 2], candidate: [f64; 2]) -> Self {
        CellChange { name: name.to_owned(), baseline, candidate, functions: Vec::new() }
    }

    /// Whether another layout of the same source changes it by a few instructions only. During connections, the kernel
    /// frees memory and looks for expired connections in the background, which counts for one family or the other.
    pub(crate) fn is_steady(&self) -> bool {
        self.name != "connect"
    }

    /// Instructions per message.
    pub(crate) fn change(&self, quantity: Quantity) -> f64 {
        let [ipv4, ipv6] = [0, 1].map(|family| self.candidate[family] - self.baseline[family]);
        match quantity {
            Quantity::Ipv4 => ipv4,
            Quantity::Ipv6 => ipv6,
            Quantity::Gap => ipv6 - ipv4,
        }
    }

    /// The same in per cent of the baseline's family; of IPv6 for the gap.
    pub(crate) fn percent(&self, quantity: Quantity) -> f64 {
        let whole = self.baseline[usize::from(quantity != Quantity::Ipv4)];
        100.0 * self.change(quantity) / whole
    }
}

/// Two kernels compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The kernel to compare with.
    pub baseline: Side,
    /// The kernel that is judged.
    pub candidate: Side,
    /// Which families changed.
    pub outcome: Outcome,
    /// Whether a condition is met.
    pub is_bad: bool,
    /// The conditions, on each cell.
    pub checks: Vec<Check>,
    pub(crate) cells: Vec<CellChange>,
}

/// A compared kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Side {
    /// As the user named it.
    pub name: String,
    /// Its release.
    pub release: String,
}

impl Comparison {
    /// Compares counts of the same cells.
    pub fn new(baseline: &Counted, candidate: &Counted, conditions: &[Condition]) -> Self {
        let cells = cells(&baseline.counts, &candidate.counts);
        let checks: Vec<Check> = cells
            .iter()
            .flat_map(|cell| conditions.iter().filter_map(|condition| condition.check(cell)))
            .collect();
        let steady = || cells.iter().filter(|cell: &&CellChange| cell.is_steady());
        let has_changed = |quantity| steady().any(|cell| cell.change(quantity).abs() > NOTICEABLE);
        let side = |of: &Counted| Side { name: of.name.clone(), release: of.counts.release.clone() };
        Comparison {
            baseline: side(baseline),
            candidate: side(candidate),
            outcome: Outcome::of(has_changed(Quantity::Ipv4), has_changed(Quantity::Ipv6)),
            is_bad: checks.iter().any(|check| check.is_bad),
            checks,
            cells,
        }
    }

    /// The steady cell in which a quantity grew most, with the change.
    pub(crate) fn largest(&self, quantity: Quantity) -> Option<(&CellChange, f64)> {
        let steady = self.cells.iter().filter(|cell| cell.is_steady());
        let changes = steady.map(|cell| (cell, cell.change(quantity)));
        changes.max_by(|(_, a), (_, b)| a.total_cmp(b))
    }

    /// The largest change of any cell and family, in either direction, instructions per message.
    pub fn largest_change(&self) -> f64 {
        let of = |quantity| self.cells.iter().map(move |cell| cell.change(quantity).abs());
        of(Quantity::Ipv4).chain(of(Quantity::Ipv6)).fold(0.0, f64::max)
    }
}

fn cells(baseline: &Counts, candidate: &Counts) -> Vec<CellChange> {
    let same = |name: &str| candidate.cells.iter().find(|cell| cell.name == name);
    let both = baseline.cells.iter().filter_map(|cell| Some((cell, same(&cell.name)?)));
    both.map(|(before, after)| {
        let mut functions: BTreeMap<&str, [[f64; 2]; 2]> = BTreeMap::new();
        for (side, cell) in [before, after].into_iter().enumerate() {
            for function in &cell.functions {
                let of = &mut functions.entry(&function.name).or_default()[side];
                *of = function.instructions.map(|count| cell.per_message(count));
            }
        }
        let mut functions: Vec<FunctionChange> = functions
            .into_iter()
            .map(|(name, [baseline, candidate])| FunctionChange {
                name: name.to_owned(),
                baseline,
                candidate,
            })
            .filter(|function| function.largest() >= LEAST)
            .collect();
        functions.sort_by(|a, b| b.largest().total_cmp(&a.largest()).then_with(|| a.name.cmp(&b.name)));
        CellChange {
            name: before.name.clone(),
            baseline: before.total.map(|count| before.per_message(count)),
            candidate: after.total.map(|count| after.per_message(count)),
            functions,
        }
    })
    .collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::counter::{CellCounts, FunctionCounts};

    /// A kernel whose UDP and TCP cells have a function of each family with such counts, for 10 messages.
    pub(crate) fn counted(name: &str, udp: [u64; 2], tcp: [u64; 2]) -> Counted {
        let cell = |cell: &str, total: [u64; 2]| CellCounts {
            name: cell.to_owned(),
            messages: 10,
            total,
            functions: vec![
                FunctionCounts { name: "memset".to_owned(), instructions: [100, 100] },
                FunctionCounts {
                    name: "ip_output / ip6_output".to_owned(),
                    instructions: total.map(|count| count - 100),
                },
            ],
        };
        let cells = vec![cell("udp/128", udp), cell("tcp/128", tcp)];
        let counts = Counts { qemu: "7.2".to_owned(), release: "6.1".to_owned(), cells };
        Counted { name: name.to_owned(), counts }
    }

    fn compared(udp: [u64; 2], tcp: [u64; 2]) -> Comparison {
        let baseline = counted("a", [1000, 2000], [3000, 4000]);
        Comparison::new(&baseline, &counted("b", udp, tcp), &Condition::usual())
    }

    #[test]
    fn outcome_names_the_families_that_changed() {
        for (udp, tcp, outcome, is_bad) in [
            ([1000, 2000], [3000, 4000], Outcome::Neither, false),
            ([1080, 2080], [3000, 4000], Outcome::Neither, false),
            ([1000, 2081], [3000, 4000], Outcome::Ipv6Only, true),
            ([1000, 2000], [3100, 4000], Outcome::Ipv4Only, true),
            ([1100, 2000], [3000, 4100], Outcome::Both, true),
            ([1000, 1900], [3000, 4000], Outcome::Ipv6Only, false),
        ] {
            let comparison = compared(udp, tcp);
            assert_eq!((comparison.outcome, comparison.is_bad), (outcome, is_bad), "{udp:?} {tcp:?}");
        }
    }

    #[test]
    fn functions_that_changed_are_listed_with_the_change() {
        let comparison = compared([1000, 2085], [3000, 4000]);
        let [udp, tcp] = &comparison.cells[..] else { panic!("{comparison:?}") };
        assert_eq!(udp.functions.len(), 1);
        assert_eq!(udp.functions[0].name, "ip_output / ip6_output");
        assert_eq!(udp.functions[0].change(), [0.0, 8.5]);
        assert!(tcp.functions.is_empty());
        assert_eq!(
            comparison.largest(Quantity::Gap).map(|(cell, gap)| (cell.name.as_str(), gap)),
            Some(("udp/128", 8.5))
        );
        assert_eq!(comparison.largest_change(), 8.5);
    }
}
