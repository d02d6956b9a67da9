//! The cost of each stage of the network stack, from samples and the slices of two interleaved arms.
//!
//! The clock is the CPU time of the arm's threads on both hosts; where only one host counts it, the samples of both.
//! In a trial, a stage's cost is the time that its samples stand for, over the messages of the sampled slices, times
//! the ratio of the clock without sampling to the clock with it. Costs are means over trials. Standard errors, p and
//! intervals are Student's, of the differences by trial: a trial has its own sockets, and stages of like sockets differ
//! by more than the windows of one trial show.

mod blocks;
pub(crate) mod functions;
mod lock;
#[cfg(test)]
mod tests;
mod trials;

pub(crate) use crate::costs::blocks::ArmSlice;

use crate::costs::blocks::{Block, PlacedSamples, TrialBlocks, place_samples};
use crate::costs::functions::{Sampled, fold_stacks, pair_twins};
use crate::costs::trials::{ArmCosts, TrialCosts};
use crate::sampling::profile::{Profile, StageKind};
use stacklab_analysis::statistics::t_quantile;
use stacklab_model::{Family, Health, StageCosts};
use std::collections::BTreeMap;

const FUNCTIONS: usize = 20;
/// Fewest blocks, and fewest trials, that give costs.
const MIN_BLOCKS: usize = 8;
const MIN_TRIALS: usize = 2;

/// The costs of two arms with these slices. `None` if too little was sampled.
pub(crate) fn stage_costs(
    profile: &Profile,
    slices: [&[ArmSlice]; 2],
    cell: String,
    arms: [String; 2],
) -> Option<StageCosts> {
    let functions = place_functions(profile);
    let placed = place_samples(profile, slices, &functions);
    let by_trial = group_by_trial(&placed.blocks);
    if placed.blocks.len() < MIN_BLOCKS || by_trial.len() < MIN_TRIALS {
        return None;
    }
    let is_whole = slices.iter().all(|arm| arm.iter().all(|slice| slice.is_whole));
    let trials = estimate_costs(profile, &by_trial, is_whole);
    let mut functions = trials.rank(name_functions(profile, &functions, &arms));
    functions.truncate(FUNCTIONS);
    let unmapped = trials.sum("unmapped", &stages_of(profile, StageKind::Unmapped));
    let stacks = add_stacks(&by_trial, &trials);
    let health = describe_health(profile, &placed, &trials, is_whole, unmapped.ns);
    Some(StageCosts {
        cell,
        arms,
        stages: trials.rank(name_stages(profile)),
        unmapped,
        not_sampled: trials.cost("not sampled", |arm| arm.clock + arm.outside - arm.sampled),
        threads: trials.cost("threads", |arm| arm.clock),
        outside: trials.cost("outside them", |arm| arm.outside),
        busy: trials.cost("busy", |arm| arm.clock + arm.outside),
        functions,
        stacks: fold_stacks(profile, &stacks),
        health,
    })
}

/// The places of functions among the figures of a block: behind the stages.
fn place_functions(profile: &Profile) -> BTreeMap<u32, usize> {
    profile.functions.keys().copied().zip(profile.stages.len()..).collect()
}

fn group_by_trial(blocks: &TrialBlocks) -> BTreeMap<u32, Vec<&[Block; 2]>> {
    let mut by_trial: BTreeMap<u32, Vec<&[Block; 2]>> = BTreeMap::new();
    for ((trial, _), block) in blocks {
        by_trial.entry(*trial).or_default().push(block);
    }
    by_trial
}

fn stages_of(profile: &Profile, kind: StageKind) -> Vec<usize> {
    (0..profile.stages.len()).filter(|stage| profile.stages[*stage].kind == kind).collect()
}

fn estimate_costs(
    profile: &Profile,
    by_trial: &BTreeMap<u32, Vec<&[Block; 2]>>,
    is_whole: bool,
) -> TrialCosts {
    let parts = [stages_of(profile, StageKind::Stack), stages_of(profile, StageKind::Unmapped)].concat();
    let mut trials = Vec::new();
    for blocks in by_trial.values() {
        let of_arm = |arm: usize| ArmCosts::of(blocks.iter().map(|block| &block[arm]), &parts, is_whole);
        trials.push([of_arm(0), of_arm(1)]);
    }
    TrialCosts(trials)
}

/// The stages of the stack, with their places.
fn name_stages(profile: &Profile) -> Vec<(String, Vec<usize>)> {
    let mut named = Vec::new();
    for stage in stages_of(profile, StageKind::Stack) {
        named.push((profile.stages[stage].name.clone(), vec![stage]));
    }
    named
}

/// Functions with their places. Both families have functions for the same work: between families, the two of a pair are
/// one row.
fn name_functions(
    profile: &Profile,
    functions: &BTreeMap<u32, usize>,
    arms: &[String; 2],
) -> Vec<(String, Vec<usize>)> {
    let named: Vec<(String, usize)> =
        functions.iter().map(|(function, place)| (profile.functions[function].clone(), *place)).collect();
    let families = [Family::Ipv4, Family::Ipv6].map(|family| family.to_string());
    if arms.iter().all(|level| families.contains(level)) {
        return pair_twins(named);
    }
    named.into_iter().map(|(name, place)| (name, vec![place])).collect()
}

/// The samples of both arms by call chain, nanoseconds per message as the mean over trials.
fn add_stacks(by_trial: &BTreeMap<u32, Vec<&[Block; 2]>>, trials: &TrialCosts) -> [Sampled; 2] {
    let mut stacks = [Sampled::default(), Sampled::default()];
    for (blocks, costs) in by_trial.values().zip(&trials.0) {
        for (arm, all) in stacks.iter_mut().enumerate() {
            let mut own = Sampled::default();
            blocks.iter().for_each(|block| own.add_all(&block[arm].stacks));
            all.add_all(&own.scale(costs[arm].factor / trials.0.len() as f64));
        }
    }
    stacks
}

/// How far the costs can be trusted. `unmapped_ns` are those of both arms.
fn describe_health(
    profile: &Profile,
    placed: &PlacedSamples,
    trials: &TrialCosts,
    is_whole: bool,
    unmapped_ns: [f64; 2],
) -> Health {
    let all_ns = trials.of_both(|arm| arm.clock + arm.outside);
    let other_ns = trials.of_both(|arm| arm.other);
    let messages: f64 = placed.blocks.values().flatten().map(|block| block.sampled.messages).sum();
    Health {
        event: profile.event,
        trials: trials.0.len() as u32,
        t95: t_quantile(0.975, trials.degrees_of_freedom()),
        lock_ratio: placed.lock.ratio(),
        coverage: is_whole.then(|| trials.of_both(|arm| arm.sampled) / all_ns),
        overhead: trials.of_both(|arm| 1.0 / arm.scale - 1.0) / 2.0,
        unmapped: unmapped_ns.iter().sum::<f64>() / all_ns,
        other_load: other_ns / (all_ns + other_ns),
        samples: placed.count,
        messages: messages as u64,
        lost: profile.lost,
        throttled: profile.throttled,
        unmapped_functions: profile.unmapped.iter().take(5).map(|(name, _)| name.clone()).collect(),
    }
}
