//! Which cells are measured next to each other.

use crate::plan::interleave::compared;
use crate::study::Study;
use stacklab_model::{Cell, Factor, once_each};
use std::collections::HashMap;

/// The factor in which each cell of a study differs from those adjacent to it.
pub fn adjacent_by(study: &Study) -> HashMap<Cell, Factor> {
    let first = compared(&study.comparisons);
    let mut left: Vec<&Cell> = study.cells.iter().collect();
    let mut factors = HashMap::new();
    for factor in once_each(study.comparisons.iter().map(|comparison| comparison.factor)) {
        let mut alike: HashMap<Vec<String>, usize> = HashMap::new();
        for cell in &left {
            *alike.entry(all_but(cell, factor)).or_default() += 1;
        }
        left.retain(|cell| {
            let has_others = alike[&all_but(cell, factor)] > 1;
            if has_others {
                factors.insert((*cell).clone(), factor);
            }
            !has_others
        });
    }
    factors.extend(left.into_iter().map(|cell| (cell.clone(), first)));
    factors
}

/// The levels of all factors but one.
pub fn all_but(cell: &Cell, factor: Factor) -> Vec<String> {
    Factor::ALL.iter().filter(|other| **other != factor).map(|other| cell.level(*other)).collect()
}
