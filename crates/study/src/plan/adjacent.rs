//! Which cells are measured next to each other.

use crate::plan::interleave::{arms_of_one_testbed, compared, takes_turns};
use crate::study::Study;
use stacklab_model::{ArmSchedule, Cell, Factor, Generator, Probe, SELF_ARMS, once_each};
use std::collections::{HashMap, HashSet};
use std::mem;

/// Cells that are measured next to each other by one probe.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CellGroup {
    /// The factor in which they differ; the first one, if they differ in several.
    pub factor: Factor,
    pub arms: Vec<(Cell, Probe)>,
}

/// All cells of a study in groups. The cells of a group differ in one factor. Interleaved, groups that a comparison of
/// another factor joins are one where a trial has room for all of their arms: what is compared is then in one trial.
pub(super) fn groups(study: &Study) -> Vec<CellGroup> {
    let factors = adjacent_by(study);
    let alike: Vec<Vec<String>> =
        study.cells.iter().zip(&factors).map(|(cell, factor)| all_but(cell, *factor)).collect();
    let mut groups: Vec<CellGroup> = Vec::new();
    let mut index: HashMap<(Probe, Factor, &[String]), usize> = HashMap::new();
    for spec in &study.probes {
        for ((cell, factor), alike) in study.cells.iter().zip(&factors).zip(&alike) {
            if !measures(spec.probe, cell) {
                continue;
            }
            let group = *index.entry((spec.probe, *factor, alike)).or_insert_with(|| {
                groups.push(CellGroup { factor: *factor, arms: Vec::new() });
                groups.len() - 1
            });
            groups[group].arms.push((cell.clone(), spec.probe));
        }
    }
    if !study.schedule.is_alone() {
        join(&mut groups, study);
    }
    groups
}

/// Whether a probe measures a cell: over its transport, and by its generator.
fn measures(probe: Probe, cell: &Cell) -> bool {
    probe.supports(cell.transport) && Generator::of(cell).definition().probes.contains(&probe)
}

/// One cell of each transport and probe as two arms, which by a sound method differ by chance alone. None in a study
/// whose own arms are replicas.
pub(super) fn against_themselves(study: &Study) -> Vec<CellGroup> {
    let mut groups = Vec::new();
    let probes = study.probes.iter().map(|spec| spec.probe).filter(|probe| probe.interleaves());
    for probe in probes {
        let mut seen = HashSet::new();
        let takes_turns = |cell: &&Cell| takes_turns(cell, probe, Factor::Replica);
        for cell in study.cells.iter().filter(|cell| cell.replica.is_empty()).filter(takes_turns) {
            if seen.insert(cell.transport) {
                let arm = |label: &str| (Cell { replica: label.to_owned(), ..cell.clone() }, probe);
                let arms = SELF_ARMS.iter().map(|label| arm(label)).collect();
                groups.push(CellGroup { factor: Factor::Replica, arms });
            }
        }
    }
    groups
}

fn join(groups: &mut Vec<CellGroup>, study: &Study) {
    let numbered = groups.iter().zip(0_usize..);
    let mut group_of: HashMap<(Cell, Probe), usize> = numbered
        .flat_map(|(group, number)| group.arms.iter().map(move |arm| (arm.clone(), number)))
        .collect();
    for question in study.questions().into_iter().filter(|question| arms_of_one_testbed(question.factor)) {
        let probe = study.probe_of(question.metric);
        let [a, b] =
            [question.baseline, question.candidate].map(|cell| group_of.get(&(cell, probe)).copied());
        let (Some(a), Some(b)) = (a.min(b), a.max(b)) else { continue };
        let fits = |group: &CellGroup| {
            let takes_turns = |(cell, probe): &(Cell, Probe)| takes_turns(cell, *probe, group.factor);
            arms_of_one_testbed(group.factor) && group.arms.iter().all(takes_turns)
        };
        let has_room = groups[a].arms.len() + groups[b].arms.len() <= ArmSchedule::MOST_ARMS;
        if a != b && has_room && fits(&groups[a]) && fits(&groups[b]) {
            for arm in mem::take(&mut groups[b].arms) {
                group_of.insert(arm.clone(), a);
                groups[a].arms.push(arm);
            }
        }
    }
    groups.retain(|group| !group.arms.is_empty());
}

/// The factor in which each cell of a study differs from those adjacent to it.
fn adjacent_by(study: &Study) -> Vec<Factor> {
    let mut factors: Vec<Option<Factor>> = vec![None; study.cells.len()];
    for factor in once_each(study.comparisons.iter().map(|comparison| comparison.factor)) {
        let left: Vec<(usize, Vec<String>)> = (0..factors.len())
            .filter(|place| factors[*place].is_none())
            .map(|place| (place, all_but(&study.cells[place], factor)))
            .collect();
        let mut alike: HashMap<&[String], usize> = HashMap::new();
        for (_, levels) in &left {
            *alike.entry(levels).or_default() += 1;
        }
        for (place, levels) in &left {
            if alike[&levels[..]] > 1 {
                factors[*place] = Some(factor);
            }
        }
    }
    let first = compared(&study.comparisons);
    factors.into_iter().map(|factor| factor.unwrap_or(first)).collect()
}

fn all_but(cell: &Cell, factor: Factor) -> Vec<String> {
    Factor::ALL.iter().filter(|other| **other != factor).map(|other| cell.level(*other)).collect()
}
