//! The changes of cells and functions, instructions per message.

use serde::Serialize;
use stacklab_model::{ExactCell, ExactCounts, ExactProbe};
use std::collections::BTreeMap;

/// Changes of functions below this are not listed, instructions per message.
const MIN_LISTED_CHANGE: f64 = 0.5;

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

/// Compares the cells that both kernels have.
pub(crate) fn compare_cells(baseline: &ExactCounts, candidate: &ExactCounts) -> Vec<CellChange> {
    let mut changes = Vec::new();
    for before in &baseline.cells {
        let name = name_cell(before);
        let Some(after) = candidate.cells.iter().find(|cell| name_cell(cell) == name) else { continue };
        changes.push(CellChange {
            name,
            baseline: before.total.map(|count| before.per_message(count)),
            candidate: after.total.map(|count| after.per_message(count)),
            functions: compare_functions(before, after),
        });
    }
    changes
}

/// The functions that changed, the largest change first. A function that only one kernel has is zero in the other.
fn compare_functions(before: &ExactCell, after: &ExactCell) -> Vec<FunctionChange> {
    let mut counts: BTreeMap<&str, [[f64; 2]; 2]> = BTreeMap::new();
    for (side, cell) in [before, after].into_iter().enumerate() {
        for function in &cell.functions {
            let per_message = function.instructions.map(|count| cell.per_message(count));
            counts.entry(&function.name).or_default()[side] = per_message;
        }
    }
    let mut changes = Vec::new();
    for (name, [baseline, candidate]) in counts {
        let change = FunctionChange { name: name.to_owned(), baseline, candidate };
        if change.largest() >= MIN_LISTED_CHANGE {
            changes.push(change);
        }
    }
    changes.sort_by(|a, b| b.largest().total_cmp(&a.largest()).then_with(|| a.name.cmp(&b.name)));
    changes
}

fn name_cell(cell: &ExactCell) -> String {
    match cell.probe {
        ExactProbe::Connect => cell.probe.to_string(),
        probe => format!("{probe}/{}", cell.arms[0].size),
    }
}
