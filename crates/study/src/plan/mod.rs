//! A study as randomised complete blocks of trials.

mod budget;
mod describe;
pub(crate) mod estimate;
pub(crate) mod interleave;

use crate::plan::interleave::{
    CellGroup, against_themselves, groups, is_against_itself, schedule, takes_turns,
};
use crate::study::Study;
use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;
use stacklab_model::{ArmSchedule, Cell, Pacing, Probe, Question, SplitMix64, StopReason, Trial};
use std::collections::{HashMap, HashSet};

/// Whether a block has arms against themselves: the first two, without which there is no interval, and then every
/// second one.
fn has_check(block: u32) -> bool {
    block < 2 || block.is_multiple_of(2)
}

/// The trials of a study in their order. A block contains every cell once for every probe that supports its
/// transport. Only the seed and the block's number determine its order: a campaign is resumed without its history.
///
/// Cells that differ only in the compared factor are adjacent, to measure compared cells under the same conditions.
/// That factor is the first comparison's, or the family in a study without comparisons. Cells that have no others like
/// them but for it are adjacent by the factor of the next comparison that they have others for.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    seed: u64,
    groups: Vec<CellGroup>,
    /// The group of each cell whose trials are arms of interleaved trials, and how these share the time.
    interleaved: HashMap<(Cell, Probe), (usize, ArmSchedule)>,
    /// Whether other trials of a block need what its searches find.
    searches_first: bool,
}

impl Plan {
    /// The plan of a study for a seed.
    pub fn new(study: &Study, seed: u64) -> Self {
        let mut groups = groups(study);
        if groups.iter().any(|group| !schedule(study.schedule, group.factor).is_alone()) {
            groups.extend(against_themselves(study));
        }
        let mut interleaved = HashMap::new();
        for (number, CellGroup { factor, arms }) in groups.iter().enumerate() {
            let schedule = schedule(study.schedule, *factor);
            if schedule.is_alone() {
                continue;
            }
            for (cell, probe) in arms {
                if takes_turns(cell, *probe, *factor) {
                    interleaved.insert((cell.clone(), *probe), (number, schedule));
                }
            }
        }
        let searches_first = study.probes.iter().any(|spec| spec.pacing == Pacing::Searched);
        Plan { seed, groups, interleaved, searches_first }
    }

    /// The group of a trial that is an arm of an interleaved trial, and its schedule.
    fn group(&self, trial: &Trial) -> Option<(usize, ArmSchedule)> {
        self.interleaved.get(&(trial.cell.clone(), trial.probe)).copied()
    }

    /// How an arm shares the time with others.
    pub(crate) fn arm_schedule(&self, cell: &Cell, probe: Probe) -> ArmSchedule {
        let interleaved = self.interleaved.get(&(cell.clone(), probe));
        interleaved.map_or(ArmSchedule::Alone, |(_, schedule)| *schedule)
    }

    /// How trials that run together ([`Plan::together`]) share the time.
    pub fn schedule(&self, arms: &[Trial]) -> ArmSchedule {
        match arms {
            [first, _, ..] => self.group(first).map_or(ArmSchedule::Alone, |(_, schedule)| schedule),
            _ => ArmSchedule::Alone,
        }
    }

    /// Whether the cells of a question are arms of one interleaved trial in each block. Groups that need several trials
    /// are divided anew in each.
    pub(crate) fn measures_together(&self, question: &Question, probe: Probe) -> bool {
        let Some((group, _)) = self.interleaved.get(&(question.baseline.clone(), probe)) else {
            return false;
        };
        let arms = self.interleaved.values().filter(|(other, _)| other == group).count();
        let candidate = self.interleaved.get(&(question.candidate.clone(), probe));
        candidate.is_some_and(|(other, _)| other == group) && arms <= ArmSchedule::MAX_ARMS
    }

    /// Of the trials of a block with a probe of these, whether all (`Some(true)`), none (`Some(false)`) or some
    /// (`None`) are arms of interleaved trials with others.
    pub fn interleaves(&self, is_meant: impl Fn(Probe) -> bool) -> Option<bool> {
        let block = self.block(0);
        // Trials that run together have one probe.
        let meant = self.together(&block).filter(|arms| is_meant(arms[0].probe));
        let mut in_turns = meant.map(|arms| arms.len() > 1);
        let first = in_turns.next().unwrap_or(false);
        in_turns.all(|others| others == first).then_some(first)
    }

    /// Whether any trial is an arm of an interleaved trial.
    pub fn interleaves_any(&self) -> bool {
        !self.interleaved.is_empty()
    }

    /// Divides trials of one block into those that run together: the arms of interleaved trials, and each other trial
    /// by itself.
    pub fn together<'t>(&self, trials: &'t [Trial]) -> impl Iterator<Item = &'t [Trial]> {
        let groups = trials.chunk_by(|a, b| self.group(a).is_some() && self.group(a) == self.group(b));
        // As even as possible: no arm stays alone.
        groups.flat_map(|arms| arms.chunks(arms.len().div_ceil(arms.len().div_ceil(ArmSchedule::MAX_ARMS))))
    }

    /// The seed that the orders are drawn from.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Trials of one block.
    pub fn trials_per_block(&self) -> usize {
        self.arms().count()
    }

    pub(crate) fn arms(&self) -> impl Iterator<Item = &(Cell, Probe)> {
        self.groups.iter().flat_map(|group| &group.arms)
    }

    /// The trials of a block (from 0) in the order in which they run.
    pub fn block(&self, block: u32) -> Vec<Trial> {
        let mut generator = generator(self.seed, block);
        let mut groups: Vec<_> = self.groups.iter().map(|group| group.arms.clone()).collect();
        shuffle(&mut groups, &mut generator);
        for group in &mut groups {
            shuffle(group, &mut generator);
        }
        if self.searches_first {
            groups.sort_by_key(|arms| arms[0].1 != Probe::Search);
        }
        let mut trials = Vec::new();
        for (position, (cell, probe)) in (0..).zip(groups.into_iter().flatten()) {
            trials.push(Trial { block, position, cell, probe });
        }
        trials
    }

    /// The trials of a block that are still needed: all except trials with stopped questions only. A trial without
    /// any question stays, and so does one whose arm would otherwise be alone in an interleaved trial: its figures
    /// would be measured in another way. Arms against themselves are in the first two blocks and in every second one,
    /// while others of their probe and transport are needed. `stop_reason` has an item for each of `questions`; a
    /// missing one is open. Trials keep their order and positions.
    pub fn active(
        &self,
        study: &Study,
        trials: Vec<Trial>,
        stop_reason: &[Option<StopReason>],
        questions: &[Question],
    ) -> Vec<Trial> {
        let mut asked = HashSet::new();
        let mut open = HashSet::new();
        for (index, question) in questions.iter().enumerate() {
            let is_open = stop_reason.get(index).is_none_or(Option::is_none);
            for cell in [&question.baseline, &question.candidate] {
                let arm = (cell, study.probe_of(question.metric));
                asked.insert(arm);
                if is_open {
                    open.insert(arm);
                    if study.probe(arm.1).is_some_and(|spec| spec.pacing == Pacing::Searched) {
                        open.insert((cell, Probe::Search));
                    }
                }
            }
        }
        let mut needed = Vec::new();
        let mut kinds = HashSet::new();
        for trial in &trials {
            let arm = (&trial.cell, trial.probe);
            let is_needed = !is_against_itself(&trial.cell) && (open.contains(&arm) || !asked.contains(&arm));
            needed.push(is_needed);
            if is_needed {
                kinds.insert((trial.probe, trial.cell.transport));
            }
        }
        // Arms against themselves are measured for the others, and a check needs fewer of them than verdicts do.
        for (trial, is_needed) in trials.iter().zip(&mut needed) {
            if is_against_itself(&trial.cell) {
                *is_needed = has_check(trial.block) && kinds.contains(&(trial.probe, trial.cell.transport));
            }
        }
        self.keep(trials, &needed)
    }

    /// The needed trials of a block, and those whose arm would else be alone in an interleaved trial.
    fn keep(&self, trials: Vec<Trial>, needed: &[bool]) -> Vec<Trial> {
        let mut arms: HashMap<usize, usize> = HashMap::new();
        for (trial, is_needed) in trials.iter().zip(needed) {
            if let (true, Some((group, _))) = (*is_needed, self.group(trial)) {
                *arms.entry(group).or_insert(0) += 1;
            }
        }
        let mut active = Vec::new();
        for (trial, is_needed) in trials.into_iter().zip(needed) {
            let is_beside_one = self.group(&trial).is_some_and(|(group, _)| arms.get(&group) == Some(&1));
            if *is_needed || is_beside_one {
                active.push(trial);
            }
        }
        active
    }
}

/// A generator for one block of one campaign. Seed and block are mixed first (SplitMix64), because the streams of
/// neighbouring seeds would else resemble each other.
fn generator(seed: u64, block: u32) -> Pcg64 {
    let high = SplitMix64::mix(seed);
    let low = SplitMix64::mix(high ^ u64::from(block));
    Pcg64::new(u128::from(high) << 64 | u128::from(low), u128::from(low))
}

/// Fisher and Yates's shuffle: every order is equally likely, and that of a seed is the same on every machine and with
/// every library version.
fn shuffle<T>(items: &mut [T], generator: &mut Pcg64) {
    for last in (1..items.len()).rev() {
        items.swap(last, below(last as u64 + 1, generator) as usize);
    }
}

/// A number below the bound, all equally likely: draws that would favour small numbers are repeated.
fn below(bound: u64, generator: &mut Pcg64) -> u64 {
    let fair = u64::MAX - u64::MAX % bound;
    loop {
        let drawn = generator.next_u64();
        if drawn < fair {
            return drawn % bound;
        }
    }
}

#[cfg(test)]
mod tests;
