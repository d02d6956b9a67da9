//! Which cells are measured next to each other, and which of them are arms of an interleaved trial.

use crate::study::Study;
use stacklab_model::{
    ArmSchedule, Cell, ComparisonSpec, Direction, Factor, Generator, Probe, SELF_ARMS, System, Systems,
    once_each,
};
use std::collections::{HashMap, HashSet};
use std::mem;

/// Whether cells that differ in the factor alone can be measured at the same time: on one testbed, or on testbeds
/// beside each other.
pub(crate) fn interleaves(factor: Factor) -> bool {
    use Factor::*;
    match factor {
        Family | Transport | SizeOf | Size | Replica | Io | Flows => true,
        // The settings of a path and the processors of hosts are one for all arms.
        _ => factor.is_socket_option() || factor.is_of_testbeds(),
    }
}

/// How arms that differ in a factor share the time, in a study with this schedule. It is decided here only.
pub(crate) fn schedule(of_study: ArmSchedule, factor: Factor) -> ArmSchedule {
    match of_study {
        ArmSchedule::Alone => ArmSchedule::Alone,
        _ if !interleaves(factor) => ArmSchedule::Alone,
        schedule if factor.is_of_testbeds() => ArmSchedule::TimeSlots(schedule.slice_ns()),
        schedule => ArmSchedule::TokenPassing(schedule.slice_ns()),
    }
}

/// Whether all arms of interleaved trials have the same two hosts.
pub(crate) fn on_one_testbed(comparisons: &[ComparisonSpec]) -> bool {
    arms_of_one_testbed(find_interleaved_factor(comparisons))
}

/// Whether cells that differ in the factor alone can be measured at the same time between the same two hosts.
pub(crate) fn arms_of_one_testbed(factor: Factor) -> bool {
    interleaves(factor) && !factor.is_of_testbeds()
}

/// The factor in which the cells differ that are measured next to each other: the first comparison's, or the family in
/// a study without comparisons.
pub(crate) fn find_interleaved_factor(comparisons: &[ComparisonSpec]) -> Factor {
    comparisons.first().map_or(Factor::Family, |comparison| comparison.factor)
}

/// Whether a cell is one of two arms against themselves.
pub(crate) fn is_against_itself(cell: &Cell) -> bool {
    SELF_ARMS.contains(&cell.replica.as_str())
}

/// Whether a cell can be an arm among arms that differ in the factor: one transfer, by threads that the host counts
/// exactly or with a testbed for itself. Real machines have one network for all arms.
pub(crate) fn takes_turns(cell: &Cell, probe: Probe, factor: Factor) -> bool {
    let mut fits = true;
    for system in &Systems::of(cell).0 {
        fits &= match system {
            System::Localhost | System::Ssh(_) => !factor.is_of_testbeds(),
            system => factor.is_of_testbeds() || system.counts_cpu(),
        };
    }
    fits && probe.interleaves() && !cell.has_other_programs() && Direction::of(cell) != Direction::Both
}

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
pub(crate) fn measures(probe: Probe, cell: &Cell) -> bool {
    probe.measures(cell) && Generator::of(cell).definition().probes.contains(&probe)
}

/// One cell of each transport and probe as two arms, which by a sound method differ by chance alone. None in a study
/// whose own arms are replicas.
pub(super) fn against_themselves(study: &Study) -> Vec<CellGroup> {
    let mut groups = Vec::new();
    let probes = study.probes.iter().map(|spec| spec.probe).filter(|probe| probe.interleaves());
    for probe in probes {
        let mut seen = HashSet::new();
        for cell in &study.cells {
            let fits = cell.replica.is_empty() && takes_turns(cell, probe, Factor::Replica);
            if !fits || !seen.insert(cell.transport) {
                continue;
            }
            let mut arms = Vec::new();
            for label in SELF_ARMS {
                arms.push((Cell { replica: label.to_owned(), ..cell.clone() }, probe));
            }
            groups.push(CellGroup { factor: Factor::Replica, arms });
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
        let has_room = groups[a].arms.len() + groups[b].arms.len() <= ArmSchedule::MAX_ARMS;
        if a != b && has_room && can_grow(&groups[a]) && can_grow(&groups[b]) {
            for arm in mem::take(&mut groups[b].arms) {
                group_of.insert(arm.clone(), a);
                groups[a].arms.push(arm);
            }
        }
    }
    groups.retain(|group| !group.arms.is_empty());
}

/// Whether all arms of a group can share a trial with arms of another group.
fn can_grow(group: &CellGroup) -> bool {
    arms_of_one_testbed(group.factor)
        && group.arms.iter().all(|(cell, probe)| takes_turns(cell, *probe, group.factor))
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
    let first = find_interleaved_factor(&study.comparisons);
    factors.into_iter().map(|factor| factor.unwrap_or(first)).collect()
}

fn all_but(cell: &Cell, factor: Factor) -> Vec<String> {
    Factor::ALL.iter().filter(|other| **other != factor).map(|other| cell.level(*other)).collect()
}
