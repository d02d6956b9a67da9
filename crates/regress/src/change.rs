//! The changes of cells and functions, instructions per message.

use serde::Serialize;
use stacklab_model::{ExactCell, ExactCounts, ExactProbe};
use std::collections::BTreeMap;

/// Changes of functions below this are not listed, instructions per message.
const LEAST: f64 = 0.5;

/// What a condition looks at: the change of a family, or of the difference between IPv6 and IPv4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quantity {
    Ipv4,
    Ipv6,
    Gap,
}

/// The change of a cell, IPv4 and IPv6.
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
        self.change().into_iter().fold(0.0, |largest, change| change.abs().max(largest))
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

/// The changes of the cells that both kernels have.
pub(crate) fn changes(baseline: &ExactCounts, candidate: &ExactCounts) -> Vec<CellChange> {
    let same = |name: &str| candidate.cells.iter().find(|cell| cell_name(cell) == name);
    let both = baseline.cells.iter().filter_map(|cell| Some((cell, same(&cell_name(cell))?)));
    both.map(|(before, after)| {
        let mut functions: BTreeMap<&str, [[f64; 2]; 2]> = BTreeMap::new();
        for (side, cell) in [before, after].into_iter().enumerate() {
            for function in &cell.functions {
                let of = &mut functions.entry(&function.name).or_default()[side];
                *of = function.instructions.map(|count| cell.per_message(count));
            }
        }
        let change = |(name, [baseline, candidate]): (&str, [[f64; 2]; 2])| FunctionChange {
            name: name.to_owned(),
            baseline,
            candidate,
        };
        let changed = functions.into_iter().map(change).filter(|function| function.largest() >= LEAST);
        let mut functions: Vec<FunctionChange> = changed.collect();
        functions.sort_by(|a, b| b.largest().total_cmp(&a.largest()).then_with(|| a.name.cmp(&b.name)));
        CellChange {
            name: cell_name(before),
            baseline: before.total.map(|count| before.per_message(count)),
            candidate: after.total.map(|count| after.per_message(count)),
            functions,
        }
    })
    .collect()
}

fn cell_name(cell: &ExactCell) -> String {
    match cell.probe {
        ExactProbe::Connect => cell.probe.to_string(),
        probe => format!("{probe}/{}", cell.arms[0].size),
    }
}
